"""`manyseeds trace`: trace wrong reads of replicates whose weights are kept, and add the rows to the store.

Rows of the table `probes`: probe is `trace`, or `trace-<method>`; item is the glitch (set, string, position of the read) and a name:

    events, event 1 …     how many events the set has, and their numbers (event j is tokens 2j and 2j + 1)
    support, p_cond, p_base, psi, lcb     of the search (probe `trace` alone)
    r2, r2_pairs, interaction     how much of ln P(wrong) they explain one by one, with products of pairs, the products' part (the same)
    jaccard     with several corpora: of the set with those of as many events found on the others, mean (the same)
    srep, srep_<family>, soft_<family>, preserved_<family>     in fresh strings: share of wrong reads, mean probability, truth kept

and, over the glitches of the replicate, `median srep`, with `low srep` and `high srep` where so few glitches bound it.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

import harness.machine.device
from harness.tracing.additivity import Additivity, additivity
from harness.tracing.flipflop.baselines import top
from harness.tracing.flipflop.glitches import Glitch, glitches
from harness.tracing.flipflop.methods import BASELINES, TRACE, Case, asked
from harness.tracing.flipflop.replay import STRINGS, Replay, replay
from harness.tracing.flipflop.replicate import Replicate, loaded, rows_of
from harness.tracing.flipflop.trace import Settings, Trace, evidence, searched
from harness.tracing.last_logits import Model
from results.errors import StudyError
from results.plain_values import Row
from results.rows.plural import counted
from results.rows.probe_values import add
from results.statistics.intervals import quantile_interval
from results.store.tables import Store

Rows = list[Row]
_MARKS = "wri"


@dataclass(frozen=True)
class Wanted:
    """methods: () for all. glitches: of each evaluation set. events: k, None for the size with the highest lower bound. sets: () for all.

    replays: strings of a family in S_rep. seed: of the corpora. corpora: how many the search is done on, each of a seed one higher; the
    first one's events are the trace, the others say how stable they are.
    """

    methods: tuple[str, ...] = ()
    glitches: int = 5
    events: int | None = None
    sets: tuple[str, ...] = ()
    replays: int = STRINGS
    seed: int = 0
    corpora: int = 1
    how: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        counts = {"--glitches": self.glitches, "--events": self.events, "--replays": self.replays, "--corpora": self.corpora}
        for option, value in counts.items():
            if value is not None and value < 1:
                raise StudyError(f"{option} {value} must be at least 1")
        support = self.how.search.support
        if self.how.strings < support:
            raise StudyError(
                f"--strings {self.how.strings} must be at least {support}: a set of events is scored on that many strings"
            )
        if not 0 <= self.seed <= 2**63 - self.corpora:  # the last corpus has the seed `seed + corpora - 1`
            raise StudyError(f"--seed {self.seed} must be at least 0 and, with --corpora {self.corpora}, below 2^63")


def run(stores: Sequence[Store], key: str, wanted: Wanted, device: str, say: Callable[[str], None]) -> None:
    """Trace the glitches of a replicate (key: 32 digits, or as many as tell it apart) or of all that have weights.

    Raises ValueError in one sentence, before anything is traced, where there are no weights, the task is another, or a set or method is
    not there; and where no read is wrong.
    """
    torch_device = harness.machine.device.resolve(device)
    chosen = [loaded(store, row, wanted.sets, torch_device) for store, row in rows_of(stores, key)]
    for replicate in chosen:
        asked(wanted.methods, replicate.model)
    harness.machine.device.prepare(torch_device)
    medians: dict[str, list[float]] = {}
    alike: list[float] = []
    reads = [_glitches(replicate, wanted, torch_device, say) for replicate in chosen]
    if not any(reads):
        raise StudyError(f"no read of {_sets(chosen)} is wrong: there is no glitch to trace")
    for replicate, traceable in zip(chosen, reads, strict=True):
        if not traceable:
            continue
        if len(chosen) > 1:
            say(f"{replicate.row['key'][:12]} ({replicate.row['condition']})")
        by_method, jaccard = _trace(replicate, traceable, wanted, say)
        for method, median in by_method.items():
            medians.setdefault(method, []).append(median)
        alike += [float(np.median(jaccard))] if jaccard else []
    if len(chosen) > 1:
        say("median S_rep over replicates, each by its own median")
        for method, values in medians.items():
            say(f"  {method:15} {_interval(values)} ({len(values)} replicates)")
        if alike:
            say(f"  events on other corpora: Jaccard {_interval(alike)} ({len(alike)} replicates)")


def _trace(
    replicate: Replicate, traceable: Sequence[Glitch], wanted: Wanted, say: Callable[[str], None]
) -> tuple[dict[str, float], list[float]]:
    """Trace the glitches of a replicate and keep the rows; median S_rep by method, and with several corpora Jaccard by glitch."""
    methods, left = asked(wanted.methods, replicate.model)
    for reason in left:
        say(f"  {reason}")
    rows: dict[str, Rows] = {method: [] for method in methods}
    sreps: dict[str, list[float]] = {method: [] for method in methods}
    alike: list[float] = []
    for number, glitch in enumerate(traceable, 1):
        began = time.perf_counter()
        traced, additive, by_method = traced_by(replicate.model, glitch, methods, wanted)
        for method, (events, played) in by_method.items():
            rows[method] += _glitch_rows(glitch, events, (traced, additive) if method == TRACE else None, played)
            sreps[method].append(played.srep)
        events = by_method[TRACE][0]
        if wanted.corpora > 1:
            alike.append(stability(replicate.model, glitch, events, wanted))
            rows[TRACE].append({"item": f"{glitch.name} jaccard", "value": alike[-1]})
        shown = " ".join(_shown(glitch, event) for event in events)
        say(
            f"  {number} of {len(traceable)}: set {glitch.set}, string {glitch.string}, read at {glitch.position}: {shown}, "
            f"S_rep {sreps[TRACE][-1]:.3f} ({time.perf_counter() - began:.1f} s)"
        )
    medians = {}
    for method in methods:
        defined = [value for value in sreps[method] if not math.isnan(value)]
        if defined:
            medians[method] = float(np.median(defined))
            rows[method] += _summary_rows(defined)
            say(f"  {method:15} S_rep {_interval(defined)} (median of {counted(len(defined), 'glitch')})")
        name = TRACE if method == TRACE else f"{TRACE}-{method}"
        about = {"key": replicate.row["key"], "stage": replicate.row["stage"], "step": replicate.step}
        add(replicate.store, replicate.row["pack"], name, [about | row for row in rows[method]])
    if alike:
        say(f"  events on other corpora: Jaccard {_interval(alike)} (median of {counted(len(alike), 'glitch')})")
    return medians, alike


def stability(model: Model, glitch: Glitch, events: Sequence[int], wanted: Wanted) -> float:
    """Mean over the other corpora of |A ∩ B| / |A ∪ B|, of the traced events and the best set of as many on that corpus."""
    own, shares = set(events), []
    for seed in range(wanted.seed + 1, wanted.seed + wanted.corpora):
        given = evidence(model, glitch.prompt, wanted.how, seed)
        theirs = set(searched(given, glitch.prompt, replace(wanted.how.search, size=len(own))).of(len(own)).events)
        shares.append(len(own & theirs) / len(own | theirs))
    return float(np.mean(shares))


def traced_by(
    model: Model, glitch: Glitch, methods: Sequence[str], wanted: Wanted
) -> tuple[Trace, Additivity, dict[str, tuple[tuple[int, ...], Replay]]]:
    """The trace of a glitch, how additive its events are, and by method its events and what they do in fresh strings; every method takes
    as many events."""
    how = wanted.how
    if wanted.events is not None:
        how = replace(how, search=replace(how.search, size=wanted.events))
    prompt = glitch.prompt
    given = evidence(model, prompt, how, wanted.seed)
    traced = searched(given, prompt, how.search)
    best = traced.best if wanted.events is None else traced.of(wanted.events)
    case = Case(model, prompt, given, wanted.seed)
    by_method, played = {}, {}
    for method in methods:
        k = len(best.events)
        events = best.events if method == TRACE else top(BASELINES[method].scores(case), k, prompt, wanted.seed)
        if events not in played:  # methods that agree share the strings, and so the answers
            played[events] = replay(model, prompt, events, wanted.seed, wanted.replays)
        by_method[method] = events, played[events]
    return traced, additivity(given.same, given.hit, best.events), by_method


def _glitch_rows(glitch: Glitch, events: Sequence[int], own: tuple[Trace, Additivity] | None, played: Replay) -> Rows:
    values: dict[str, float] = {"events": len(events)}
    values |= {f"event {index}": event for index, event in enumerate(events, 1)}
    if own is not None:
        traced, additive = own
        best = traced.of(len(events))
        values |= {"support": best.support, "p_cond": best.mean, "p_base": best.base, "psi": best.psi, "lcb": best.bound}
        values["preserved"] = traced.preserved
        shares = {"r2": additive.r2}
        if len(events) > 1:
            shares |= {"r2_pairs": additive.pairs, "interaction": additive.interaction}
        values |= {name: value for name, value in shares.items() if not math.isnan(value)}
    values["srep"] = played.srep
    for name, by_family in (("srep", played.hard), ("soft", played.soft), ("preserved", played.preserved)):
        values |= {f"{name}_{family}": value for family, value in by_family.items()}
    return [{"item": f"{glitch.name} {name}", "value": float(value)} for name, value in values.items()]


def _summary_rows(sreps: Sequence[float]) -> Rows:
    interval = quantile_interval(sreps, 0.5)
    values = {"median srep": float(np.median(sreps)), "low srep": interval.low}
    if math.isfinite(interval.high):
        values["high srep"] = interval.high
    return [{"item": name, "value": value} for name, value in values.items()]


def _interval(values: Sequence[float]) -> str:
    interval = quantile_interval(values, 0.5)
    if not math.isfinite(interval.high):  # with so few values both ends are open
        return f"{np.median(values):.3f}, too few for an interval"
    return f"{np.median(values):.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _shown(glitch: Glitch, event: int) -> str:
    """Such as w1@-12: what it is, and how many events before the read."""
    prompt = glitch.prompt
    return f"{_MARKS[int(prompt.instructions[event])]}{int(prompt.symbols[event])}@{event - prompt.query}"


def _glitches(replicate: Replicate, wanted: Wanted, device: torch.device, say: Callable[[str], None]) -> list[Glitch]:
    traceable = [glitch for scored in replicate.sets for glitch in glitches(replicate.model, scored, wanted.glitches, device)]
    row, names = replicate.row, ", ".join(scored.name for scored in replicate.sets)
    say(f"{row['key'][:12]} ({row['condition']}): {counted(len(traceable), 'glitch')} on {names}")
    return traceable


def _sets(chosen: Sequence[Replicate]) -> str:
    sets = dict.fromkeys(scored.name for replicate in chosen for scored in replicate.sets)
    who = chosen[0].row["key"] if len(chosen) == 1 else f"{len(chosen)} replicates"
    return f"{who} on {', '.join(sets)}"
