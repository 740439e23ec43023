"""The report's own figures for in-context n-grams: loss beside the k-grams', heads at each stage, escape times, nearest estimator."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
from matplotlib.lines import Line2D

from results.claims.claim import Settled
from results.claims.evidence import Condition, Evidence, gather
from results.claims.ngrams.courses import TASK, Course, Heads, courses, heads_of
from results.report.family import Drawn
from results.report.plots.curves import light_curves
from results.report.plots.lines_and_maps import heat_maps
from results.report.plots.palette import INK, colour_of
from results.report.plots.panels import legend, light_and_bold, share_axis, titled_panels
from results.report.plots.plot_data import tell
from results.rows.looks import averages, series, watched, watched_set
from results.rows.summary import Replicate
from results.statistics.comparison import holm
from results.statistics.intervals import Floats, quantile_interval
from results.statistics.survival import Survival, log_rank, survival
from results.store.manifest import Manifest, has_settings_of
from results.store.tables import Store

LINES = ("--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)))
MOST = 8  # conditions of one figure
STEP = "training step"


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, TASK):
        return []
    evidence = gather(manifest, replicates, averages=averages(store, finished), watched=watched(store, finished))
    watched_conditions: dict[str, tuple[Condition, list[Course], list[Heads]]] = {}
    for condition in evidence.conditions[:MOST]:
        ended = [replicate for replicate in condition.replicates if replicate.status == "finished"]
        part = Condition(condition.name, condition.settings, tuple(ended), condition.config)
        with suppress(Settled):
            watched_conditions[condition.name] = part, courses(evidence, part), heads_of(evidence, part)
    watched_conditions = {name: parts for name, parts in watched_conditions.items() if parts[1]}
    if not watched_conditions:
        return []
    own = {name: courses_of for name, (_, courses_of, _) in watched_conditions.items()}
    diverged = {each.name: sum(one.status == "diverged" for one in each.replicates) for each in evidence.conditions}
    return [
        _losses(own),
        *_heads(watched_conditions),
        *_survivals(own, diverged),
        *_nearest(evidence, watched_conditions),
    ]


def _losses(by_condition: Mapping[str, Sequence[Course]]) -> Drawn:
    """One panel per condition: every seed faint, their median bold, and the k-grams' losses with the prior's smoothing as broken lines."""
    with titled_panels(by_condition, 5.2, 3.8, STEP, "loss, nats", above=0.6, columns=2) as (figure, panels):
        orders = max(course.order for own in by_condition.values() for course in own)
        for i, (panel, own) in enumerate(zip(panels, by_condition.values(), strict=True)):
            light_curves(panel, i, [(course.steps, course.loss) for course in own])
            panel.plot(*_median(own), color=colour_of(i), lw=2)
            last = max(float(course.steps[-1]) for course in own)
            known = {k: own[0].levels.get(f"{k}-gram a={own[0].alpha:g}") for k in range(1, own[0].order + 1)}
            levels = {k: level for k, level in known.items() if level is not None}
            for k, level in levels.items():
                panel.plot([0, last], [level, level], color=INK, lw=1, ls=LINES[(k - 1) % len(LINES)], alpha=0.6)
            low, high = panel.dataLim.intervaly
            for (k, _), at in zip(levels.items(), apart(list(levels.values()), 0.09 * (high - low)), strict=True):
                panel.text(1.02 * last, at, f"{k}-gram", fontsize=8, ha="left", va="center", color=INK)
            panel.set_xlim(right=1.2 * last)  # names stand beyond the last step, where no curve runs
            panel.margins(y=0.08)
            panel.grid(axis="y")
        entries = {
            f"{k}-gram": Line2D([], [], color=INK, lw=1, ls=LINES[(k - 1) % len(LINES)], alpha=0.6)
            for k in range(1, orders + 1)
        }
        legend(figure, light_and_bold("one seed", "median") | entries)
    caption = (
        "Cross-entropy with the law of the next token, on the set that is scored on the way. Broken: the k-gram estimators with the "
        "prior's smoothing, on the same strings."
    )
    return ("ngram-losses", "Loss over the training", caption, figure)


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Places that are at least `gap` from one another, in the order of these; pairs that are closer move by the same amount."""
    order = np.argsort(places, kind="stable")
    moved = np.asarray(places, dtype=np.float64)[order]
    for _ in range(len(places)):
        for i in range(1, len(moved)):
            short = max(0.0, gap - (moved[i] - moved[i - 1]))
            moved[i - 1 : i + 1] += -short / 2, short / 2
    out = np.empty(len(places))
    out[order] = moved
    return [float(place) for place in out]


def _median(own: Sequence[Course]) -> tuple[Floats, Floats]:
    """The median over seeds at the steps that all of them have, which may be none."""
    steps = own[0].steps
    for course in own[1:]:
        steps = np.intersect1d(steps, course.steps)
    return steps, np.median([course.loss[np.isin(course.steps, steps)] for course in own], axis=0)


def _heads(by_condition: Mapping[str, tuple[Condition, Sequence[Course], Sequence[Heads]]]) -> list[Drawn]:
    """The weight that each head of one seed gives to each lag, at the middle of each stage.

    The seed is the one whose last stage begins at the median over seeds.
    """
    out = []
    for name, (condition, own, heads) in by_condition.items():
        begins = [course.begins(course.order) for course in own]
        place = int(np.argsort(begins, kind="stable")[(len(begins) - 1) // 2])
        course, masses = own[place], heads[place]
        tables: dict[str, list[list[float | None]]] = {}
        for k in range(1, course.order + 1):
            looks = course.steps[course.looks(k)]
            if len(looks):
                steps = masses[0][0].steps
                at = int(np.abs(steps - looks[len(looks) // 2]).argmin())
                tables[f"stage {k}, step {steps[at]:,.0f}"] = [[float(lag.values[at]) for lag in head] for head in masses]
        if not tables:
            continue
        seeds = condition.replicates[place]
        figure = heat_maps(
            tables, [f"head {h + 1}" for h in range(len(masses))], [str(q) for q in range(len(masses[0]))], "lag"
        )
        caption = (
            f"Weight in per cent that a head of the first layer gives to the token so many places before, in the middle of each stage. "
            f"{name}, init seed {seeds.init_seed} and data seed {seeds.data_seed}: the median seed by the start of the last stage."
        )
        out.append((f"ngram-heads-{name}", f"Heads at each stage: {name}", caption, figure))
    return out


def _survivals(by_condition: Mapping[str, Sequence[Course]], diverged: Mapping[str, int]) -> list[Drawn]:
    """Kaplan–Meier curves of the time at the last stage but one.

    All seeds of a condition are followed to the same last step, so the estimate is the share of seeds that have not escaped, with the band
    of `results.statistics.survival`.
    """
    curves: dict[str, Survival] = {}
    times: dict[str, list[float]] = {}
    horizon: dict[str, float] = {}
    for name, own in by_condition.items():
        escapes = [course.escape(course.order - 1) for course in own]
        times[name] = [np.inf if time is None else time for time in escapes] + [np.inf] * diverged[name]
        horizon[name] = max(float(course.steps[-1]) for course in own)
        if any(time is not None for time in escapes):
            curves[name] = survival(times[name])
    if not curves:
        return []
    room = 0.2 + 0.1 * len(curves)
    with titled_panels([""], 6.4, 3.8, STEP, "seeds still on the plateau", above=room) as (figure, (panel,)):
        handles: dict[str, Line2D] = {}
        for i, (name, curve) in enumerate(curves.items()):
            x = np.append(curve.x, horizon[name])
            share, low, high = (np.append(part, part[-1]) for part in (curve.share, curve.low, curve.high))
            panel.fill_between(x, low, high, step="post", color=colour_of(i), alpha=0.13, lw=0)
            (handles[name],) = panel.plot(x, share, drawstyle="steps-post", color=colour_of(i), lw=1.8)
        share_axis(panel)
        panel.grid(axis="y")
        legend(figure, handles)
    caption = (
        "Share of seeds whose loss has not yet left the plateau before the n-gram: it has gone 30 % of the way to the next one, for three "
        "looks in a row. A curve that ends above 0 is of seeds that had not left by the last step. Shading: a band that holds the whole "
        "curve with 95 %."
    ) + _compared(times, horizon)
    return [("ngram-survival", "Time on the last plateau", caption, figure)]


def _compared(times: Mapping[str, Sequence[float]], horizon: Mapping[str, float]) -> str:
    """When half of the seeds of each condition have left, and log-rank tests of each against the first one."""
    if len(times) < 2:
        return ""
    halves = [
        f"{name} {np.median(own):,.0f} [{interval.low:,.0f}, {interval.high:,.0f}]"
        for name, own in times.items()
        for interval in [quantile_interval(own, 0.5)]
    ]
    first, *others = times
    values = holm([log_rank(times[first], times[name], (horizon[first], horizon[name])) for name in others])
    tests = [f"{name} {'p < 0.0001' if p < 1e-4 else f'p = {p:.2g}'}" for name, p in zip(others, values, strict=True)]
    return (
        f" The step by which half of the seeds have left, with its 95 % interval: {'; '.join(halves)}. Log-rank tests against {first}, "
        f"with Holm's correction: {'; '.join(tests)}."
    ).replace("inf", "∞")


def _nearest(
    evidence: Evidence, by_condition: Mapping[str, tuple[Condition, Sequence[Course], Sequence[Heads]]]
) -> list[Drawn]:
    """A ribbon a condition: the share of seeds that are nearest to each k-gram, by KL divergence, at each look."""
    rows = series(evidence.averages, of_set=watched_set(evidence.averages))
    ribbons: dict[str, tuple[Floats, Floats]] = {}
    for name, (condition, own, _) in by_condition.items():
        order = own[0].order
        kinds = [f"kl {k}-gram" for k in range(1, order + 1)]
        known = [[rows[replicate.key].get(kind) for kind in kinds] for replicate in condition.replicates]
        distances = [
            np.stack([one.values for one in by_kind if one is not None])
            for by_kind in known
            if all(one is not None and np.array_equal(one.steps, own[0].steps) for one in by_kind)
        ]
        if len(distances) == len(own):
            nearest = np.array([distances_of.argmin(0) for distances_of in distances])
            ribbons[name] = own[0].steps, np.array([(nearest == k).mean(0) for k in range(order)])
    if not ribbons:
        return []
    with titled_panels(ribbons, 5.2, 2.2, STEP, "seeds", "y", 0.4, columns=2) as (figure, panels):
        orders = max(len(shares) for _, shares in ribbons.values())
        for panel, (steps, shares) in zip(panels, ribbons.values(), strict=True):
            edges = np.concatenate([np.zeros((1, len(steps))), shares.cumsum(0)])
            for k in range(len(shares)):
                ribbon = panel.fill_between(steps, edges[k], edges[k + 1], color=colour_of(k), alpha=0.75, lw=0, step="mid")
                tell(ribbon, f"{k + 1}-gram")
            panel.set_ylim(0, 1)
            panel.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
        legend(figure, {f"{k + 1}-gram": Line2D([], [], color=colour_of(k), lw=6, alpha=0.75) for k in range(orders)})
    caption = (
        "Share of seeds whose predictions are nearest to each k-gram estimator, by the KL divergence from the estimator to the model, "
        "with the smoothing that makes it smallest."
    )
    return [("ngram-nearest", "The nearest estimator", caption, figure)]
