"""What packs would take on a GPU that is not at hand: a model, not a measurement.

The harness goes through its own step once, by shapes alone, and counts each operation as one kernel. A kernel takes as long as its
arithmetic at a share of the GPU's peak, its traffic at the GPU's bandwidth, or its launch from a CUDA graph, whichever is longest. Fused
attention has a rate of its own: its heads are padded to 32, and exponentials bound its softmax. Packs of two and of three are counted;
traffic and arithmetic are linear in the replicates, so every other size follows. Steps whose scored positions overflow their block take
longer, which is left out.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

import harness.training.weights as artifacts
import models.lstm
from harness.draw import Draw
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome
from harness.machine.interrupt import Interrupt
from harness.machine.memory import Memory
from harness.planning.gpus import Gpu
from harness.planning.pack import Pack
from harness.planning.throughput import Rate, in_one_pass, room_of
from harness.study.slot_kinds import Kind
from harness.training.cuda_graph import copies
from harness.training.evaluate import batch_size, score
from harness.training.pack_state import Training
from harness.training.training_strings import drawn_steps
from models.lstm import Recurrent
from results.errors import StudyError
from results.store.tables import Store

PRODUCTS = 0.85  # share of the peak rate that a large product reaches
HEAD = 32  # the head dimension that its kernels pad to
_NOT_COMPILED = 1.5  # how many times as long a pack takes that is not compiled, measured with six layers in bf16
_KERNEL_S = 3e-6  # seconds of the smallest kernel in a CUDA graph
_LAUNCH_S = 5e-6  # seconds of the smallest kernel that the host launches
_STATE = 16  # bytes a parameter: itself, its gradient and two moments
_NO_KERNEL = set("empty empty_like empty_strided new_empty new_empty_strided detach _unsafe_view".split())
_STRINGS = 16  # strings of an evaluation set that are counted


@dataclass(frozen=True)
class Kernel:
    """One operation. flop: of products; bytes: read and written; scores: of fused attention; half: whether its products are in bf16."""

    name: str
    flop: float
    bytes: float
    scores: float = 0.0
    half: bool = False

    def seconds(self, gpu: Gpu, precision: str, floor: float) -> float:
        peak = gpu.products["bf16" if self.half else precision]
        rate = min(gpu.attention, peak) if self.scores else PRODUCTS * peak
        return max(floor, self.flop / rate + self.scores * gpu.score_s, self.bytes / gpu.bandwidth)


class Counted(TorchDispatchMode):
    """The kernels of what runs inside the block, in order; views launch none, and random numbers take one kernel a draw.

    A recurrence computes two positions alone, and the second one's kernels count for all later ones. So its numbers are wrong.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[Kernel] = []

    def __enter__(self) -> "Counted":
        self._walk = models.lstm.walk
        models.lstm.walk = self._two_of
        self._drawn = {name: getattr(Draw, name) for name in ("words", "factors")}
        for name, drawn in self._drawn.items():
            setattr(Draw, name, self._in_one(name, drawn))
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        models.lstm.walk = self._walk
        for name, drawn in self._drawn.items():
            setattr(Draw, name, drawn)
        super().__exit__(*error)

    def _two_of(self, positions: range) -> Iterator[int]:
        first = 0
        for position in positions[:2]:
            first = len(self.kernels)
            yield position
        self.kernels += self.kernels[first:] * (len(positions) - 2)

    def _in_one(self, name: str, drawn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """A method of `Draw` as a GPU computes it (`harness.gpu_draw`), by one kernel that writes its result."""

        def draw(*args: Any, **kwargs: Any) -> Tensor:
            first = len(self.kernels)
            out = drawn(*args, **kwargs)
            self.kernels[first:] = [Kernel(name, 0.0, float(_bytes(out)), 0.0, False)]
            return out

        return draw

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        # a tensor that is written in place is among the given ones, though a fake one comes back as another object
        made = [] if func._schema.is_mutable else [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        if not func.is_view and (given or made) and func.namespace == "aten" and func.overloadpacket.__name__ not in _NO_KERNEL:
            tensors = {id(each): each for each in (*given, *made)}.values()
            name = func.overloadpacket.__name__
            flop, scores = _work(func, name, args, kwargs or {}, out)
            half = any(each.dtype == torch.bfloat16 for each in given)
            self.kernels.append(Kernel(name, flop, float(sum(map(_bytes, tensors))), scores, half))
        return out


def _bytes(tensor: Tensor) -> int:
    """Bytes of a tensor's elements; elements that an expanded axis repeats count once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride else min(size, 1)
    return count * tensor.element_size()


def _work(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> tuple[float, float]:
    """(FLOP, attention scores) of an operation; scores are 0 except for fused attention."""
    if "scaled_dot_product" in name:
        backward = name.endswith("_backward")
        query, key = args[1:3] if backward else args[:2]
        causal = any(each is True for each in (*args, *kwargs.values()))
        scores = query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2] / (2 if causal else 1)
        flop = (2.5 if backward else 1) * 4 * scores * max(HEAD, query.shape[3])
        return flop, scores * (0.6 if backward else 0.4)
    count = flop_registry.get(func.overloadpacket)
    return (0.0 if count is None else float(count(*args, **kwargs, out_val=out))), 0.0


@dataclass(frozen=True)
class Linear:
    """Kernels of packs of two and of three, in the same order. A pack of one takes other paths here and there."""

    two: tuple[Kernel, ...]
    three: tuple[Kernel, ...]

    def seconds(self, size: int, gpu: Gpu, precision: str, floor: float, strings: float = 1.0) -> float:
        """Seconds of a pack of `size` replicates, with `strings` times as many strings as were counted."""
        total = 0.0
        for two, three in zip(self.two, self.three, strict=True):
            flop, moved, scores = (
                strings * (here + (size - 2) * (there - here))
                for here, there in ((two.flop, three.flop), (two.bytes, three.bytes), (two.scores, three.scores))
            )
            total += Kernel(two.name, flop, moved, scores, two.half).seconds(gpu, precision, floor)
        return total


def counted(run: Callable[[], object]) -> tuple[Kernel, ...]:
    """The kernels of one call."""
    with Counted() as mode:
        run()
    return tuple(mode.kernels)


@dataclass(frozen=True)
class Work:
    """The work of one shape: a step, drawing its strings, every evaluation set, bytes of memory at R = 2 and 3.

    weights: bytes of the file of one replicate's weights, 0 where the pack keeps none.
    """

    step: Linear
    drawing: Linear
    evaluation: tuple["Scoring", ...]
    memory: tuple[int, int]
    weights: int


@dataclass(frozen=True)
class Scoring:
    """How an evaluation set is scored.

    kernels: of the batch that was counted; counted: its strings; batch: strings of a batch on a GPU; strings: of a whole training.
    """

    kernels: Linear
    counted: int
    batch: int
    strings: int

    def seconds(self, size: int, gpu: Gpu, precision: str) -> float:
        batch = min(self.batch, self.strings)
        return self.strings / batch * self.kernels.seconds(size, gpu, precision, _LAUNCH_S, batch / self.counted)


def work_of(two: Pack, three: Pack) -> Work:
    """Count packs of two and of three replicates of the same shape on this machine's CPU."""
    (step, drawing, sets, memory, weights), (step3, drawing3, sets3, memory3, _) = map(_counted, (two, three))
    train = two.replicates[0].condition.train
    scored = []
    for kernels, kernels3, (own, passes) in zip(sets, sets3, map(in_one_pass, two.sets), strict=True):
        rounds = 1 + (train.steps - 1) // own[0].every if own[0].every else 1
        strings, here = own[0].sequences * passes * rounds, min(_STRINGS, own[0].sequences)
        scored.append(Scoring(Linear(kernels, kernels3), here, batch_size(own[0], torch.device("cuda")), strings))
    return Work(Linear(step, step3), Linear(drawing, drawing3), tuple(scored), (memory, memory3), weights)


_Kernels = tuple[Kernel, ...]


def step_of(pack: Pack) -> tuple[_Kernels, Training, int]:
    """The kernels of a training step, its training, and bytes at the peak. By shapes alone: a large step would take minutes."""
    device = torch.device("cpu")
    training = Training(pack, device)
    if training.loop is not None:
        raise StudyError("batch-1 SGD runs as a compiled loop on CPUs: there is no model of it on a GPU")
    for module in training.model.modules():
        if isinstance(module, Recurrent):
            module.packed = True  # as on a GPU
    strings, scalars = copies(training.usual_strings()), training.scalars.at(1)
    with FakeTensorMode(allow_non_fake_inputs=True), Memory(device) as computing:
        step = counted(partial(training.compute, strings, scalars, 1))
    return step, training, computing.peak()


def _counted(pack: Pack) -> tuple[_Kernels, _Kernels, list[_Kernels], int, int]:
    """Kernels of a step, of drawing its strings and of a batch of each evaluation set; bytes at the peak, and of weights."""
    device = torch.device("cpu")
    step, training, computing = step_of(pack)
    with Memory(device) as held:
        drawing = counted(partial(training.feed.batch, 1, 1))
    parameters = sum(parameter.numel() for parameter in training.model.parameters())
    memory = _STATE * parameters + computing + drawn_steps(pack, torch.device("cuda")) * held.peak()
    sets = []
    training.model.forward = partial(_of_shapes, training.model.forward)
    for own, _ in map(in_one_pass, pack.sets):
        # of a set that is scored on the way the strings may be kept: here every look draws them
        some = [dataclasses.replace(each, sequences=min(_STRINGS, each.sequences), every=None) for each in own]
        sets.append(counted(partial(score, training.model, some, device, training.train.precision)))
    weights = len(artifacts.content(pack, training.model, 0)) if pack.keep else 0
    return step, drawing, sets, memory, weights


def _of_shapes(forward: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Zeros in the shape of a model's answer, whose kernels are counted and not computed: a large model would take minutes."""
    mode = _get_current_dispatch_mode()
    with _disable_current_modes():
        with FakeTensorMode(allow_non_fake_inputs=True), Counted() as shapes:
            out = forward(*args, **kwargs)
        if isinstance(mode, Counted):
            mode.kernels += shapes.kernels
        return torch.zeros(out.shape, dtype=out.dtype)


class Modelled:
    """An executor that plans for `slots` GPUs which are not here. It trains nothing."""

    device = "cuda"

    def __init__(self, gpu: Gpu, slots: int = 1):
        if slots < 1:
            raise StudyError(f"--gpus {slots} must be at least 1")
        self.gpu, self.slots = gpu, slots
        self.asked: Callable[[], bool] = lambda: False
        self._work: dict[str, Work] = {}

    def measure(self, pack: Pack, kind: Kind | None = None) -> Rate:
        """The modelled speed and memory of a pack."""
        work = self._work.get(pack.signature)
        if work is None:
            work = self._work[pack.signature] = work_of(_of_size(pack, 2), _of_size(pack, 3))
        size, train = len(pack.replicates), pack.replicates[0].condition.train

        def seconds(part: Linear, floor: float) -> float:
            return part.seconds(size, self.gpu, train.precision, floor)

        step = seconds(work.step, _KERNEL_S) + seconds(work.drawing, _LAUNCH_S / drawn_steps(pack, torch.device("cuda")))
        evaluate = sum(scoring.seconds(size, self.gpu, train.precision) for scoring in work.evaluation)
        factor = 1 if pack.numerics.get("compile") else _NOT_COMPILED
        two, three = work.memory
        return Rate(size, factor * step, factor * evaluate, two + (size - 2) * (three - two), work.weights)

    def machine(self, kind: Kind | None = None) -> str:
        return f"model of one {self.gpu.name}"

    def room(self, kind: Kind | None = None) -> int:
        return room_of(self.gpu.memory)

    def check_store(self, store: Store, uri: str) -> None:
        """Nothing to check: nothing trains."""

    def run(self, packs: list[Pack], store: Store, uri: str, progress: Progress, interrupt: Interrupt) -> list[Outcome]:
        raise StudyError(f"a {self.gpu.name} that is not here can only be planned for")

    def close(self) -> None:
        """Nothing was started."""


def _of_size(pack: Pack, size: int) -> Pack:
    """The pack's first replicate with other seeds beside it."""
    first = pack.replicates[0]
    replicates = tuple(
        dataclasses.replace(
            first, key=f"{first.key}-{more}", init_seed=first.init_seed + more, data_seed=first.data_seed + more
        )
        for more in range(size)
    )
    return dataclasses.replace(pack, replicates=replicates, numerics={**pack.numerics, "compile": False})
