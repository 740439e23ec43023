"""A person's own code: what this process runs for a condition, compared with what the condition was planned with."""

from harness.machine.provenance import checkout_state
from harness.study.config import Condition, own_code
from harness.study.foreign_code import ForeignCode
from results.errors import StudyError
from results.plain_values import Tree


def running_code(condition: Condition) -> ForeignCode | None:
    """The person's own code that this process runs for a condition, whatever has become of its files; None where there is none."""
    if condition.code is None:
        return None
    if condition.experiment is not None:
        return condition.experiment.code(running=True)
    return own_code(condition.task, condition.model, running=True)


def own_checkout(condition: Condition) -> Tree:
    """Columns of `replicates`: the commit of the checkout that a person's own code is in, and whether its files differ from it."""
    code = running_code(condition)
    commit, dirty = (None, None) if code is None else checkout_state(code.folder)
    return {"own_git": commit, "own_dirty": dirty}


def refuse_other_code(condition: Condition) -> None:
    """StudyError where this process would run other code than the condition was planned with.

    That may happen to a worker that starts after a file was edited.
    """
    if condition.code is None:
        return
    code = running_code(condition)
    digest = None if code is None else code.digest
    if digest != condition.code:
        written = condition.experiment is not None and condition.experiment.command
        hint = (
            "; a command that writes into experiment.sources changes its own code: let it write into {folder}"
            if written
            else ""
        )
        raise StudyError(
            f"condition {condition.name} was planned with the code {condition.code[:12]}, and the code here is {(digest or 'none')[:12]}: "
            f"bring the files back that it was planned with, then run manyseeds retry{hint}"
        )
