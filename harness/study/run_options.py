"""Where and how a study runs: the pack size, store, device, executor, slots, leases and W&B of a study's merged words."""

import re

from harness.study.config import one_of, refuse_unknown
from harness.study.limits import MOST_REPLICATES
from harness.study.slot_kinds import Kind
from harness.study.slot_kinds import parse as parse_kinds
from harness.study.tree import count, mapping, typed
from results.dashboards.dashboard_count import RUNS
from results.errors import StudyError
from results.plain_values import Tree
from results.store.filesystem import check_uri

_EXECUTORS = ("auto", "ray", "local")
_WANDB = ("off", "offline", "online")


def pack_size(merged: Tree) -> int | None:
    pack = mapping(merged, "pack")
    refuse_unknown(pack, ("size", "compile"), "pack")
    return None if pack.get("size", "auto") == "auto" else count(pack, "size", "pack.", " or auto", MOST_REPLICATES)


def store(merged: Tree) -> str:
    path = typed(merged, "store", str, "runs")
    check_uri(path)
    return path


def device(merged: Tree) -> str:
    name = typed(merged, "device", str, "auto")
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", name):
        raise StudyError(f"device = {name!r} must be auto, cpu, cuda or cuda:<number>")
    return name


def executor(merged: Tree) -> str:
    """The executor as written, except that `auto` with one GPU by its number is this process."""
    written, where = one_of(merged.get("executor", "auto"), "executor", _EXECUTORS), device(merged)
    if not where.startswith("cuda:"):
        return written
    if written == "ray":
        raise StudyError(
            f"device = {where} names one GPU, and executor = ray takes all of them: write executor=local, or device=cuda"
        )
    return "local"


def slots(merged: Tree) -> tuple[Kind, ...]:
    if merged.get("slots") is None:
        return ()
    for key, fitting, why in (
        ("device", ("auto",), "each of the slots has its own"),
        ("executor", ("auto", "ray"), "the slots are Ray's"),
    ):
        if merged.get(key, "auto") not in fitting:
            raise StudyError(f"{key} = {merged[key]!r} beside slots: leave one of them out, {why}")
    return parse_kinds(merged["slots"])


def leases(merged: Tree) -> bool:
    return one_of(merged.get("leases", "on"), "leases", ("on", "off")) == "on"


def with_wandb(tree: Tree) -> Tree:
    """`wandb: offline` as `wandb: {mode: offline}`, so that a file's and the command line's words merge."""
    value = tree.get("wandb", {})
    return tree if isinstance(value, dict) else tree | {"wandb": {"mode": value}}


def wandb(merged: Tree) -> tuple[str, str]:
    """(mode of W&B, what gets a run of its own beside the study)."""
    node = mapping(merged, "wandb")
    refuse_unknown(node, ("mode", "runs"), "wandb")
    return one_of(node.get("mode", "offline"), "wandb", _WANDB), one_of(node.get("runs", "study"), "wandb.runs", RUNS)
