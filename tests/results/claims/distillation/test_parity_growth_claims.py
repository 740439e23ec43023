"""The claims on how parities are taught as they grow longer, and on trees of them, where rows deserve each verdict."""

from typing import Any

import pyarrow as pa
import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from results.rows.summary import Replicate, Score
from results.store.manifest import label, stage_of
from results.store.schema import SCHEMAS
from tests.results.claims.distillation.parity_rows import FAILED, NEVER, judged, planned

LENGTHS = (20, 30, 40, 50)
OTHERS = {"teacher": (2_000, 2.0), "labels": (8_000, 2.5), "progressive": (4_000, 1.1)}


@pytest.fixture(scope="module")
def growth() -> dict[str, Any]:
    return planned("growth")


@pytest.fixture(scope="module")
def p10() -> dict[str, Any]:
    return planned("p10")


def powers(**changes: tuple[float, float] | None):
    """Condition and seed → steps: a · (d / 10)^b, spread by 10 % over seeds, on the grid of looks; None: never."""
    laws: dict[str, Any] = OTHERS | {"middle": (10_000, 0.5), "one_shot": (9_000, 3.0), "one_shot_cold": (9_000, 3.0)} | changes

    def times(name: str, seed: int) -> int | None:
        bare, _, rest = name.partition(",")
        law, length = laws[bare], int(rest.split("=")[1].split(",")[0])
        if law is None:
            return None
        steps = law[0] * (length / 10) ** law[1] * (0.95 + 0.1 * (seed * 5 % 12) / 11)
        return round(steps / 2000) * 2000 + 402_000  # `rows` writes looks up to 0.4M before and after

    return times


def test_one_shot_grows_by_a_higher_power_of_the_length(growth):
    found = judged(growth, "PD-growth", flat(powers()))
    assert found.verdict == REPRODUCED
    assert "power 3.0" in found.finding.measured


def test_every_temperature_of_the_middle_checkpoint_counts(growth):
    """The theorem holds with answers at one temperature, and with a colder one the steps grow as fast as one-shot's."""
    extra = [
        each | {"name": each["name"].replace("middle", "middle_cold")}
        for each in growth["conditions"]
        if "middle" in each["name"]
    ]
    extra = [
        each | {"settings": each["settings"] | {"stage": each["settings"]["stage"] | {"temperature": 1e-9}}} for each in extra
    ]
    first = {each["name"]: at for at, each in enumerate(growth["conditions"])}
    count = len(growth["conditions"])
    added = [
        [f"{key}-cold", count + at, *seeds]
        for at, each in enumerate(extra)
        for key, index, *seeds in growth["replicates"]
        if index == first[each["name"].replace("middle_cold", "middle")]
    ]
    both = growth | {"conditions": growth["conditions"] + extra, "replicates": growth["replicates"] + added}
    assert judged(both, "PD-growth", flat(powers(middle_cold=(10_000, 0.5)))).verdict == REPRODUCED
    assert judged(both, "PD-growth", flat(powers(middle_cold=(10_000, 3.0)))).verdict == NOT_REPRODUCED


def flat(times):
    """Without what `rows` needs before a transition: looks there are written at their own steps."""
    return lambda name, seed: None if (step := times(name, seed)) is None else step - 400_000


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"one_shot": (9_000, 0.5), "one_shot_cold": (9_000, 0.5)}, NOT_REPRODUCED),  # as slowly
        ({"one_shot": (9_000, 1.2)}, NOT_REPRODUCED),  # at one temperature less than one power more
        ({"middle": (10_000, 3.0)}, NOT_REPRODUCED),  # both as d³: the opposite of the theorem
        ({"one_shot": (90_000, 0.5), "one_shot_cold": (90_000, 0.5)}, NOT_REPRODUCED),  # slower by a factor, not by a power
        ({"teacher": None}, PRECONDITION),
        ({"one_shot": None}, TOO_FEW),  # never right: no power
    ],
)
def test_a_constant_factor_is_no_growth(growth, changes, verdict):
    assert judged(growth, "PD-growth", flat(powers(**changes))).verdict == verdict


@pytest.mark.parametrize(
    ("student", "verdict"),
    [
        (10_100_000, REPRODUCED),
        (15_000_000, REPRODUCED),  # 1.5 times its teacher's, which the value allows
        (17_500_000, NOT_REPRODUCED),
        (4_000_000, NOT_REPRODUCED),  # sooner is not with it
        ([10_000_000] * 4 + [18_000_000] * 6, TOO_FEW),
        (NEVER, NOT_REPRODUCED),
        ([10_000_000] * 9 + [FAILED], TOO_FEW),
    ],
)
def test_a_student_tracks_its_teacher(student, verdict):
    manifest = planned("p1") | {"claims": {"PD-track": {"value": 1.5}}}
    usual = {"teacher": 10_000_000, "labels": NEVER, "labels_wider": NEVER}

    def times(name: str, seed: int) -> Any:
        found = student if name.startswith("progressive") else usual.get(name, NEVER)
        return found[seed] if isinstance(found, list) else found

    assert judged(manifest, "PD-track", times).verdict == verdict
    if student == NEVER:
        fast = usual | {"labels": 11_000_000}
        assert judged(manifest, "PD-track", lambda name, seed: fast.get(name, NEVER)).verdict == PRECONDITION


def accuracies(manifest: dict[str, Any], of: Any) -> list[Replicate]:
    """Every planned replicate, with these accuracies on the set `test` by condition, stage left out, and number of the seed."""
    found, seen = [], {}
    for key, index, init_seed, data_seed in manifest["replicates"]:
        condition = manifest["conditions"][index]
        at = seen[index] = seen.get(index, -1) + 1
        right = of(label(condition["name"], stage_of(condition)).partition(",")[0], at)
        score = Score(round(1000 * (1 - right)), 1000, 1000, 1 - right, 0.0, 1.0)
        scores = {"test": score, "curve": score}
        found.append(
            Replicate(condition["name"], stage_of(condition), key, init_seed, data_seed, "finished", 0.1, None, scores)
        )
    return found


@pytest.mark.parametrize(
    ("pairs", "with_f", "single", "teacher", "verdict"),
    [
        (0.95, 0.7, 0.6, 1.0, REPRODUCED),
        (0.7, 0.95, 0.6, 1.0, NOT_REPRODUCED),  # the one outside teaches more
        (0.7, 0.6, 0.95, 1.0, NOT_REPRODUCED),  # one checkpoint is enough
        (0.7, 0.7, 0.69, 1.0, TOO_FEW),  # pairs are alike
        (0.7, 0.7, 0.7, 1.0, TOO_FEW),  # all are
        (0.7, 0.6, 0.6, 1.0, REPRODUCED),  # the one outside teaches as the last does, so pairs with it are single ones
        (0.95, 0.7, 0.6, 0.5, PRECONDITION),
    ],
)
def test_two_checkpoints_must_lie_inside(pairs, with_f, single, teacher, verdict):
    manifest = planned("p12")

    def of(name: str, seed: int) -> float:
        if name in ("teacher", "labels", "one_shot"):
            return teacher if name == "teacher" else 0.2
        return with_f if "_f" in name else pairs if "_" in name else single

    (found,) = verdicts(manifest, accuracies(manifest, of))
    assert found.verdict == verdict, found.finding


def levels(known: list[Replicate], peaks: Any, height: float = 5.0) -> pa.Table:
    """Rows of the probe of 10 kept steps: node 1, 2, 4 stand out at these of them."""
    found = []
    for at, each in enumerate(known):
        for place in range(10):
            row = {"key": each.key, "stage": 0, "pack": "p", "step": 500_000 * (place + 1), "probe": "monomials"}
            for node, peak in zip((1, 2, 4), peaks(at), strict=True):
                inside = 0.01 * (height if place == peak else 1.0)
                found += [row | {"item": f"node={node} degree=2 inside", "value": inside}]
                found += [row | {"item": f"node={node} degree=2 outside", "value": 0.01}]
    return pa.Table.from_pylist(found, SCHEMAS["probes"])


@pytest.mark.parametrize(
    ("peaks", "height", "verdict"),
    [
        (lambda seed: (2, 4, 6), 5.0, REPRODUCED),
        (lambda seed: (6, 2, 4), 5.0, REPRODUCED),  # the paper gives no order
        (lambda seed: (4, 4, 4), 5.0, TOO_FEW),  # between two kept steps they may differ
        (lambda seed: (2, 4, 6), 1.5, NOT_REPRODUCED),  # noise peaks somewhere too
        (lambda seed: (2, 4, 6) if seed < 6 else (4, 4, 4), 5.0, TOO_FEW),
    ],
)
def test_levels_are_found_one_by_one(peaks, height, verdict):
    manifest = planned("p11")
    known = accuracies(manifest, lambda name, seed: 1.0)
    assert verdicts(manifest, known)[0].verdict == NOT_RUN
    (found,) = verdicts(manifest, known, measured=levels(known, peaks, height))
    assert found.verdict == verdict
    guessing = accuracies(manifest, lambda name, seed: 0.2)
    assert verdicts(manifest, guessing, measured=levels(guessing, peaks))[0].verdict == PRECONDITION


def test_students_of_labels_are_not_paired_by_their_seeds(p10):
    """Paired, 10 of 10 seeds are sooner by one look; the two samples hardly differ."""
    order = [5, 2, 8, 0, 9, 3, 7, 1, 6, 4]
    own = [1_000_000 + 300_000 * place for place in order]
    later = {"labels": [each + 100_000 for each in own], "labels_narrower": NEVER}
    manifest = p10 | {"claims": {"PD-R3": {"value": 0.9}}}

    def times(name: str, seed: int) -> Any:
        bare = name.partition(",")[0]
        if bare == "teacher":
            return 1_000_000
        found = own if bare == "progressive" else 1_000_000 if bare.startswith("progressive") else later.get(bare, NEVER)
        return found[seed] if isinstance(found, list) else found

    assert judged(manifest, "PD-R3", times).verdict == TOO_FEW


@pytest.mark.parametrize(
    ("last_alone", "verdict"),
    [
        (("one_shot", "one_shot_cold"), f"{NOT_REPRODUCED} (scaled)"),
        (("one_shot",), f"{NOT_REPRODUCED} (scaled)"),
        (("one_shot_cold",), NOT_RUN),
    ],
)
def test_a_cold_student_of_the_last_checkpoint_alone_does_not_stand_for_the_papers(last_alone, verdict):
    """Figure 4.16 has it at a temperature of 1; here that one is sooner than the student of the middle checkpoint."""
    manifest = planned("p8", "laptop", [f"only=[teacher,labels,two_shot_1e_4,{','.join(last_alone)}]"])
    usual = {"teacher": 600, "two_shot_1e_4": 800, "one_shot": 500}
    manifest |= {"claims": {"PD-P8": {"value": 0.9}}}
    assert judged(manifest, "PD-P8", lambda name, seed: usual.get(name.partition(",")[0], NEVER)).verdict == verdict


@pytest.mark.parametrize(
    ("cold", "hot", "verdict"), [(500, NEVER, SCALED), (NEVER, 500, TOO_FEW), (3900, 500, SCALED), (500, 500, SCALED)]
)
def test_transformers_learn_from_one_cold_checkpoint(cold, hot, verdict):
    """What a teacher at temperature 1 does is not the claim's."""
    manifest = planned("p8", "laptop") | {"claims": {"PD-P8": {"value": 0.9}}}
    usual = {"teacher": 600, "two_shot_1e_4": cold, "two_shot_1": hot}
    assert judged(manifest, "PD-P8", lambda name, seed: usual.get(name.partition(",")[0], NEVER)).verdict == verdict
