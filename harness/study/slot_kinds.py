"""Kinds of device slots in one study: its key `slots`, whose absence means all GPUs, or all cores where there is none.

    slots:
      - {device: cuda, accelerator: A100, per_gpu: 2}      # half of an A100; packs as large as is measured to be best
      - {device: cuda, accelerator: T4, pack: 16}
      - {device: cpu, resource: big, memory: 8GB}          # cores of the nodes started with --resources='{"big": 1}'

Not hashed: where a replicate runs changes no number of it that is not recorded beside it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from harness.study.config import refuse_unknown
from results.errors import StudyError
from results.plain_values import Tree, Value

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_TOUCH = 0.001  # amount of a custom resource to ask for: it only selects nodes, as with an accelerator type
_RAYS = ("CPU", "GPU", "memory", "object_store_memory")
_MOST_PER_GPU = 100


@dataclass(frozen=True)
class Kind:
    """A kind of device slot.

    device: cpu | cuda; accelerator: a GPU as Ray calls it; resource: a custom resource of the nodes; per_gpu: slots that share a GPU; pack:
    replicates a pack, None for measured; memory: bytes of a CPU slot, None for its part of the machine's; count: slots to ask for even
    where there are fewer, so that an autoscaler brings them.
    """

    device: str
    accelerator: str | None = None
    resource: str | None = None
    per_gpu: int = 1
    pack: int | None = None
    memory: int | None = None
    count: int | None = None

    @cached_property
    def name(self) -> str:
        """Its name in a manifest: everything that the size of its packs may follow from."""
        part = f"1/{self.per_gpu}" if self.per_gpu > 1 else None
        memory = None if self.memory is None else f"{self.memory / 1e9:g}GB"
        return " ".join(word for word in (self.device, self.accelerator, part, self.resource, memory) if word)

    def slots(self, resources: Mapping[str, float]) -> int:
        """Slots of a node with these resources of Ray's; 0 where the node is not of this kind."""
        if self.resource and not resources.get(self.resource):
            return 0
        if self.accelerator and not resources.get(f"accelerator_type:{self.accelerator}"):
            return 0
        if self.device == "cuda":
            return int(resources.get("GPU", 0)) * self.per_gpu
        cores = int(resources.get("CPU", 0))
        return cores if self.memory is None else min(cores, int(resources.get("memory", 0)) // self.memory)

    def options(self) -> Tree:
        """The resources that Ray is asked for, for one worker."""
        # rounded down to what Ray can count, so that all slots of a GPU find a place
        gpus = 1 if self.per_gpu == 1 else math.floor(10_000 / self.per_gpu) / 10_000
        asked: Tree = {"num_gpus": gpus, "num_cpus": 0} if self.device == "cuda" else {"num_cpus": 1}
        if self.accelerator:
            asked["accelerator_type"] = self.accelerator
        if self.resource:
            asked["resources"] = {self.resource: _TOUCH}
        return asked if self.memory is None else asked | {"memory": self.memory}

    def as_dict(self) -> Tree:
        """What `parse` reads, without the fields that are not given."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name) != field.default}


def parse(given: Value) -> tuple[Kind, ...]:
    """The kinds of a study's `slots`, in its order. ValueError with one sentence on anything wrong."""
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise StudyError(
            f"slots = {given!r} must be a list such as [{{device: cuda, per_gpu: 2}}, {{device: cpu, resource: big}}]"
        )
    kinds = [_kind(node, f"slots[{index}]") for index, node in enumerate(given)]
    for index, kind in enumerate(kinds):
        for other in kinds[:index]:
            if kind.device == other.device and not _apart(kind, other):
                word = "a resource" if kind.device == "cpu" else "an accelerator or a resource"
                raise StudyError(
                    f"slots[{index}] ({kind.name}) and slots[{kinds.index(other)}] ({other.name}) could be of the same nodes: give each "
                    f"{word} of its own"
                )
    return tuple(kinds)


def _apart(one: Kind, other: Kind) -> bool:
    """Whether two kinds of one device name different nodes."""
    return any(
        getattr(one, field) and getattr(other, field) and getattr(one, field) != getattr(other, field)
        for field in ("accelerator", "resource")
    )


def _kind(node: Value, where: str) -> Kind:
    if not isinstance(node, Mapping):
        raise StudyError(f"{where} = {node!r} must be a mapping such as {{device: cpu, resource: big}}")
    refuse_unknown(node, [field.name for field in fields(Kind)], where)
    device = node.get("device")
    if device not in ("cpu", "cuda"):
        raise StudyError(f"{where}.device = {device!r} must be cpu or cuda")
    for option, owner in (("accelerator", "cuda"), ("per_gpu", "cuda"), ("memory", "cpu")):
        if option in node and device != owner:
            other = "a GPU has the memory it has" if option == "memory" else "a core has none"
            raise StudyError(f"{where}.{option} applies only to device {owner}: leave it out, {other}")
    for option in ("accelerator", "resource"):
        value = node.get(option)
        if value is not None and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:-]*", value)):
            raise StudyError(f"{where}.{option} = {value!r} must be a word, as Ray has it")
    if node.get("resource") in _RAYS:
        raise StudyError(
            f"{where}.resource = {node['resource']!r} is Ray's own: name one that `ray start --resources` gave a node"
        )
    for option, most in (("per_gpu", _MOST_PER_GPU), ("count", None), ("pack", None)):
        value = node.get(option, 1)
        if (option, value) == ("pack", "auto"):
            continue
        if type(value) is not int or value < 1 or (most is not None and value > most):
            end = f" and at most {most}" if most else " or auto" if option == "pack" else ""
            raise StudyError(f"{where}.{option} = {value!r} must be a whole number of at least 1{end}")
    values = {key: value for key, value in node.items() if value not in (None, "auto")}
    if "memory" in values:
        values["memory"] = _bytes(values["memory"], f"{where}.memory")
    return Kind(**values)


def _bytes(value: Value, where: str) -> int:
    """8GB, 8 GiB, 500MB or a whole number of bytes."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?) ?(|[kMGT]|[KMGT]i)B?", str(value)) if type(value) in (int, str) else None
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size < 1:
        raise StudyError(f"{where} = {value!r} must be an amount such as 8GB or 500MB")
    return size
