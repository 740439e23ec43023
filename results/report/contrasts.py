"""Every condition of a study against its baseline, on each reported set: `manyseeds compare STORE STUDY [--baseline NAME]`.

Paired where both conditions were planned with the same seeds, else unpaired; p-values are corrected over everything that is printed.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from results.errors import StudyError
from results.markdown_table import table_lines
from results.rows.measures import Measure, is_experimental, measures_of
from results.rows.plural import counted, distinct, p_value
from results.rows.pooled import show_pooled
from results.rows.shared_seeds import share_seeds
from results.rows.study_rows import read_study
from results.rows.summary import Replicate, reported_sets
from results.rows.value_summary import ends, value
from results.statistics.bootstrap import Ratio
from results.statistics.comparison import QUANTILES, Compared, compare, differences, holm, pair_superiority
from results.statistics.intervals import CONFIDENCE, Interval
from results.statistics.real_values import median_difference
from results.statistics.sample_size import CANCEL, POWER, Needed, to_settle
from results.statistics.unpaired import superiority
from results.store.manifest import label, manifest_of
from results.store.tables import Store

Seeds = tuple[int, int]


@dataclass(frozen=True)
class Contrast:
    """A condition against the baseline on one set; where `compared` is None, `reason` says why nothing could be compared.

    missing: replicates of the two without a number, since they have failed or not ended. bounds: the superiority if all of these turned
    out best for one side, and for the other. holm: the corrected p. at_most: whether that is the correction of a p of which the
    exact value may be smaller. least: the smallest corrected p that these replicates can have. needed: replicates that would settle it,
    None where it is settled.
    """

    condition: str
    stage: int
    set: str
    missing: int
    compared: Compared | None
    bounds: Interval | None
    holm: float | None = None
    least: float | None = None
    at_most: bool = False
    needed: Needed | None = None
    reason: str | None = None


def contrasts(
    replicates: Sequence[Replicate], sets: Sequence[str], baseline: str | None = None, rates: bool = True
) -> list[Contrast]:
    """Compare every other condition with the baseline, for each stage and set, in the study's order.

    baseline: None for the first condition that shares a stage with another. rates: whether the numbers are error rates, which have ratios
    and are at best 0, or costs of any sign. Raises ValueError where there is no such condition, or no other one.
    """
    groups: dict[tuple[str, int], dict[Seeds, Replicate]] = {}
    for replicate in replicates:
        groups.setdefault((replicate.condition, replicate.stage), {})[replicate.seeds] = replicate
    names = list(dict.fromkeys(name for name, _ in groups))
    chosen = baseline or _default_baseline(replicates)
    if chosen not in names:
        raise StudyError(f"there is no condition {chosen!r}; conditions: {'; '.join(names)}")
    if len(names) == 1:
        raise StudyError(f"{chosen} is the only condition of the study: there is nothing to compare it with")
    if not any((chosen, stage) in groups for condition, stage in groups if condition != chosen):
        rival = _default_baseline(replicates)
        instead = f": write --baseline {shlex.quote(rival)}" if baseline and rival != chosen else ""
        raise StudyError(f"only equal stages are compared, and no other condition has a stage of {chosen}{instead}")
    table = [
        _contrast(groups[chosen, stage], members, condition, stage, name, rates)
        for (condition, stage), members in groups.items()
        if condition != chosen and (chosen, stage) in groups
        for name in sets
    ]
    tested = [index for index, contrast in enumerate(table) if contrast.compared]
    every = [contrast.compared for contrast in table if contrast.compared]
    adjusted = holm([compared.p for compared in every])
    limits = [(compared.p, p) for compared, p in zip(every, adjusted, strict=True) if compared.at_most and p < 1]
    smallest = holm([compared.least for compared in every])  # Holm's p grow with each p
    for index, compared, p, least in zip(tested, every, adjusted, smallest, strict=True):
        contrast, needed = table[index], None
        if p > 1 - CONFIDENCE:
            base, other = groups[chosen, contrast.stage], groups[contrast.condition, contrast.stage]
            needed = to_settle(*_numbers(base, other, contrast.set), POWER, 1 - (1 - CONFIDENCE) / len(tested))
        at_most = any(own <= compared.p and corrected == p for own, corrected in limits)
        table[index] = replace(
            contrast,
            holm=p,
            at_most=at_most,
            least=least,
            needed=needed,
        )
    return table


def _default_baseline(replicates: Sequence[Replicate]) -> str:
    """The first condition that has a stage in common with another one, else the first one; "" where there is none."""
    parts = list(dict.fromkeys((replicate.condition, replicate.stage) for replicate in replicates))
    conditions_at = Counter(stage for _, stage in parts)
    return next((name for name, stage in parts if conditions_at[stage] > 1), parts[0][0] if parts else "")


def show_contrasts(store: Store, baseline: str | None, say: Callable[[str], None], across: str | None = None) -> None:
    """Print the table of a study's comparisons, as Markdown. StudyError where the store holds no such study.

    across: a setting over whose values conditions are pooled (`results.rows.pooled`).
    """
    manifest = manifest_of(store)
    study = read_study(store, manifest)
    replicates = study.replicates
    if is_experimental(manifest):
        measures = measures_of(manifest, study.evaluations)
        if across is not None:
            show_pooled(manifest, replicates, measures, across, baseline, say)
        else:
            show_value_contrasts(store.study, replicates, measures, baseline, say)
        return
    if across is not None:
        raise StudyError(f"--across compares the values that experiments return, and {store.study} trains: leave it out")
    name = baseline or _default_baseline(replicates)
    table = contrasts(replicates, reported_sets(manifest), name)
    say(f"{store.study}: each condition against {name}; P(errs more) above 0.5, or a ratio above 1, is worse than {name}.")
    heads = map(_ratio_of, QUANTILES)
    columns = ["condition", "set", "replicates", "missing", "P(errs more)", "p", "corrected p", *heads, "more replicates"]
    _say_table(table, columns, (_line(contrast, len(columns)) for contrast in table), say)
    in_table = {(name, contrast.stage) for contrast in table} | {(contrast.condition, contrast.stage) for contrast in table}
    untaught = Counter(r.label for r in replicates if (r.condition, r.stage) in in_table and r.status == "no_transition")
    if untaught:
        say("")
        students = "; ".join(f"{counted(number, 'replicate')} of {of}" for of, number in untaught.items())
        say(f"Left out, and not counted as missing, as their teacher never met the rule of its stage: {students}.")
    if others := dict.fromkeys(label(r.condition, r.stage) for r in replicates if (r.condition, r.stage) not in in_table):
        say("")
        say(f"Not compared, as only equal stages are: {'; '.join(others)}.")


def show_value_contrasts(
    study: str, replicates: Sequence[Replicate], measures: Sequence[Measure], baseline: str | None, say: Callable[[str], None]
) -> None:
    """Print the table of a study of experiments, with differences instead of ratios, which mean nothing for numbers of any sign.

    Where the study names metrics, only these are compared: any other that a script logs would only raise their corrected p.
    """
    if not measures:
        raise StudyError(f"{study} has no value of any replicate yet, so there is nothing to compare")
    compared = [measure for measure in measures if measure.declared] or measures
    name = baseline or _default_baseline(replicates)
    table = contrasts(replicates, [measure.label for measure in compared], name, rates=False)
    by_label = {measure.label: measure for measure in measures}
    say(
        f"{study}: each condition against {name}; P(better) above 0.5 is better than {name}. A difference is condition − {name}: of pairs "
        "the median of their differences, else the difference of the two medians."
    )
    heads = ("condition", "metric", "replicates", "missing", "P(better)", "p", "corrected p")
    columns = [*heads, "difference", "more replicates"]
    rows = (_value_line(contrast, by_label[contrast.set], replicates, name, len(columns)) for contrast in table)
    _say_table(table, columns, rows, say)
    if others := [measure.label for measure in measures if measure not in compared]:
        say("")
        say(f"Not compared, as evaluate.metrics does not name them: {', '.join(others)}.")


def _say_table(
    table: Sequence[Contrast], columns: Sequence[str], rows: Iterable[Sequence[str]], say: Callable[[str], None]
) -> None:
    """Print how to read a table of contrasts, the table, and how many of them its replicates can't settle."""
    chance = columns[4]
    every = [contrast.compared for contrast in table if contrast.compared]
    count, short, tied = len(every), sum(map(_out_of_reach, table)), sum(compared.tied for compared in every)
    over = "the one comparison" if count == 1 else f"the {count} comparisons"
    if every:
        say(f"In brackets: 95 % intervals. Corrected p: by Holm's method, for {over} of this table.")
        say("More replicates: how many more of each condition would show the difference with 80 % power.")
    else:
        say("Nothing can be compared yet: that needs two replicates of each condition with a number on the same set.")
    if any(not compared.paired for compared in every):
        say(
            "Replicates: two numbers are of the baseline and of the condition, which do not have the same seeds and are no pairs."
        )
    for q in QUANTILES:
        ratios = [compared.ratios[q] for compared in every if q in compared.ratios]
        for reason in dict.fromkeys(ratio.reason for ratio in ratios if ratio.value is not None and ratio.interval is None):
            say(f"[–] after a {_ratio_of(q)}: {reason}.")
    if any(contrast.bounds for contrast in table):
        say(f"Missing: replicates without a number; after them, the least and the largest {chance} that they leave possible.")
    if any(compared.at_most for compared in every):
        say(
            "≤: no random split of the replicates is as extreme, so the exact p may be far smaller. Do not rank conditions by it."
        )
    say("")
    for line in table_lines(columns, rows):
        say(line)
    if tied:
        say("")
        where = "the one comparison" if count == 1 else f"{tied} of {count} comparisons"
        say(
            f"No difference at all in {where}: the values of both conditions are equal. Replicates like these show none, however many."
        )
    if short:
        say("")
        which = "The one comparison" if count == 1 else f"{short} of {count} comparisons"
        say(
            f"{which} can't reach a corrected p of {1 - CONFIDENCE:.2g}: too few replicates, too few that differ, or too many comparisons."
        )
        at_least = "“At least” is the smallest p that their replicates allow. " if any(map(_bounded, table)) else ""
        say(f"{at_least}Add replicates, or compare fewer conditions and sets.")


def _contrast(
    base: dict[Seeds, Replicate],
    other: dict[Seeds, Replicate],
    condition: str,
    stage: int,
    name: str,
    rates: bool,
) -> Contrast:
    if not rates:
        for members in (base, other):
            ended = [replicate for replicate in members.values() if replicate.status == "finished"]
            if ended and all(replicate.error(name) is None for replicate in ended):
                return Contrast(condition, stage, name, 0, None, None, reason=f"{ended[0].condition} does not return it")
    missing = sum(_missing(replicate, name) for replicate in (*base.values(), *other.values()))
    if share_seeds(base) or share_seeds(other):
        return Contrast(condition, stage, name, missing, None, None, reason="replicates share seeds: no independent sample")
    first, second, paired = _numbers(base, other, name)
    if min(len(first), len(second)) < 2:
        short = counted(len(first), "pair") if paired else f"{len(first)} and {len(second)} replicates"
        return Contrast(condition, stage, name, missing, None, None, reason=f"{short} with a number: needs at least 2")
    extremes, best = [], 0.0 if rates else -np.inf
    for fill in ((np.inf, best), (best, np.inf)) if missing else ():
        x, y, _ = _numbers(base, other, name, fill)
        extremes.append((pair_superiority(differences(x, y)) if paired else superiority(x, y, CONFIDENCE))[0])
    bounds = Interval(*extremes) if extremes else None
    compared = compare(first, second, paired, quantiles=QUANTILES if rates else ())
    return Contrast(condition, stage, name, missing, compared, bounds)


def _numbers(
    base: dict[Seeds, Replicate], other: dict[Seeds, Replicate], name: str, fill: tuple[float, float] | None = None
) -> tuple[list[float], list[float], bool]:
    """Error rates of both conditions, and whether they are pairs. fill: values for missing ones, which are else left out."""
    paired = base.keys() == other.keys()
    sides = []
    for index, members in enumerate((base, other)):
        errors = {seeds: replicate.error(name) for seeds, replicate in members.items()}
        if fill:
            errors = {seeds: fill[index] if _missing(members[seeds], name) else error for seeds, error in errors.items()}
        sides.append({seeds: error for seeds, error in errors.items() if error is not None})
    if paired:
        both = [seeds for seeds in base if seeds in sides[0] and seeds in sides[1]]
        sides = [{seeds: side[seeds] for seeds in both} for side in sides]
    return list(sides[0].values()), list(sides[1].values()), paired


def _missing(replicate: Replicate, name: str) -> bool:
    return replicate.error(name) is None and replicate.ending(name) != "no_transition"


def _line(contrast: Contrast, columns: int) -> list[str]:
    start = [label(contrast.condition, contrast.stage), contrast.set]
    compared = contrast.compared
    if compared is None:
        return _incomparable(start, contrast, columns)
    ratios = [_ratio(compared.ratios[q]) for q in QUANTILES]
    more = "settled" if contrast.needed is None else contrast.needed.reason or str(contrast.needed.more)
    return [*start, *_chances(contrast, compared, compared.superiority, compared.interval, contrast.bounds), *ratios, more]


def _incomparable(start: Sequence[str], contrast: Contrast, columns: int) -> list[str]:
    """The line of a contrast of which nothing could be compared."""
    return [*start, "", str(contrast.missing), contrast.reason or "", *[""] * (columns - len(start) - 3)]


def _chances(contrast: Contrast, compared: Compared, chance: float, interval: Interval, bounds: Interval | None) -> list[str]:
    """The cells from the replicates to the corrected p. bounds: the chance if all missing ones were best for one side, or the other."""
    count = f"{compared.first} pairs" if compared.paired else f"{compared.first}, {compared.second}"
    missing = f"{contrast.missing}" + (f": {_chance(bounds.low)} – {_chance(bounds.high)}" if bounds else "")
    corrected = _p(contrast.holm, contrast.at_most) + (f" (at least {_p(contrast.least, False)})" if _bounded(contrast) else "")
    shown = f"{_chance(chance)} [{_chance(interval.low)}, {_chance(interval.high)}]"
    return [count, missing, shown, _p(compared.p, compared.at_most), corrected]


def _p(p: float | None, at_most: bool) -> str:
    """A p-value; "≤ 0.0001" where the exact one may be smaller."""
    if p is None:
        return ""
    return ("≤ " if at_most else "") + p_value(p, 3)


def _chance(chance: float) -> str:
    return distinct(chance, 2, "f", 0, 0.5, 1)


def _value_line(
    contrast: Contrast, measure: Measure, replicates: Sequence[Replicate], baseline: str, columns: int
) -> list[str]:
    """One line of `show_value_contrasts`, with costs turned back into values."""
    start, compared = [contrast.condition, measure.ranked], contrast.compared
    if compared is None:
        return _incomparable(start, contrast, columns)
    interval, bounds = _better(compared.interval), contrast.bounds and _better(contrast.bounds)
    chances = _chances(contrast, compared, 1 - compared.superiority, interval, bounds)
    groups = [{r.seeds: r for r in replicates if r.condition == name} for name in (baseline, contrast.condition)]
    first, second, paired = _numbers(groups[0], groups[1], measure.label)
    change, within = median_difference(first, second, paired)
    low, high = ends(within, measure)
    difference = f"{value(change, measure):.3g} [{low:.3g}, {high:.3g}]".replace("inf", "∞")
    if np.isnan(change) or np.isinf([*first, *second]).all():  # two diverged replicates of a pair count as equal
        difference = "both medians are of diverged replicates"
    even = "not settled by any number: an even chance"
    reason = CANCEL if contrast.needed and contrast.needed.reason == CANCEL else even
    more = "settled" if contrast.needed is None else reason if contrast.needed.more is None else str(contrast.needed.more)
    return [*start, *chances, difference, more]


def _better(worse: Interval) -> Interval:
    """Turn the interval of the chance that a condition is worse into that of the chance that it is better."""
    return Interval(1 - worse.high, 1 - worse.low)


def _out_of_reach(contrast: Contrast) -> bool:
    """Whether a corrected p of 0.05 needs more replicates or fewer comparisons. Where all values are equal, neither helps."""
    tied = contrast.compared is not None and contrast.compared.tied
    return contrast.least is not None and contrast.least > 1 - CONFIDENCE and not tied


def _bounded(contrast: Contrast) -> bool:
    """Whether the smallest corrected p of a contrast that is out of reach says more than that it is 1 at most."""
    return _out_of_reach(contrast) and contrast.least is not None and f"{contrast.least:.3g}" != "1"


def _ratio(ratio: Ratio) -> str:
    if ratio.value is None:
        return ratio.reason or ""
    interval = ratio.interval
    within = f"[{_times(interval.low)}, {_times(interval.high)}]" if interval else "[–]"
    return f"{_times(ratio.value)} {within}"


def _ratio_of(q: float) -> str:
    return f"ratio of {'medians' if q == 0.5 else f'{100 * q:g} % quantiles'}"


def _times(ratio: float) -> str:
    return distinct(ratio, 3, "g", 1).replace("inf", "∞")
