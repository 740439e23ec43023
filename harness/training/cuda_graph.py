"""The step of a pack as a CUDA graph: hundreds of kernels are launched by one call, so that the host does not limit the speed.

Everything that changes from step to step (strings, learning rates, the step's number for dropout) is copied into fixed places first. A
step whose strings overflow the block of K needed positions has another shape: there is a second graph for two blocks, and the few
steps with more are computed eagerly.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from harness.training.loss_positions import Needed
from harness.training.training_strings import Strings
from tasks.batch import View

_WARM_UP = 3  # eager steps before capture, as torch.cuda.graph asks for
_TOLERANCE = {"fp32": 1e-3, "tf32": 2e-2, "bf16": 2e-2}  # of the norm of a gradient: kernels may add in another order


class Replay:
    """One pack's step with fixed inputs. `compute(strings, scalars, step)` returns tensors [R]; step is int64 [R]."""

    def __init__(
        self,
        compute: Callable[[Strings, Tensor, Tensor], tuple[Tensor, ...]],
        strings: Strings,
        scalars: Tensor,
        step: Tensor,
        capture: "Callable[[Callable[[], object]], Callable[[], None]]",
    ):
        """strings, scalars, step: the fixed inputs, which every call overwrites."""
        self.strings, self.scalars, self.step = strings, scalars, step
        self.outputs: tuple[Tensor, ...] = ()

        def run() -> None:
            self.outputs = compute(strings, scalars, step)

        self._replay = capture(run)

    def fits(self, strings: Strings) -> bool:
        """Whether these strings have the captured shapes."""
        return strings.needed.targets.shape == self.strings.needed.targets.shape

    def __call__(self, strings: Strings, scalars: Tensor, step: int) -> tuple[Tensor, ...]:
        """Compute `step`; the results are overwritten by the next call."""
        for fixed, new in zip(_tensors(self.strings), _tensors(strings), strict=True):
            fixed.copy_(new)
        self.scalars.copy_(scalars)
        self.step.fill_(step)
        self._replay()
        return self.outputs


def cuda_captures() -> Callable[[Callable[[], object]], Callable[[], None]]:
    """A function that captures `run`, after some eager calls on a side stream of the current device, and returns the replay.

    All that it captures shares one pool of memory, as large as the largest needs: one graph is replayed at a time, and its results are
    read before the next.
    """
    pool = torch.cuda.graph_pool_handle()

    def capture(run: Callable[[], object]) -> Callable[[], None]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        _record(graph, pool, run)
        return graph.replay

    return capture


def _record(graph: torch.cuda.CUDAGraph, pool: Any, run: Callable[[], object]) -> None:
    """Capture `run` into the graph. Where it breaks, its own error is raised, and the stream is the same as before.

    torch ends a broken capture with a second error, and then takes back neither the stream nor the allocator's use of the pool.
    """
    stream, own = torch.cuda.current_stream(), None
    try:
        with no_collection(), torch.cuda.graph(graph, pool=pool):
            try:
                run()
            except Exception as error:
                own = error
                raise
    except Exception as error:
        with contextlib.suppress(RuntimeError):  # torch has done it where the capture itself came to its end
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
            torch._C._cuda_releasePool(torch.cuda.current_device(), pool)
        raise own or error from None
    finally:
        own = None  # or it would hold this frame, which holds it
        torch.cuda.set_stream(stream)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Collect garbage first and not inside the block: memory that is freed while a graph is captured breaks the capture."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def agree(eager: Tensor, replayed: Tensor, precision: str) -> bool:
    """Whether a replayed step has every replicate's gradient [R, P] of the eager one, up to rounding; NaN agrees with NaN.

    Gradients and not weights: the first step of Adam is a sign, which makes a large change of the smallest rounding error. `eager` may
    lie on the host: it is compared replicate by replicate, so that no second copy of it is held on the device.
    """
    for expected, actual in zip(eager, replayed, strict=True):
        there = expected.to(actual.device)
        if not torch.equal(there.isnan(), actual.isnan()):
            return False
        apart, size = ((there - actual).nan_to_num().double().norm(), there.nan_to_num().double().norm())
        if apart > _TOLERANCE[precision] * size:
            return False
    return True


def copies(strings: Strings) -> Strings:
    """The same strings in places of their own, as a graph reads them."""
    wanted = strings.needed
    view = strings.view
    more: dict[str, Any] = {"view": None if view is None else View(*(tensor.clone() for tensor in _of_view(view)))}
    more |= {
        name: None if part is None else part.clone() for name, part in (("hidden", strings.hidden), ("soft", strings.soft))
    }
    if wanted.order is None or wanted.blocks is None:
        return Strings(strings.inputs.clone(), Needed(None, wanted.targets.clone(), wanted.weights.clone(), None), **more)
    order = wanted.order.clone()
    blocks = order.split(wanted.blocks[0].shape[-1], dim=-1)
    return Strings(strings.inputs.clone(), Needed(blocks, wanted.targets.clone(), wanted.weights.clone(), order), **more)


def _tensors(strings: Strings) -> list[Tensor]:
    wanted = strings.needed
    more = (wanted.order, strings.hidden, strings.soft, *(() if strings.view is None else _of_view(strings.view)))
    return [strings.inputs, wanted.targets, wanted.weights, *(tensor for tensor in more if tensor is not None)]


def _of_view(view: View) -> tuple[Tensor, Tensor, Tensor]:
    return view.inputs, view.places, view.weights
