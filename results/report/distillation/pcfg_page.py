"""The report's own figures for studies of distillation on grammars.

Accuracy is 1 - errors/count of the scored tokens; a diverged replicate's is 0. Measures are drawn where `manyseeds probe --probe ngrams`
and `--probe nonterminals` have added rows.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.claims.distillation.strategies import LABELS, ONE_SHOT, PROGRESSIVE
from results.claims.evidence import Evidence, gather
from results.report.distillation import pcfg_thesis as thesis
from results.report.distillation.pcfg_measured import measures, sweep
from results.report.distillation.pcfg_students import Student, arms, distilled, title_of
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Panels, add_line, heat_maps, lines
from results.rows.probe_values import by_step
from results.rows.summary import Replicate
from results.store.manifest import Manifest, has_settings_of, reported
from results.store.tables import Store, read


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, "pcfg"):
        return []
    evidence = gather(manifest, replicates)
    test = next((name for name, changed in evidence.definitions.items() if not changed), None)
    students = distilled(evidence)
    if test is None or not students:
        return []
    rows = read(store, "probes", filter=pc.starts_with(pc.field("probe"), "n"), winning=finished)
    evaluations = read(store, "evaluations", filter=reported(manifest), winning=finished)
    ngrams = by_step(rows, "ngrams")
    return (
        strategies(evidence, students, test)
        + sweep(students, test, ngrams, evaluations)
        + measures(evidence, students, ngrams, by_step(rows, "nonterminals"))
    )


def strategies(evidence: Evidence, students: Sequence[Student], test: str) -> list[Drawn]:
    """Lines of accuracy by horizon, and a table beside the thesis'."""
    tables: dict[str, list[list[float | None]]] = {}
    panels: Panels = {}
    rows = (LABELS, ONE_SHOT, PROGRESSIVE, thesis.TEACHER)
    accuracies = arms(evidence, students, test)
    places = sorted({at for group in accuracies.values() for cells in group.values() for at in cells})
    if len(places) < 2 or not any(PROGRESSIVE in group for group in accuracies.values()):
        return []
    for about, group in accuracies.items():
        title = title_of(students, about)
        for kind in rows:
            add_line(panels, title, kind, group.get(kind, {}).items())
        cells = [[group.get(kind, {}).get(at) for at in places] for kind in rows]
        tables[f"{title}, median of seeds"] = [
            [None if values is None else float(np.median(values)) for values in row] for row in cells
        ]
    if all(
        student.settings["task.grammar"] == "cfg3b" and student.settings["task.objective"] == "masked" for student in students
    ):
        theirs = thesis.STRATEGIES
        tables["Thesis, figure 4.4, 8 heads"] = [[theirs[kind].get(at, (None,))[0] for at in places] for kind in rows]
    which = (
        "Of several one-shot students (temperatures), and of several of any other strategy, the one with the best mean counts."
    )
    caption = (
        f"Accuracy on “{test}”. {which} {BANDS} The teacher: models like it, trained on labels for as long as the students."
    )
    numbers = f"Accuracy in per cent on “{test}” by strategy and by steps of training over the teacher's. {which}"
    return [
        ("strategies", "Accuracy by strategy and horizon", caption, lines(panels, "steps over the teacher's")),
        (
            "strategies-table",
            "Accuracy by strategy and horizon, beside the thesis",
            numbers,
            heat_maps(tables, rows, [f"{at:g}" for at in places], "steps over the teacher's"),
        ),
    ]
