"""Conditions compared over all values of one setting, such as the task: `manyseeds compare STORE STUDY --across SETTING`.

Each value of the setting is a stratum with replicates of its own. Estimates and intervals are those of `results.statistics.strata`.
"""

import json
from collections.abc import Callable, Sequence

import numpy as np

from results.errors import StudyError, nearest
from results.markdown_table import table_lines
from results.plain_values import Options, Tree, Value
from results.rows.measures import Measure
from results.rows.options import flatten
from results.rows.plural import distinct
from results.rows.shared_seeds import share_seeds
from results.rows.summary import Replicate, errors_of
from results.rows.value_summary import ends, value
from results.statistics.real_values import FEWEST, FEWEST_EACH, enough, interquartile_mean, interquartile_mean_interval
from results.statistics.strata import mean_superiority
from results.store.manifest import Manifest

Group = dict[str, list[Replicate]]  # the replicates of a condition by the setting's value


def pooled(manifest: Manifest, replicates: Sequence[Replicate], across: str) -> dict[str, Group]:
    """The replicates by their other settings and the value of `across`. StudyError where no condition has it, or some lack a value."""
    options = {c["name"]: _settings(c.get("settings", c["config"])) for c in manifest["conditions"]}
    names = dict.fromkeys(option for own in options.values() for option in own)
    across = _name(across)
    if across not in names:
        raise StudyError(f"--across {across} is no setting of the study; settings: {', '.join(names)}{nearest(across, names)}")
    varied = [name for name in names if name != across and len({_text(own.get(name)) for own in options.values()}) > 1]
    groups: dict[str, Group] = {}
    for replicate in replicates:
        own = options[replicate.condition]
        name = ", ".join(f"{option}={_text(own.get(option))}" for option in varied) or "all conditions"
        groups.setdefault(name, {}).setdefault(_text(own.get(across)), []).append(replicate)
    strata = dict.fromkeys(stratum for group in groups.values() for stratum in group)
    for name, group in groups.items():
        if lacking := [stratum for stratum in strata if stratum not in group]:
            raise StudyError(
                f"{name} has no condition with {across}={lacking[0]}: every condition needs each value of {across}"
            )
    return groups


def show_pooled(
    manifest: Manifest,
    replicates: Sequence[Replicate],
    measures: Sequence[Measure],
    across: str,
    baseline: str | None,
    say: Callable[[str], None],
) -> None:
    """Print the table of a study of experiments, as Markdown."""
    groups = pooled(manifest, replicates, across)
    name = baseline or next(iter(groups))
    if name not in groups:
        raise StudyError(f"there is no condition {name!r}; conditions: {'; '.join(groups)}")
    if len(groups) == 1:
        raise StudyError(
            f"--across {across} pools all conditions of {manifest['study']}, and no other setting tells them apart: leave it out to "
            f"compare the values of {_name(across)}"
        )
    say(
        f"{manifest['study']}: conditions over all values of {across}, against {name}; P(better) above 0.5 is better than {name}."
    )
    say(
        "95 % intervals by a bootstrap that resamples the replicates of each value alone (Agarwal et al. 2021); there is none with fewer "
        f"than {FEWEST} replicates in all, or {FEWEST_EACH} of a value"
    )
    say("")
    columns = ("condition", "metric", f"values of {across}", "replicates", "missing", "interquartile mean", "P(better)")
    rows = (
        _line(condition, group, groups[name], measure, condition == name)
        for condition, group in groups.items()
        for measure in measures
    )
    for line in table_lines(columns, rows):
        say(line)


def _line(condition: str, group: Group, base: Group, measure: Measure, is_baseline: bool) -> list[str]:
    own, other = ([errors_of(side[stratum], measure.label) for stratum in base] for side in (group, base))
    planned, valued = sum(map(len, group.values())), sum(values.size for values in own)
    start = [condition, measure.ranked, str(len(own)), str(valued), str(planned - valued)]
    if not all(values.size for values in (*own, *other)):
        return [*start, "a value has no replicate with a number", ""]
    if any(share_seeds([replicate.seeds for replicate in side[stratum]]) for side in (group, base) for stratum in base):
        return [*start, "replicates share seeds: no independent sample", ""]
    middle = f"{value(interquartile_mean(np.concatenate(own)), measure):.4g}"
    if enough(*own):
        low, high = ends(interquartile_mean_interval(*own), measure)
        middle += f" [{low:.4g}, {high:.4g}]"
    middle = middle.replace("inf", "∞")
    if is_baseline:
        return [*start, middle, "baseline"]
    chance, within = mean_superiority(own, other)
    better, least, most = (distinct(number, 2, "f", 0, 0.5, 1) for number in (chance, within.low, within.high))
    return [*start, middle, f"{better} [{least}, {most}]" if enough(*own) and enough(*other) else better]


def _settings(node: Options) -> Tree:
    return {_name(option): at for option, at in flatten(node).items()}


def _name(option: str) -> str:
    """As a study file or the header of an imported table calls it."""
    return option.removeprefix("experiment.").removeprefix("settings.")


def _text(setting: Value) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)
