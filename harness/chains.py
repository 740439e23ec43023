"""The order of a study's stages: a pack of one is begun when the weights of the stage before are committed for all its replicates."""

from collections.abc import Sequence

from harness import artifacts
from harness.pack import Pack
from harness.plan import Plan
from harness.progress import Progress
from harness.stages import parent_of
from results.store import Store, read


def by_stage(packs: Sequence[Pack]) -> list[list[Pack]]:
    """The packs of each stage in their order, the first stage first."""
    return [[pack for pack in packs if pack.stage == stage] for stage in sorted({pack.stage for pack in packs})]


def ready(packs: Sequence[Pack], store: Store, progress: Progress) -> list[Pack]:
    """The packs of one stage without the replicates whose parents are not committed, which is said."""
    if not packs or not packs[0].stage:
        return list(packs)
    have = set(read(store, "replicates", ["key"])["key"].to_pylist())
    found, left = [], 0
    for pack in packs:
        members = tuple(each for each in pack.replicates if each.parent in have)
        left += len(pack.replicates) - len(members)
        if len(members) == len(pack.replicates):
            found.append(pack)
        elif members:
            part = pack.part(members)
            progress.split(pack.id, [part])
            found.append(part)
    if left:
        progress.say(f"{left} replicates of stage {packs[0].stage} are left out: the stage before them is not committed")
    return found


def refuse_lost(plan: Plan, store: Store) -> None:
    """ValueError where a stage to come begins from committed weights that were not kept."""
    planned = {plan.replicates[index].key for pack in plan.packs for index in pack.replicates}
    lost = []
    for each in plan.replicates:
        if each.key in planned and each.parent in plan.done:
            before = parent_of(plan.study.conditions[each.condition])
            if before is not None and before.train.steps not in artifacts.steps_of(store, each.parent, before.stage):
                lost.append(each.parent)
    if lost := list(dict.fromkeys(lost)):
        raise ValueError(
            f"{len(lost)} replicates are committed without the weights that stages after them begin from: make them again with "
            f"manyseeds rerun STORE {lost[0][:8]} --keep weights, each of them, or use another store"
        )
