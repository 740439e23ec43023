"""The order of a study's stages: a pack of a stage begins once the previous stage is committed for all its replicates."""

from collections.abc import Sequence

from harness.executing.progress import Progress
from harness.planning.pack import Pack
from harness.planning.plan import Plan
from harness.study.stages import steps_taken
from harness.training import weights as artifacts
from results.errors import StudyError
from results.rows.plural import counted
from results.store.tables import Store, read


def by_stage(packs: Sequence[Pack]) -> list[list[Pack]]:
    """The packs of each stage in their order, the first stage first."""
    return [[pack for pack in packs if pack.stage == stage] for stage in sorted({pack.stage for pack in packs})]


def ready(packs: Sequence[Pack], store: Store, progress: Progress) -> list[Pack]:
    """The packs of one stage, without the replicates whose parents are not committed; says how many those are."""
    if not packs or not packs[0].stage:
        return list(packs)
    committed_keys = set(read(store, "replicates", ["key"])["key"].to_pylist())
    packs_ready, left_out = [], 0
    for pack in packs:
        members = tuple(replicate for replicate in pack.replicates if replicate.parent in committed_keys)
        left_out += len(pack.replicates) - len(members)
        if len(members) == len(pack.replicates):
            packs_ready.append(pack)
        elif members:
            part = pack.part(members)
            progress.split(pack.id, [part])
            packs_ready.append(part)
    if left_out:
        are, them = ("is", "it") if left_out == 1 else ("are", "them")
        left = f"{counted(left_out, 'replicate')} of stage {packs[0].stage} {are} left out"
        progress.say(f"{left}: the stage before {them} is not committed")
    return packs_ready


def refuse_lost(plan: Plan, store: Store) -> None:
    """ValueError where a stage to come begins from committed weights that were not kept."""
    planned = {plan.replicates[index].key for pack in plan.packs for index in pack.replicates}
    lost: dict[str, set[int]] = {}
    for replicate in plan.replicates:
        if replicate.key in planned and replicate.parent in plan.done:
            condition = plan.study.conditions[replicate.condition]
            missing = steps_taken(condition).difference(artifacts.steps_of(store, replicate.parent, condition.stage - 1))
            if missing:
                lost.setdefault(replicate.parent, set()).update(missing)
    if not lost:
        return
    key, steps = next(iter(lost.items()))
    last = plan.study.conditions[next(replicate.condition for replicate in plan.replicates if replicate.key == key)].train.steps
    beyond = sorted(steps - {last})
    are, them = ("is", "it") if len(lost) == 1 else ("are", "them")
    what = f"{counted(len(lost), 'replicate')} {are} committed without the weights that stages after {them} begin from"
    if beyond:
        raise StudyError(
            f"{what}, such as {key[:8]} at step {beyond[0]}: a teacher keeps its checkpoints when it is trained together with its "
            "students or with keep: steps(…), so use another store"
        )
    each = ", each of them" if len(lost) > 1 else ""
    raise StudyError(
        f"{what}: make {them} again with manyseeds rerun {store.shell_word} {key[:8]} --keep weights{each}, or use another store"
    )
