"""The panels of a W&B workspace and a W&B report of a study, with wandb-workspaces; building one asks no server.

A layout names what `results.dashboards.publish` sends and holds no number of its own. `results.dashboards.dashboard` saves them.
"""

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

from results.dashboards.publish import project
from results.errors import StudyError
from results.report.family import compared_sets
from results.report.family_sections import FAMILIES
from results.rows.measures import is_experimental
from results.rows.summary import online_sets
from results.store.manifest import manifest_of, stage_of
from results.store.tables import Store

_MOST_LINES = 30  # of a panel: three quantiles of ten conditions
_SHOWN = ("error_min", "error_median", "error_max")


@dataclass(frozen=True)
class Content:
    """The parts of a study that a layout shows.

    Conditions as the history names them, the sets scored during training, the two sets whose errors are drawn against each other,
    whether the study has claims, and the figure of all replicates, which is another one for experiments.
    """

    study: str
    question: str
    conditions: list[str]
    online: list[str]
    compared: tuple[str, str] | None
    claims: bool
    distributions: str = "violins"


def content_of(store: Store) -> Content:
    """The content of a study's newest manifest. Raises StudyError where there is none."""
    manifest = manifest_of(store)
    names = [
        condition["name"] + (f"/stage {stage_of(condition)}" if stage_of(condition) else "")
        for condition in manifest["conditions"]
    ]
    return Content(
        store.study,
        manifest.get("question", ""),
        names,
        online_sets(manifest),
        compared_sets(manifest, FAMILIES),
        bool(manifest.get("claims")),
        "values" if is_experimental(manifest) else "violins",
    )


def workspace(content: Content) -> Any:
    """The workspace: quantile bands, distributions, single replicates, tables."""
    ws, wr = _libraries()
    sections = [
        ws.Section(name=name, panels=panels, is_open=True, layout_settings=ws.SectionLayoutSettings(columns=2, rows=2))
        for name, panels in _sections(wr, content).items()
    ]
    return ws.Workspace(
        entity="",  # who it belongs to is said where it is saved
        project=project(),
        name=title(content),
        sections=sections,
        settings=ws.WorkspaceSettings(x_axis="step", max_runs=100, sort_panels_alphabetically=False),
        runset_settings=ws.RunsetSettings(filters=f"Config('study') = '{content.study}'", groupby=[]),
    )


def report(content: Content) -> Any:
    """The report: the question, the claims, then the same panels with a sentence on how to read them."""
    _, wr = _libraries()
    # no project: W&B then takes the report's own, and is not asked for its number
    runs = wr.Runset(name=content.study, filters=f"Config('study') = '{content.study}'")
    runs._id = view_name(content)
    blocks = [wr.P(content.question or content.study), wr.P(_HOW["study"])]
    how = (
        _HOW
        if content.distributions == "violins"
        else _HOW | {"Distributions": "Every replicate of each condition, by metric."}
    )
    for name, panels in _sections(wr, content).items():
        blocks += [wr.H2(name), wr.P(how[name])] if name in how else [wr.H2(name)]
        blocks.append(wr.PanelGrid(runsets=[runs], panels=panels))
    return wr.Report(
        entity="", project=project(), title=title(content), description=content.question, blocks=blocks, width="fluid"
    )


def title(content: Content) -> str:
    """The name under which workspace and report are shown."""
    return f"{content.study} (manyseeds)"[:128]


_HOW = {
    "study": "Made by manyseeds from Parquet tables: `manyseeds publish` makes the runs again, `manyseeds dashboard` this page.",
    "Claims": "A verdict on each claim of the paper that the study states.",
    "Quantile bands": "Minimum, median and maximum of the error rate over replicates by training step. A gap is a diverged replicate.",
    "Distributions": "Every replicate: replicates without a single error and diverged ones have bands of their own.",
    "Single replicates": "Where the study was published with wandb.runs=replicate: curves by condition, and final errors of two sets.",
}


def _sections(wr: Any, content: Content) -> dict[str, list[Any]]:
    """Panels by section, in order; a section without panels is left out."""
    conditions = content.conditions[: _MOST_LINES // len(_SHOWN)]
    bands = [
        wr.LinePlot(
            title=f"{name}: error by step"
            + (f", first {len(conditions)} conditions" if conditions != content.conditions else ""),
            x="step",
            y=[f"{condition}/{name}/{quantity}" for condition in conditions for quantity in _SHOWN],
            log_y=True,
            max_runs_to_show=1,
        )
        for name in content.online
    ]
    pictures = [wr.MediaBrowser(title=content.distributions, media_keys=[content.distributions], num_columns=1)]
    singles = [
        wr.LinePlot(
            title=f"{name}: replicates by condition",
            x="step",
            y=[f"{name}/error"],
            groupby=wr.Config("condition"),
            groupby_aggfunc="median",
            groupby_rangefunc="minmax",
            log_y=True,
        )
        for name in content.online
    ]
    if content.compared is not None:
        x, y = content.compared
        pictures.append(wr.MediaBrowser(title=f"{y} against {x}", media_keys=["scatter"], num_columns=1))
        fields = {"x": f"{x}.error", "y": f"{y}.error"}
        chart = wr.CustomChart(
            query={"summaryTable": {"tableKey": "replicates"}}, chart_name="wandb/scatter/v0", chart_fields=fields
        )
        pictures.append(chart)
        metrics = {name: wr.SummaryMetric(f"{name}/final_error") for name in (x, y)}
        singles.append(wr.ScatterPlot(title=f"{y} against {x}", x=metrics[x], y=metrics[y], log_x=True, log_y=True))
    tables = [wr.WeavePanelSummaryTable(table_name=name) for name in ("summary", "replicates", *(["bands"] if bands else []))]
    sections = {
        "Claims": [wr.WeavePanelSummaryTable(table_name="claims")] if content.claims else [],
        "Quantile bands": bands,
        "Distributions": pictures,
        "Single replicates": singles,
        "Tables": tables,
    }
    for name, panels in sections.items():
        for number, panel in enumerate(panels):  # wandb-workspaces would draw them at random
            panel._id = hashlib.sha256(f"{content.study} {name} {number}".encode()).hexdigest()[:11]
    return {name: panels for name, panels in sections.items() if panels}


def spec(layout: Any) -> str:
    """A workspace or report as the JSON that W&B keeps; the same for the same study."""
    return str(layout._to_model().spec.model_dump_json(by_alias=True, exclude_none=True))


def view_name(content: Content) -> str:
    """The id of a study's view: eleven letters and digits that follow from the study."""
    return hashlib.sha256(content.study.encode()).hexdigest()[:11]


def _libraries() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydantic's, of its way to declare validators
            import wandb_workspaces.reports.v2 as reports
            import wandb_workspaces.workspaces as workspaces
    except ModuleNotFoundError as error:
        raise StudyError(
            f"manyseeds dashboard needs wandb-workspaces, and {error.name} is not installed: pip install 'manyseeds[dashboards]'"
        ) from error
    return workspaces, reports
