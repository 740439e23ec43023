"""The methods paragraph of a study of experiments, as `results.report.methods` writes that of trainings: from the manifest and the
committed rows alone, as plain text.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from results.grouping import grouped
from results.plain_values import Options, Tree
from results.report.methods import MOST, adaptive_rule, judged, listed, made, one_line, reduced, same_together, value_text
from results.rows.measures import Measure
from results.rows.options import flatten, split
from results.rows.plural import counted, ranges
from results.rows.shared_seeds import caution
from results.rows.summary import ENDINGS, Replicate
from results.statistics.intervals import CONFIDENCE
from results.store.manifest import ConditionFields, Manifest


def experiment_text(manifest: Manifest, planned: Sequence[Replicate], measures: Sequence[Measure], replicates: pa.Table) -> str:
    """The paragraph, as one line of plain text.

    planned: from `results.rows.summary.replicates_of`; measures: what the replicates returned; replicates: the committed rows.
    """
    keys = pa.array([replicate.key for replicate in planned], pa.string())
    rows = replicates.filter(pc.is_in(replicates["key"], keys))
    sentences = [
        _study(manifest, planned),
        _settings(manifest),
        _measures(measures),
        _seeds(planned),
        adaptive_rule(manifest, planned),
        _statistics(manifest, planned, measures),
        reduced(manifest),
        _imported(rows) if is_imported(manifest) else made(manifest, rows, "Run"),
    ]
    return one_line(" ".join(sentences))


def what_runs(manifest: Manifest) -> list[str]:
    """The names of the experiments of a study, or the commands of its scripts."""
    configs = [condition["config"]["experiment"] for condition in manifest["conditions"]]
    return list(dict.fromkeys(config.get("name") or " ".join(config.get("command", [])) for config in configs))


def is_imported(manifest: Manifest) -> bool:
    """Whether the replicates ran elsewhere and were imported as a table."""
    return what_runs(manifest) == ["imported"]


def settings_of(condition: ConditionFields) -> Tree:
    """The settings of an experiment; of a built-in one with those that have their defaults."""
    config = condition["config"]["experiment"]
    complete = condition.get("settings", {}).get("experiment")
    if complete is None:
        return config.get("settings", {})  # of which one may be called as a part of the configuration is, such as name
    return {name: value for name, value in complete.items() if name not in config}


def _study(manifest: Manifest, planned: Sequence[Replicate]) -> str:
    conditions = len({entry["name"] for entry in manifest["conditions"]})
    run = (
        "a run from an imported table"
        if is_imported(manifest)
        else f"a run of {listed([f'“{what}”' for what in what_runs(manifest)])}"
    )
    return (
        f"The study “{manifest['study']}” has {counted(len(planned), 'replicate')} of {counted(conditions, 'condition')}; a replicate is "
        f"{run} with a seed of its own."
    )


def _settings(manifest: Manifest) -> str:
    """What all conditions share, then what differs."""
    flat = [flatten(settings_of(condition)) for condition in manifest["conditions"]]
    shared, varied = split(flat)
    parts = [f"Settings: {_said(shared, shared)}"] if shared else []
    if varied and len(flat) <= MOST:
        said = [
            (_said(own, varied) or "none of these set", each["name"])
            for own, each in zip(flat, manifest["conditions"], strict=True)
        ]
        if all(sorted(name.split(", ")) == sorted(words.replace(" = ", "=").split(", ")) for words, name in said):
            parts.append(f"the conditions differ in {listed(list(varied))}, as their names say")
        else:
            groups = (f"{listed(names)} ({words})" for words, names in grouped(said).items())
            parts.append(f"differing between conditions: {'; '.join(groups)}")
    elif varied:
        parts.append(f"differing between the {len(flat)} conditions: {listed(list(varied))}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _said(own: Options, names: Sequence[str] | Options) -> str:
    return ", ".join(f"{name} = {value_text(name, own[name])}" for name in names if name in own)


def _measures(measures: Sequence[Measure]) -> str:
    if not measures:
        return ""
    if len(measures) > MOST:
        return f"{len(measures)} metrics are reported, each by the last value that a replicate returned."
    kinds = {
        each.label: "true or false" if each.kind == "flag" else f"{each.better} is better" * each.declared for each in measures
    }
    said = [f"{name} ({kind})" if kind else name for name, kind in kinds.items()]
    return f"Reported is the last value that each replicate returned of {listed(said)}."


def _seeds(planned: Sequence[Replicate]) -> str:
    """Seeds and endings by condition; conditions that are alike are named together."""
    texts = {}
    for name, members in grouped((replicate.condition, replicate) for replicate in planned).items():
        endings = [replicate.status for replicate in members]
        counts = ", ".join(f"{count:,} {ending.replace('_', ' ')}" for ending in ENDINGS if (count := endings.count(ending)))
        texts[name] = f"{counted(len(members), 'replicate')} (seeds {ranges(each.init_seed for each in members)}; {counts})"
    return f"Planned replicates and how they ended: {same_together(texts, len(texts))}." if texts else ""


def _statistics(manifest: Manifest, planned: Sequence[Replicate], measures: Sequence[Measure]) -> str:
    level = f"{CONFIDENCE:.0%}".replace("%", " %")
    kinds = {measure.kind for measure in measures}
    parts = ["Quantiles run over replicates; diverged replicates rank worst"]
    if "number" in kinds:
        parts.append(f"the median has a distribution-free interval from order statistics, of at least {level}")
        parts.append("the interquartile mean has an approximate interval from a bootstrap")
    if "flag" in kinds:
        parts.append(
            f"the share of replicates that return true has the exact interval of Clopper and Pearson, of at least {level}"
        )
    if any(replicate.status in ("failed", "missing") for replicate in planned):
        parts.append("medians with replicates that failed or are missing are bounded by their being the best and the worst")
    if caution(manifest):
        parts.append("replicates share seeds, for which these intervals are too narrow")
    if manifest.get("claims"):
        parts.append(judged(list(manifest["claims"])))
    return "; ".join(parts) + "."


def _imported(rows: pa.Table) -> str:
    """The sentence on where the runs come from: their rows have it as the device, and nothing says what they ran with."""
    return f"The runs were {listed(rows['device'].unique().to_pylist())}." if rows.num_rows else ""
