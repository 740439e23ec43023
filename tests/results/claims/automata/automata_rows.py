"""Verdicts on the studies of automata as their files plan them, for rows that a test makes."""

from results.claims import verdicts
from tests.results.claims.planned_rows import replicates


def judged(manifest, claim, rates, keep=lambda settings: True, **terms):
    """The verdict on one claim of a manifest, of the conditions whose settings `keep` takes, for error rates by settings and set."""
    wanted = [i for i, each in enumerate(manifest["conditions"]) if keep(each["settings"])]
    number = {old: new for new, old in enumerate(wanted)}
    cut = manifest | {
        "claims": {claim: manifest["claims"][claim] | terms},
        "conditions": [manifest["conditions"][i] for i in wanted],
        "replicates": [[key, number[i], *seeds] for key, i, *seeds in manifest["replicates"] if i in number],
    }
    (found,) = verdicts(cut, replicates(cut, rates))
    assert found.finding.reason
    return found


def flat(rate):
    return lambda settings, definition: rate


def renamed(manifest, names, **task):
    """With other automata, by their names before, and other options of the task."""
    conditions = []
    for each in manifest["conditions"]:
        own = each["settings"]["task"]
        own = own | {"automaton": names.get(own["automaton"], own["automaton"])} | task
        conditions.append(each | {"settings": each["settings"] | {"task": own}})
    return manifest | {"conditions": conditions}


def is_steady(settings):
    return settings["model.name"] == "lstm" or settings.get("model.positions") == "alibi"
