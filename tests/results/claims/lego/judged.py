"""The verdict on a claim about LEGO for rows that a test specifies."""

import pyarrow as pa

from results.claims import verdicts
from results.store.schema import LABELS_RIGHT, SCHEMAS
from tests.results.claims.lego.lego_rows import rows


def judged(manifest, claim, wrong, probes=None, drop=(), labels=None, **terms):
    """`probes`: condition and seed → rows or None. drop: sets that are not there. labels: stage and seed → the share of its pool that is
    labelled right, or None."""
    cut = manifest | {
        "claims": {claim: manifest["claims"][claim] | terms},
        "sets": {name: each for name, each in manifest["sets"].items() if name not in drop},
    }
    known, evaluations = rows(cut, wrong)
    first = min(each.init_seed for each in known)
    found = {each.key: probes(each.condition, each.init_seed - first) for each in known} if probes else {}
    values = {key: each for key, each in found.items() if each is not None}
    curves = pa.Table.from_pylist(
        [
            {"key": each.key, "stage": each.stage, "pack": "p", "step": 9, "metric": LABELS_RIGHT, "value": share}
            for each in known
            if each.stage and labels and (share := labels(each.stage, each.init_seed - first)) is not None
        ],
        SCHEMAS["curves"],
    )
    (verdict,) = verdicts(cut, known, probes=values, evaluations=evaluations, curves=curves)
    assert verdict.finding.reason
    assert "nan" not in f"{verdict.finding.measured} {verdict.finding.reason}"
    return verdict
