"""One replicate on a page of its own: how its errors fell during training, its scores, settings, seeds and provenance.

write_replicate_page(open_store("runs", "fflm-quick"), "3f2a")  # → runs/fflm-quick/report/replicate-3f2a….html
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from results.errors import StudyError
from results.names import slug
from results.output import report_folder
from results.plain_values import Row, Tree
from results.report.family import Links, ReportFamily, scored_answers
from results.report.family_sections import FAMILIES
from results.report.interactive import inline, plot
from results.report.page_parts import commit
from results.report.page_template import FOLDER, plain, render
from results.report.plots import figure_files
from results.report.plots.curves import Curve, error_curves
from results.rows.arrays import KeptArray
from results.rows.arrays import arrays as arrays_of
from results.rows.error_by_step import pooled
from results.rows.measures import ARRAY, is_experimental, label
from results.rows.options import flatten
from results.rows.summary import replicates_of, set_names
from results.store.json_columns import entries
from results.store.manifest import Manifest, manifest_of, reported, stage_of
from results.store.manifest import label as stage_label
from results.store.manifest_fields import PlannedRow
from results.store.tables import Store, read

MAX_VALUES = 1000  # rows of the table of an experiment's values


def write_replicate_page(
    store: Store, prefix: str, out: str | os.PathLike[str] | None = None, families: Sequence[ReportFamily] = FAMILIES
) -> Path:
    """Write replicate-<beginning of its key>.html into `out` (default: the study's report folder); returns the path.

    Raises StudyError where the store has no such study, where no key of its newest plan begins with `prefix` or several do, and
    where the replicate has not ended.
    """
    manifest = manifest_of(store)
    row = planned(manifest, prefix)
    own = pc.field("key") == row[0]
    ended = read(store, "replicates", filter=own).sort_by("stage")
    if not ended.num_rows and row[0] in read(store, "failures", ["keys"])["keys"].combine_chunks().flatten().to_pylist():
        raise StudyError(
            f"the replicate {row[0]} of {manifest['study']} has failed, so there is nothing to draw: manyseeds failures says why, and "
            "manyseeds retry runs it again"
        )
    if not ended.num_rows:
        raise StudyError(
            f"the replicate {row[0]} of {manifest['study']} has not ended, so there is nothing to draw: run the study again"
        )
    evaluations = read(store, "evaluations", filter=own & reported(manifest) & (pc.field("weights") == "raw"))
    if is_experimental(manifest):
        text = values_page(manifest, row, ended.to_pylist()[0], evaluations, arrays_of(store, store.study, key=row[0]))
        return report_folder(store, out).write(f"replicate-{slug(row[0][:12])}.html", text.encode())
    links: dict[str, Mapping[str, str]] = {}
    for family in families:
        links |= family.replicate_links(store, row[0], out) if family.replicate_links is not None else {}
    text = page(manifest, row, ended, evaluations, links, families)
    return report_folder(store, out).write(f"replicate-{slug(row[0][:12])}.html", text.encode())


def planned(manifest: Manifest, prefix: str) -> PlannedRow:
    """[key, condition's position, init_seed, data_seed] of the one replicate whose key begins so; ValueError for none or several."""
    matches = [row for row in manifest["replicates"] if prefix and row[0].startswith(prefix)]
    if not matches:
        raise StudyError(
            f"no replicate of {manifest['study']} has a key that begins with {prefix[:64]!r}: take one from replicates.csv of its report"
        )
    if len(matches) > 1:
        raise StudyError(
            f"{len(matches)} keys of {manifest['study']} begin with {prefix[:64]!r}, such as {matches[0][0]} and {matches[1][0]}: "
            "give more of the key"
        )
    return list(matches[0])


def page(
    manifest: Manifest,
    row: PlannedRow,
    ended: pa.Table,
    evaluations: pa.Table,
    links: Links | None = None,
    families: Sequence[ReportFamily] = FAMILIES,
) -> str:
    """The page as one string of HTML; `ended` has one row per stage, and both tables hold rows of this replicate alone.

    links: further pages of the replicate, by heading.
    """
    condition = manifest["conditions"][row[1]]
    failures = pa.table({"keys": pa.array([], pa.list_(pa.string())), "stage": pa.array([], pa.int32())})
    replicates = replicates_of(manifest | {"replicates": [row]}, ended, evaluations, failures)
    hashes = {name: value["hash"] for name, value in condition["sets"].items()}
    stages = []
    for replicate, record in zip(
        (r for r in replicates if r.stage in ended["stage"].to_pylist()), ended.to_pylist(), strict=True
    ):
        curves = _curves(manifest, evaluations, replicate.stage, hashes)
        drawn = Markup("")
        if curves:
            figure = error_curves({name: [curve] for name, curve in curves.items()})
            drawn = plot(figure) or inline(figure_files.svg(figure), f"stage-{replicate.stage}", "Error rate by training step")
        stages.append({"replicate": replicate, "record": record, "figure": drawn, "provenance": _provenance(record)})
    return render(
        FOLDER / "replicate.html",
        **_every_replicate(manifest, row),
        init_seed=row[2],
        data_seed=row[3],
        stages=stages,
        answers=scored_answers([condition], families),
        sets=[name for name in set_names(manifest) if name in condition["sets"]],
        links=links or {},
        complete="settings" in condition,
    )


def values_page(manifest: Manifest, row: PlannedRow, record: Row, evaluations: pa.Table, arrays: Iterable[KeptArray]) -> str:
    """The page of a replicate of an experiment: the values and arrays that it returned."""
    values = evaluations.filter(pc.field("kind") != ARRAY).sort_by(
        [("metric", "ascending"), ("set", "ascending"), ("step", "ascending")]
    )
    digests = [
        {"name": each.name, "step": each.step, "type": f"{each.values.dtype}{list(each.values.shape)}"}
        | {"digest": hashlib.sha256(each.values.tobytes()).hexdigest()}
        for each in arrays
    ]
    provenance = _provenance(record)
    provenance["run"] = provenance.pop("trained")
    provenance["seconds"] = f"{record['train_s']:.1f}"
    own = "" if record["own_git"] is None else commit(record["own_git"], record["own_dirty"])
    return render(
        FOLDER / "values_replicate.html",
        **_every_replicate(manifest, row),
        seed=row[2],
        record=record,
        values=[each | {"label": label(each["set"], each["metric"])} for each in values.slice(0, MAX_VALUES).to_pylist()],
        left_out=max(0, values.num_rows - MAX_VALUES),
        arrays=digests,
        provenance=provenance | ({"code of your own": own} if own else {}),
    )


def _every_replicate(manifest: Manifest, row: PlannedRow) -> Tree:
    """The values that the page of every replicate shows."""
    condition = manifest["conditions"][row[1]]
    settings = flatten(condition.get("settings", condition["config"]))
    name = stage_label(condition["name"], stage_of(condition))
    about: Tree = {"study": manifest["study"], "key": row[0], "condition": name}
    return about | {"settings": {name: plain(value) for name, value in settings.items()}}


def _curves(manifest: Manifest, evaluations: pa.Table, stage: int, hashes: dict[str, str]) -> dict[str, Curve]:
    """Raw error by step of every set that is scored at more than one step; NaN where the replicate had diverged."""
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in set_names(manifest) if name in hashes}
    for row in sorted(pooled(manifest, evaluations, list(points)), key=itemgetter("step")):
        if (row["stage"], row["set_hash"]) == (stage, hashes[row["set"]]):
            rate = np.nan if row["errors_sum"] is None else row["errors_sum"] / row["count_sum"]
            points[row["set"]].append((row["step"], rate))
    columns = {name: np.array(own, dtype=np.float64).T for name, own in points.items() if len(own) > 1}
    return {name: (steps, rates) for name, (steps, rates) in columns.items()}


def _provenance(record: Row) -> dict[str, str]:
    """Where and how a stage of the replicate ran, as {name: text}."""
    return {
        "trained": f"{record['started']:%Y-%m-%d %H:%M} to {record['ended']:%Y-%m-%d %H:%M} UTC",
        "seconds": f"{record['train_s']:.1f} of training, {record['evaluate_s']:.1f} of evaluation (its share of the pack)",
        "pack": f"{record['pack']}, slot {record['slot']} of {record['pack_size']}, attempt {record['attempt']}",
        "device": f"{record['device']} on {record['host']}",
        "code": commit(record["git"], record["dirty"]),
        "numerics": _joined(record["numerics"]),
        "versions": _joined(record["versions"]),
    }


def _joined(text: str) -> str:
    return ", ".join(f"{name} {plain(value)}" for name, value in entries(text).items())
