"""The report's own figures for studies on distillation: teachers with their students, and spikes of correlations.

Panigrahi et al. 2025: figures 4.4, 4.5 and 4.16 of the thesis (curves of students beside their teacher's), and 4.5, 4.12, 4.15 and 4.20
(correlations of a teacher's answer with monomials). The latter need rows of `manyseeds probe --probe monomials` at several steps.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.claims.evidence import Condition, Evidence, gather
from results.plain_values import Options
from results.report.distillation import parity_thesis as thesis
from results.report.distillation.figures import Lesson, Spikes, lessons, spikes
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Bands, bands_of, common_points
from results.rows.accuracy_curves import Look, watch
from results.rows.probe_values import Items, Values, by_step, parts
from results.rows.summary import Replicate, of_replicates
from results.store.manifest import Manifest, has_settings_of, reported
from results.store.tables import Store, read

Curves = Mapping[str, Sequence[Look]]
TASKS = ("sparse_parity", "hierarchical_parity", "pcfg", "corpus")
MOST = 4  # replicates of a condition that have a panel of spikes: those with the lowest seeds
_LOOKS = 3  # fewer steps are no curve
Kind = tuple[tuple[str, str], ...]
_ITEM = re.compile(r"(node=\d+ )?degree=(\d+) (inside|outside|outside_sd|x\d+)$")


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, *TASKS):
        return []
    evidence = gather(manifest, replicates)
    evaluations = read(store, "evaluations", filter=reported(manifest), winning=finished)
    every = watch(evaluations)
    curves = {
        replicate.key: every[replicate.key]
        for replicate in replicates
        if replicate.status == "finished" and replicate.key in every
    }
    monomials = pc.starts_with(pc.field("probe"), "monomials")  # a name may end in the probe's options
    probes = by_step(read(store, "probes", filter=monomials, winning=finished), "monomials")
    return _lessons(evidence, curves, finished, manifest) + _spikes(evidence, curves, probes)


def _lessons(evidence: Evidence, curves: Curves, finished: pa.Table, manifest: Manifest) -> list[Drawn]:
    """A panel for every teacher, or for each model and horizon of its students where these differ."""
    by_key = {replicate.key: condition.name for condition in evidence.conditions for replicate in condition.replicates}
    rows = {row["key"]: row for row in finished.select(["key", "parent_key", "parent_step"]).to_pylist()}
    groups: dict[str, dict[Kind, list[str]]] = {}
    for student in evidence.conditions:
        if student.settings.get("stage.labels") != "teacher":
            continue
        parents = {by_key.get(rows[one.key]["parent_key"] or "") for one in student.replicates if one.key in rows}
        for teacher in sorted(parent for parent in parents if parent is not None):
            groups.setdefault(teacher, {}).setdefault(_kind(student), []).append(student.name)
    panels = {}
    for teacher, kinds in groups.items():
        whole = _bands(evidence.named(teacher), curves)
        for kind, students in kinds.items():
            plain = [each for each in evidence.conditions if "stage.number" not in each.settings and each.name != teacher]
            arms = [*(each.name for each in plain if _kind(each) == kind), *students]
            arm_bands = {name: bands for name in arms if (bands := _bands(evidence.named(name), curves)) is not None}
            if whole is None or not any(name in arm_bands for name in students):
                continue
            learned = {name: _learned(evidence.named(name), rows, curves) for name in students if name in arm_bands}
            marks = {name: points for name, points in learned.items() if points}
            panels[_title(teacher, kind, list(kinds))] = Lesson((f"{teacher} (teaches)", whole), arm_bands, marks)
    if not panels:
        return []
    caption = (
        "Share of scored positions that are right, on the set that is scored most often, against each training's own steps; diverged "
        f"seeds aside. Broken, black: the teachers. {BANDS} Open marks on a teacher's curve: what each seed of a student of this colour "
        "learns from first."
    )
    if (manifest.get("source") or {}).get("card") == thesis.CARD:
        panels = {thesis.TITLE: _theirs(panels), **panels}
        caption = f"First what the thesis shows, redrawn from its figure by eye; then what was seen here. {caption}"
    return [("students-and-teachers", "Students and their teachers", caption, lessons(panels))]


def _theirs(panels: Mapping[str, Lesson]) -> Lesson:
    """The thesis' curves under the names that the same strategies have here."""
    names = list(dict.fromkeys(name for lesson in panels.values() for name in lesson.students))
    students = {}
    for strategy, points in thesis.STUDENTS.items():
        name = next((name for name in names if name.partition(",")[0] == strategy), strategy)
        students[name] = thesis.bands(points, thesis.LABELS_BAND if strategy == "labels" else None)
    teacher = next(iter(panels.values())).teacher[0]
    return Lesson((teacher, thesis.bands(thesis.TEACHER)), students)


def _kind(condition: Condition) -> Kind:
    """What the trainings of one panel share: options of model and task, and the number of steps."""
    kept = {option: str(value) for option, value in condition.settings.items() if option.startswith(("model.", "task."))}
    return tuple(sorted((kept | {"train.steps": str(condition.settings["train.steps"])}).items()))


def _title(teacher: str, kind: Kind, kinds: Sequence[Kind]) -> str:
    """The title of a panel: the teacher, and what distinguishes these students from its others."""
    apart = [
        f"{option.split('.')[1]} {value}" for option, value in kind if any((option, value) not in other for other in kinds)
    ]
    return f"{teacher}; students: {', '.join(apart)}" if apart else teacher


def _bands(condition: Condition, curves: Curves) -> Bands | None:
    """Accuracy over the seeds at the steps that all of them were scored at."""
    rows = [dict(curve) for curve in of_replicates(condition.replicates, curves)]
    points = common_points(rows)
    return bands_of(points) if len(points) > 1 else None


def _learned(condition: Condition, rows: Mapping[str, Options], curves: Curves) -> list[tuple[float, float]]:
    """(step, accuracy) of the first checkpoint of each seed, its teacher's accuracy at the nearest look; not the teacher's last one."""
    points = []
    for replicate in condition.replicates:
        row = rows.get(replicate.key, {})
        curve, step = curves.get(row.get("parent_key") or ""), row.get("parent_step")
        if curve and step is not None and step < curve[-1][0]:
            points.append((float(step), min(curve, key=lambda look: abs(look[0] - step))[1]))
    return sorted(set(points))


def _spikes(evidence: Evidence, curves: Curves, probes: Mapping[str, Mapping[int, Items]]) -> list[Drawn]:
    """A figure for each degree, of the replicates that were probed at several steps. probes: values by key, step and item."""
    values: dict[str, dict[int, dict[tuple[str, int, str], float]]] = {}
    for key, steps in probes.items():
        for step, items in steps.items():
            found = {match: value for item, value in items.items() if (match := _ITEM.match(item or ""))}
            values.setdefault(key, {})[step] = {
                (match[1] or "", int(match[2]), match[3]): value for match, value in found.items()
            }
    drawn = []
    degrees = sorted({degree for by in values.values() for items in by.values() for _, degree, _ in items})
    for degree in degrees:
        panels = {}
        for condition in evidence.conditions:
            probed = [replicate for replicate in condition.replicates if len(values.get(replicate.key, ())) >= _LOOKS]
            for replicate in sorted(probed, key=lambda replicate: replicate.seeds)[:MOST]:
                panel = _spike(values[replicate.key], degree, curves.get(replicate.key))
                if panel is not None:
                    panels[f"{condition.name}, seed {replicate.init_seed}"] = panel
        if panels:
            caption = (
                f"Absolute correlation of the answer, its first class at temperature 1, with monomials of degree {degree}: within the "
                f"support{' one by one' if degree == 1 else ', their mean'} (of hierarchical parity the mean of each node on the way to "
                f"class 0), and outside it. At most {MOST} seeds of a condition."
            )
            drawn.append((f"correlations-{degree}", f"Correlations of degree {degree} by step", caption, spikes(panels)))
    return drawn


def _spike(
    by_step: Mapping[int, Mapping[tuple[str, int, str], float]], degree: int, curve: Sequence[Look] | None
) -> Spikes | None:
    """The spikes of one replicate; None where a degree has no sets outside."""
    steps = sorted(step for step, items in by_step.items() if any(at == degree for _, at, _ in items))
    rows = [
        Values({(node, item): value for (node, at, item), value in by_step[step].items() if at == degree}) for step in steps
    ]
    places = [place for place in (rows[0] if rows else ()) if all(place in row for row in rows)]
    nodes = [node for node, item in places if item == "outside"]
    if not nodes or len(rows) < _LOOKS:
        return None
    bits = sorted((item for node, item in places if not node and parts(item, "x{n}")), key=lambda item: int(item[1:]))
    lines = [("", bit) for bit in bits] or [(node, "inside") for node, item in places if item == "inside"]

    def row_of(place: tuple[str, str]) -> np.ndarray:
        return np.array([row[place] for row in rows], dtype=np.float64)

    outside, sd = (np.mean([row_of((node, item)) for node in nodes], axis=0) for item in ("outside", "outside_sd"))
    table = np.array(curve or [], dtype=np.float64).reshape(-1, 2)
    inside = {(node.strip() or item if item == "inside" else item): row_of((node, item)) for node, item in lines}
    return Spikes(np.array(steps, dtype=np.float64), inside, outside, sd, (table[:, 0], table[:, 1]) if len(table) else None)
