"""The figures of a report on automata that need more than the scores: accuracy by position, and the monitored loss by learning rate."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.claims.evidence import Condition, Evidence
from results.plain_values import Options
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Panels, add_line, common_points, drawn_lines
from results.rows.plural import counted
from results.rows.summary import of_replicates
from results.statistics.intervals import Floats
from results.store.tables import Store, read

MOST_LINES = 36


def machine_of(options: Options) -> str:
    """The automaton's name; a table of a user's own is called table."""
    return str(options.get("task.automaton", "table"))


def arm_of(condition: Condition) -> str:
    """A condition's name without the automaton in front, so that an arm has one colour in all panels."""
    first, _, rest = condition.name.partition("_")
    return rest if rest and machine_of(condition.settings).startswith(first) else condition.name


def positions(store: Store, evidence: Evidence, finished: pa.Table) -> list[Drawn]:
    """Accuracy at every position of the longest words, where a study has one training length and no more lines than can be told apart."""
    trained, definitions = evidence.training_lengths, evidence.definitions
    lengths = {name: changed.get("length", trained[0]) for name, changed in definitions.items() if set(changed) <= {"length"}}
    if not lengths or len(trained) > 1 or len(evidence.conditions) > MOST_LINES:
        return []
    name = max(lengths, key=lambda name: lengths[name])
    rows = read(
        store, "profiles", filter=(pc.field("axis") == "position") & (pc.field("set") == name), winning=finished
    ).to_pylist()
    cells: dict[str, dict[int, float]] = {}
    for row in rows:
        cells.setdefault(row["key"], {})[row["lo"] + 1] = 1 - row["errors"] / row["count"]
    panels: Panels = {}
    for condition in evidence.conditions:
        points = common_points(of_replicates(condition.replicates, cells))
        add_line(panels, machine_of(condition.settings), arm_of(condition), points)
    caption = f"Share of words of “{name}” whose state is right at a position, diverged seeds aside. {BANDS} Dashed: the training length."
    title = "Accuracy by position in the longest words"
    return drawn_lines("accuracy-position", title, caption, panels, "position", marked=trained)


def rates(store: Store, evidence: Evidence, finished: pa.Table) -> list[Drawn]:
    """Median monitored loss at the last look against the learning rate, where conditions differ in that."""
    settings = [condition.settings for condition in evidence.conditions]
    if len({options["train.lr"] for options in settings}) < 2 or any("model.layers" not in options for options in settings):
        return []
    last: dict[str, tuple[int, float]] = {}
    steps_of = {row["key"]: row["steps"] for row in finished.select(["key", "steps"]).to_pylist()}
    for row in read(store, "curves", filter=pc.field("metric") == "monitor_loss", winning=finished).to_pylist():
        if row["key"] in steps_of:
            last[row["key"]] = max(last.get(row["key"], (0, np.inf)), (row["step"], row["value"]))
    points: dict[tuple[str, str], list[tuple[float, Floats]]] = {}
    for condition in evidence.conditions:
        options = condition.settings
        ended = [replicate for replicate in condition.replicates if replicate.key in last]
        values = np.array([last[one.key][1] if one.status == "finished" else np.inf for one in ended])
        line = machine_of(options), counted(options["model.layers"], "layer")
        points.setdefault(line, []).append((options["train.lr"], values))
    panels: Panels = {}
    for (machine, layers), at_rates in points.items():
        add_line(panels, machine, layers, at_rates)
    chosen = "; ".join(
        f"{machine}, {line}: {bands.x[int(np.argmin(bands.middle))]:g}"
        for machine, by_line in panels.items()
        for line, bands in by_line.items()
    )
    caption = f"Loss on the monitor set at its last look, which no result is made of. {BANDS} Lowest median: {chosen}."
    labels = {"label": "learning rate", "value": "monitored loss"}
    return drawn_lines("rates", "Learning rates by the monitor set", caption, panels, log=True, **labels)
