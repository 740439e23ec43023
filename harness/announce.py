"""What a person reads before a study starts: what it is, what is done, and what the rest will cost."""

import json
from collections.abc import Callable

import harness.planning.adaptive as adaptive
import harness.planning.amounts as amounts
import harness.planning.manifest as manifests
import harness.training.sgd_loop as sequential
from harness import compiled_draw
from harness.executing.missing_mount import begun
from harness.planning.cost import Estimate
from harness.planning.pack_sizes import packs_by_kind
from harness.prepare import Prepared, next_round
from harness.study.config import Condition, Study, keep_tail
from harness.training import weights as artifacts
from results.errors import StudyError
from results.progress.status import unplanned
from results.report.first_screen import smaller_than
from results.rows.plural import counted
from results.rows.summary import replicates_of
from results.store.filesystem import public
from results.store.manifest import Manifest
from results.store.schema import SCHEMAS
from results.store.tables import committed, read

_AROUND_S = {"local": 8.0, "ray": 20.0}  # seconds beside training: imports, Ray, the report, W&B


def announce(prepared: Prepared, say: Callable[[str], None], retry: bool = False) -> None:
    """Say what the study is and what it will cost. StudyError if the budget is less than the first look of an adaptive study takes."""
    _say_what_it_is(prepared, say)
    _say_what_is_done(prepared, say)
    _say_how_it_runs(prepared, say)
    if prepared.first:
        say("  nothing is known of what a replicate takes: the run begins with the first ones, and then says it")
    elif prepared.study.adaptive is None:
        _say_cost(prepared, say)
    else:
        _say_adaptive_cost(prepared, say, retry)


def _say_what_it_is(prepared: Prepared, say: Callable[[str], None]) -> None:
    study, planned = prepared.study, prepared.plan
    scale = "" if study.scale == "paper" else f" (scale {study.scale})"
    say(f"{study.name}{scale}: {' '.join(study.question.split())}")
    if smaller := smaller_than(study.source, study.reductions):
        say(f"  {smaller}")
    new = "" if planned.done or begun(prepared.store) else ", where this study has not begun"
    stages = 1 + max(condition.stage for condition in study.conditions)
    staged = f" in {stages} stages" if stages > 1 else ""
    say(
        f"  {counted(len(planned.replicates), 'replicate')} of {counted(_conditions(study), 'condition')}{staged}, "
        f"{len(planned.done)} committed in {public(prepared.uri)}{new}"
    )


def _say_what_is_done(prepared: Prepared, say: Callable[[str], None]) -> None:
    """What the store has beside the plan, lacks for a verdict, or has without what is asked for now."""
    study, planned = prepared.study, prepared.plan
    keys = set(read(prepared.store, "replicates", ["key"])["key"].to_pylist())
    if more := len(keys - {replicate.key for replicate in planned.replicates}):
        say(f"  {unplanned(more)}")
    for line in _without_verdict(prepared):
        say(f"  {line}")
    if planned.failed:
        are, them = ("is", "it") if len(planned.failed) == 1 else ("are", "them")
        say(f"  {len(planned.failed)} failed before and {are} left out: manyseeds retry plans {them} again")
    bare = [] if study.is_experimental or keep_tail(study.keep) is not None else artifacts.without(prepared.store, planned.done)
    if bare:
        have = f"{counted(len(bare), 'committed replicate')} {'has' if len(bare) == 1 else 'have'}"
        again = f"manyseeds rerun {prepared.store.shell_word} {bare[0][:8]} --keep weights"
        say(
            f"  keep={study.keep} applies to what is trained from now on, and {have} no weights: {again} makes those of one again"
        )


def _say_how_it_runs(prepared: Prepared, say: Callable[[str], None]) -> None:
    """The compiled loops, or why they are missing, and the code of experiments."""
    study = prepared.study
    on_cpu = prepared.numerics["device"] == "cpu" and not study.compile
    looped = {condition.name for condition in _trained(study) if sequential.fits(condition)} if on_cpu else set()
    if looped:
        why_not = sequential.missing()
        how = f"the ordinary loop, many times slower: {why_not}" if why_not else "the compiled loop"
        say(f"  batch-1 SGD ({len(looped)} of {counted(_conditions(study), 'condition')}) takes {how}")
    if refused := compiled_draw.refusal():
        say(f"  random numbers are drawn by torch, several times slower than in C: {refused}")
    for experiment in dict.fromkeys(c.experiment.words for c in study.conditions if c.experiment is not None):
        say(f"  {_code_line(study, experiment)}")


def _say_cost(prepared: Prepared, say: Callable[[str], None]) -> None:
    study, cost = prepared.study, prepared.cost
    _say_kinds(prepared, say)
    say(f"  to do: {_cost(prepared, cost)}")
    continued = [s.name for s in study.sets if any(s.task(c.task).passes > 1 for c in _trained(study))]
    if continued and cost.replicates:
        shown = ", ".join(continued[:4]) + (f" and {len(continued) - 4} more" if len(continued) > 4 else "")
        say(f"  likely less: on {shown}, a pass is counted for every answer; a model that answers right needs few")


def _say_adaptive_cost(prepared: Prepared, say: Callable[[str], None], retry: bool) -> None:
    """StudyError if the budget is less than the first look takes."""
    study, cost, unit = prepared.study, prepared.cost, _unit(prepared)
    _say_kinds(prepared, say)
    rule, first = adaptive.rule_of(study), next_round(prepared, retry)
    say(f"  adaptive: {rule.minimum} to {rule.maximum} replicates a condition, until {rule.words}; looks every {rule.step}")
    if cost.replicates:
        say(f"  to do, at least: {_cost(prepared, first.cost)}")
        say(f"  to do, at most: {_cost(prepared, cost)}")
    else:
        say("  to do: nothing")
    if rule.budget is not None:
        used = adaptive.spent(study, committed(prepared.store))
        say(f"  budget: {rule.budget:g} {unit}-hour{'s'[: rule.budget != 1]}, {amounts.device_time(used, unit)} of them spent")
        if not used and first.cost.slot_hours > rule.budget:
            raise StudyError(
                f"budget.gpu_hours = {rule.budget:g} is less than the {first.cost.slot_hours:.2g} {unit}-hours that the first look is "
                "expected to take: raise it or lower replicates.min"
            )


def _say_kinds(prepared: Prepared, say: Callable[[str], None]) -> None:
    """The packs of each kind of slot, where there are several kinds."""
    if len(prepared.study.slots) > 1 and not prepared.study.is_experimental:
        for name, packs in packs_by_kind(prepared.plan).items():
            say(f"  {name}: {packs}")


def _conditions(study: Study) -> int:
    """The number of conditions; those that differ only in their stage are one."""
    return len({condition.name for condition in study.conditions})


def _trained(study: Study) -> list[Condition]:
    return [condition for condition in study.conditions if condition.experiment is None]


def _unit(prepared: Prepared) -> str:
    """What hours are counted of."""
    if len(prepared.study.slots) > 1:
        return "slot"
    return "core" if prepared.numerics["device"] == "cpu" else "GPU"


def _without_verdict(prepared: Prepared) -> list[str]:
    """The lines on claims that this study can't decide: they need more replicates, or, before any has ended, something else."""
    study, planned = prepared.study, prepared.plan
    if not study.claims:
        return []
    # here, as in load: a study without claims does not wait for the imports
    from results.claims import REGISTRY, terms_of, verdicts
    from results.claims.claim import NOT_RUN

    most = max(len(condition.seeds) for condition in study.conditions)
    needed = {name: terms_of(REGISTRY[name], node).replicates or REGISTRY[name].needs for name, node in study.claims.items()}
    short = [f"{name} needs {count}" for name, count in needed.items() if count > most]
    are = "is" if most == 1 else "are"
    lines = [f"{counted(most, 'replicate')} of a condition {are} too few for a verdict: {', '.join(short)}"] if short else []
    if not planned.done:
        manifest: Manifest = json.loads(manifests.to_bytes(manifests.build(planned, prepared.numerics, {})))
        none = [SCHEMAS[name].empty_table() for name in ("replicates", "evaluations", "failures")]
        found = verdicts(manifest, replicates_of(manifest, *none))
        lines += [f"no verdict on {each.claim.id}: {each.finding.reason}" for each in found if each.verdict == NOT_RUN]
    return lines


def _code_line(study: Study, words: str) -> str:
    """The line on an experiment's code: its digest and its files. words: the function or command."""
    condition = next(
        candidate for candidate in study.conditions if candidate.experiment is not None and candidate.experiment.words == words
    )
    code = condition.experiment.code() if condition.experiment is not None else None
    if code is None:
        return f"{words}: built in"
    names = code.files
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"{words}: code {(condition.code or '')[:12]} of {shown}"


def _cost(prepared: Prepared, cost: Estimate) -> str:
    """A cost in words. cost: of the whole plan or of a part of it."""
    if not cost.replicates:
        return "nothing"
    executor = "local" if prepared.study.executor == "auto" and prepared.small else prepared.study.executor
    weights = f", {amounts.size(cost.weights)} of weights" if cost.weights else ""
    if cost.weights_meanwhile > cost.weights:
        weights += f" ({amounts.size(cost.weights_meanwhile)} until the end thins them out)"
    around = _AROUND_S.get(executor, _AROUND_S["ray"]) if cost.packs else 0.0
    hours = cost.slot_hours if executor == "local" else cost.hours  # one process runs the packs one after the other
    device_time = amounts.device_time(cost.slot_hours, _unit(prepared))
    return (
        f"{counted(cost.replicates, 'replicate')} in {counted(cost.packs, 'pack')}, {device_time}, about "
        f"{amounts.duration(hours * 3600 + around)} ({amounts.duration(around)} of them for the start and the report), "
        f"{amounts.size(cost.tables)} of tables{weights}"
    )
