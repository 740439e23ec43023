"""The claims on Dyck languages give each verdict where the rows of their studies deserve it."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from results.claims.dyck.balance import spearman
from results.claims.dyck.variation import random_variation
from results.store.schema import SCHEMAS
from results.store.tables import committed, open_store, read
from tests.results.claims.planned_rows import planned, replicates

N = 40
ORDER = np.random.default_rng(3).permutation(N)  # of the replicates by whatever is to be tied to nothing


@pytest.fixture(scope="module")
def studies():
    return {name: planned("dyck", name) for name in ("balance", "lengths", "mass", "variation")}


def judged(manifest, claim, errors, betas=None, pairs=None, keep=lambda name, number: True):
    """errors(settings, changed by the set) → rates; betas(condition) → β by seed; pairs(condition, i, j) → variation."""
    known = replicates(manifest, errors)
    names = [each["name"] for each in manifest["conditions"]]
    own = {name: [each for each in known if each.condition == name] for name in names}
    probes, measured = {}, []
    for name, mine in own.items():
        values = None if betas is None else betas(name)
        for number, each in enumerate(mine):
            if values is not None and keep(name, number):
                probes[each.key] = {("balance", 0, 0, "beta_mean"): float(values[number])}
            for other in mine[:number] if pairs is not None and keep(name, number) else []:
                layer = 0 if name == "minimal" else 1
                row = {"key": each.key, "stage": 0, "pack": "p", "step": 1, "probe": "variation", "layer": layer, "head": 0}
                measured.append(
                    row | {"item": "fixed", "value": pairs(name, each.init_seed, other.init_seed), "other_key": other.key}
                )
    table = pa.Table.from_pylist(measured, SCHEMAS["probes"])
    stated = manifest | {"claims": {claim: manifest["claims"][claim]}, "overrides": [], "reductions": []}
    (found,) = verdicts(stated, known, probes=probes, measured=table)
    return found.verdict


def _long(changed):
    return changed.get("length", 0) == 500


def _penalised(settings):
    return bool(settings.get("train.consistency.weight"))


def _errors(own=0.001, base=0.12, penalised=0.01, uniform=0.001):
    def rates(settings, changed):
        if _long(changed):
            return penalised if _penalised(settings) else base
        return uniform if settings["model.attention"] == "uniform" else own

    return rates


def _betas(base=0.3, penalised=0.1):
    return lambda name: np.linspace(0.9, 1.1, N) * (penalised if "contrastive" in name else base)


@pytest.mark.parametrize(
    ("uniform", "verdict"),
    [
        (0.001, REPRODUCED),
        (0.05, NOT_REPRODUCED),
        ([0.001] * 20 + [0.05] * 20, TOO_FEW),
        ([0.001] * 31 + [0.05] * 9, REPRODUCED),
    ],
)
def test_uniform_attention(studies, uniform, verdict):
    assert judged(studies["balance"], "DY3", _errors(uniform=uniform)) == verdict


def test_uniform_attention_that_is_not_there(studies):
    manifest = studies["balance"]
    index = next(i for i, each in enumerate(manifest["conditions"]) if each["name"] == "uniform")
    others = manifest | {
        "conditions": [each for each in manifest["conditions"] if each["name"] != "uniform"],
        "replicates": [each for each in manifest["replicates"] if each[1] != index],
    }
    assert judged(others, "DY3", _errors()) == NOT_RUN


@pytest.mark.parametrize(
    ("errors", "betas", "verdict"),
    [
        (_errors(), _betas(), REPRODUCED),
        (_errors(), _betas(penalised=0.6), NOT_REPRODUCED),  # β rises
        (_errors(penalised=0.4), _betas(), NOT_REPRODUCED),  # errors rise
        (_errors(base=0.01, penalised=0.12), _betas(0.1, 0.3), NOT_REPRODUCED),  # the opposite
        (_errors(), lambda name: np.where(ORDER % 2, 0.1, 0.3) if "contrastive" in name else np.full(N, 0.2), TOO_FEW),
        (_errors(own=0.05), _betas(), PRECONDITION),
        (_errors(), None, NOT_RUN),
    ],
)
def test_the_penalty(studies, errors, betas, verdict):
    assert judged(studies["balance"], "DY4", errors, betas) == verdict


def test_a_replicate_that_was_not_probed_is_waited_for(studies):
    keep = lambda name, number: number > 0  # noqa: E731
    assert judged(studies["balance"], "DY4", _errors(), _betas(), keep=keep) == TOO_FEW


def _tied(whole, prefix, noise=0.3, n=N):
    """β and long errors: a correlation of their ranks by sign on whole strings and on prefixes, 0 for none."""
    z, w = np.random.default_rng(1).normal(size=(2, n))

    def mixed(sign):
        return sign * z + noise * w if sign else w

    def rates(settings, changed):
        if not _long(changed):
            return 0.001
        sign = whole if settings["task.complete"] else prefix
        return list(0.1 * np.exp(0.2 * mixed(sign)))

    return rates, lambda name: np.exp(z)


@pytest.mark.parametrize(
    ("whole", "prefix", "verdict"),
    [
        (1, 0, REPRODUCED),  # errors rise with β on whole strings alone
        (1, 1, NOT_REPRODUCED),  # and on prefixes
        (-1, 0, NOT_REPRODUCED),
        (0, 1, NOT_REPRODUCED),  # the other kind
        (0, 0, TOO_FEW),
        (1, -1, REPRODUCED),
    ],
)
def test_the_violation_goes_with_long_errors(studies, whole, prefix, verdict):
    assert judged(studies["balance"], "DY5", *_tied(whole, prefix)) == verdict
    assert judged(studies["mass"], "DY7", *_tied(whole, prefix, n=80)) == verdict


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("error", [0.0, 1.0])
def test_a_kind_of_strings_on_which_all_are_alike_shows_no_correlation_and_no_lack_of_one(studies, complete, error):
    """All perfect, or none ever sure."""
    for study, claim, n in (("balance", "DY5", N), ("mass", "DY7", 2 * N)):
        tied, betas = _tied(1, 0, n=n)

        def errors(settings, changed, tied=tied, n=n):
            alike = _long(changed) and settings["task.complete"] is complete
            return [error] * n if alike else tied(settings, changed)

        assert judged(studies[study], claim, errors, betas) == PRECONDITION


def test_of_two_conditions_on_one_kind_of_strings_none_is_chosen(studies):
    manifest = studies["balance"]
    conditions = [dict(each) for each in manifest["conditions"]]
    uniform = next(each for each in conditions if each["name"] == "uniform")
    model = uniform["settings"]["model"] | {"attention": "learned", "width": 20}
    uniform["settings"] = uniform["settings"] | {"model": model}
    assert judged(manifest | {"conditions": conditions}, "DY5", *_tied(1, 0)) == NOT_RUN


def test_the_violation_is_held_against_the_accuracy_that_the_claim_names(studies):
    """A set scored by the closing bracket alone does not decide DY7."""
    manifest = studies["mass"]
    sets = {name: each | {"definition": each["definition"] | {"sure": 0.0}} for name, each in manifest["sets"].items()}
    other = manifest | {"sets": {"in_distribution": manifest["sets"]["in_distribution"], "long_sure": sets["long_sure"]}}
    assert judged(other, "DY7", *_tied(1, 0, n=80)) == NOT_RUN


def test_the_violation_needs_models_that_have_learned(studies):
    _, betas = _tied(1, 0)
    assert judged(studies["balance"], "DY5", _errors(own=0.2), betas) == PRECONDITION
    assert judged(studies["balance"], "DY5", _errors()) == NOT_RUN


def _by_length(power, spread=0.4):
    noise = np.exp(spread * np.random.default_rng(2).normal(size=N))
    return lambda name: noise * float(name[1:]) ** power


@pytest.mark.parametrize(
    ("power", "verdict"),
    [
        (-1.0, REPRODUCED),
        (-5.0, REPRODUCED),
        (0.0, NOT_REPRODUCED),
        (-0.3, NOT_REPRODUCED),
        (1.0, NOT_REPRODUCED),
        (-0.5, TOO_FEW),
    ],
)
def test_the_violation_by_length(studies, power, verdict):
    assert judged(studies["lengths"], "DY6", lambda settings, changed: 0.001, _by_length(power)) == verdict


@pytest.mark.parametrize("which", ["n16", "n136"])
def test_a_violation_of_nought_has_no_logarithm(studies, which):
    """A single one would make the slope infinite."""
    betas = _by_length(-1.0)

    def one_nought(name):
        return np.where((np.arange(N) == 3) & (name == which), 0.0, betas(name))

    assert judged(studies["lengths"], "DY6", lambda settings, changed: 0.001, one_nought) == PRECONDITION


def test_the_violation_by_length_of_models_that_have_not_learned(studies):
    assert judged(studies["lengths"], "DY6", lambda settings, changed: 0.1, _by_length(-1)) == PRECONDITION


def _pairs(standard, minimal, spread=0.3):
    def value(name, one, other):
        middle = minimal if name == "minimal" else standard
        return middle * (1 + spread * np.sin(17 * one + 31 * other))

    return value


@pytest.mark.parametrize(
    ("claim", "standard", "minimal", "verdict"),
    [
        ("DY1", 2.2, 0.24, REPRODUCED),
        ("DY1", 0.24, 2.2, NOT_REPRODUCED),  # the opposite
        ("DY1", 0.3, 0.24, NOT_REPRODUCED),
        ("DY1", 0.48, 0.24, TOO_FEW),
        ("DY2", 2.2, 0.24, REPRODUCED),
        ("DY2", 30.0, 0.24, REPRODUCED),  # at least half
        ("DY2", 0.3, 0.24, NOT_REPRODUCED),
        ("DY2", 3.1 / 2, 0.24, TOO_FEW),
    ],
)
def test_variation(studies, claim, standard, minimal, verdict):
    assert judged(studies["variation"], claim, lambda settings, changed: 0.001, pairs=_pairs(standard, minimal)) == verdict


@pytest.mark.parametrize("claim", ["DY1", "DY2"])
def test_variation_needs_every_pair_of_models_that_have_learned(studies, claim):
    good = lambda settings, changed: 0.001  # noqa: E731
    assert judged(studies["variation"], claim, good) == NOT_RUN
    keep = lambda name, number: number < N - 1  # noqa: E731
    assert judged(studies["variation"], claim, good, pairs=_pairs(2.2, 0.24), keep=keep) == TOO_FEW
    assert judged(studies["variation"], claim, lambda s, c: 0.05, pairs=_pairs(2.2, 0.24)) == PRECONDITION


def test_random_variation_is_that_of_uniform_rows():
    assert [round(random_variation(n), 2) for n in (14, 16, 17, 19)] == [2.77, 3.00, 3.10, 3.30]
    rows = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 20_000))
    found = ((rows[0] - rows[1]) ** 2).sum(-1).mean()
    assert found == pytest.approx(random_variation(5) - random_variation(4), rel=0.03)


def test_spearman_is_scipys():
    from scipy.stats import spearmanr

    x, y = np.random.default_rng(0).integers(5, size=(2, 30)).astype(float)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert spearman(x, np.ones(30)) == 0


def test_how_many_models_of_prefixes_err_as_often_as_any():
    """docs/studies/dyck/README.md says why DY7 hangs on few answers."""
    store = open_store("docs/studies/dyck", "dyck-mass")
    prefix = {row["key"] for row in committed(store).to_pylist() if row["condition"] == "prefix"}
    rows = read(store, "evaluations").to_pylist()
    errors = np.array(
        [row["errors"] for row in rows if row["key"] in prefix and (row["set"], row["metric"]) == ("long_sure", "mass")]
    )
    most = errors.max()
    page = " ".join(Path("docs/studies/dyck/README.md").read_text(encoding="utf-8").split())
    assert f"{(errors == most).sum()} of the {len(errors)} make {most:,} errors on long prefixes" in page
    assert f"and {(errors >= most - 20).sum()} are within 20 errors of that" in page


def test_what_the_last_layer_of_copiers_looks_at():
    """docs/studies/dyck/README.md: on the fixed string, seeds whose closing brackets look at opening ones, and at equal brackets alone."""
    string, pairs = "s(((())))[[[[]]]]", {")": "(", "]": "["}
    store = open_store("docs/studies/dyck", "dyck-copying")
    seeds = {row["key"]: row["init_seed"] for row in committed(store).to_pylist() if row["condition"] == "four_layers"}
    equal, opening = defaultdict(list), defaultdict(list)
    for row in read(store, "probes").to_pylist():
        if row["probe"] == "map" and row["layer"] == 3 and row["key"] in seeds:
            query, key = (string[int(place)] for place in row["item"].split(","))
            if query != "s":
                equal[seeds[row["key"]], query].append(row["value"] * (key == query))
                opening[seeds[row["key"]], query].append(row["value"] * (key == pairs.get(query)))
    own = {at: sum(weights) / 4 for at, weights in equal.items()}  # each bracket stands in the string four times
    back = {at: sum(weights) / 4 for at, weights in opening.items()}
    tracking = [seed for seed in seeds.values() if max(back[seed, ")"], back[seed, "]"]) > 0.9]
    copying = [seed for seed in seeds.values() if min(own[seed, bracket] for bracket in "()[]") > 0.9]
    assert not set(tracking) & set(copying)
    page = " ".join(Path("docs/studies/dyck/README.md").read_text(encoding="utf-8").split())
    assert f"of their pair in the last layer of {len(tracking)} of {len(seeds)} seeds" in page
    assert f"In the other {len(copying)}, each bracket looks at brackets equal to itself" in page
