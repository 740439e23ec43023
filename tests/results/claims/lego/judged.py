"""The verdict on a claim about LEGO where a study's rows are as a test wants them."""

from results.claims import verdicts
from tests.results.claims.lego.lego_rows import rows


def judged(manifest, claim, wrong, probes=None, drop=(), **terms):
    """`probes`: condition and seed → rows or None. drop: sets that are not there."""
    cut = manifest | {
        "claims": {claim: manifest["claims"][claim] | terms},
        "sets": {name: each for name, each in manifest["sets"].items() if name not in drop},
    }
    known, evaluations = rows(cut, wrong)
    first = min(each.init_seed for each in known)
    found = {each.key: probes(each.condition, each.init_seed - first) for each in known} if probes else {}
    (verdict,) = verdicts(cut, known, {key: values for key, values in found.items() if values is not None}, evaluations)
    assert verdict.finding.reason
    assert "nan" not in f"{verdict.finding.measured} {verdict.finding.reason}"
    return verdict
