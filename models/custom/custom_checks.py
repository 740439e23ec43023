"""Checks that a user's module can be packed: it is a function of its weights and tokens, and its weights follow from the seed alone."""

import random
import sys
import sysconfig
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_Given = TypeVar("_Given")
_OWN = frozenset(vars(nn.Module())) - {
    "training"
}  # attributes that every module has: hooks, parameters, buffers and submodules
_LOGITS = (torch.float32, torch.float64)  # losses are float32; of half precision, answers would tie that differ
_FOREIGN = (  # folders with none of the user's code: of installed packages, of Python, and of this project
    Path(torch.__file__).parents[1],
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
    *(Path(__file__).parents[2] / name for name in ("harness", "launch", "models", "results", "tasks")),
)
_ROUNDING, _GRADIENT_ROUNDING = 1e-3, 1e-2  # relative, in norm: far above float32 rounding, far below another weight or noise


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run with one thread, on which the same call on a CPU gives the same bits: several may add up in another order each time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def last_line(path: str, error: BaseException) -> tuple[str, int] | None:
    """The last line of the user's code in the traceback of an error, as (name of the file, number); None where it has none.

    The user's code is the module of MODULE:NAME, and files that are neither installed nor of this project.
    """
    file = getattr(sys.modules.get(path.partition(":")[0]), "__file__", None)
    lines = [
        (Path(frame.filename).name, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno and (frame.filename == file or not _is_foreign(Path(frame.filename)))
    ]
    return lines[-1] if lines else None


def _is_foreign(path: Path) -> bool:
    """Whether a file of a traceback is not the user's; it may also be no file, such as <string>."""
    return not path.is_absolute() or any(map(path.is_relative_to, _FOREIGN))


def place(path: str, error: BaseException) -> str:
    """Where in the user's code an error was raised, as the subject of a sentence."""
    last = last_line(path, error)
    return f"line {last[1]} of {last[0]}" if last else "its forward"


def with_line(path: str, error: Exception) -> str:
    """The message of an exception that the module of MODULE:NAME raised, with the last line of its file in the traceback."""
    last = last_line(path, error)
    return f"{error} ({last[0]}, line {last[1]})" if last else str(error)


def raised(path: str, tokens: Tensor, error: Exception, where: str = "forward") -> str:
    """The sentence for a module whose forward, or the backward pass through it, raises `error` for tokens [B, T]."""
    kind, shape = type(error).__name__, list(tokens.shape)
    where += "" if torch.is_grad_enabled() else " under torch.no_grad"
    return f"model.name = {path!r} raised {kind} in {where} for int64 tokens {shape}: {with_line(path, error)}"


def built(path: str, seed: int, call: Callable[[], nn.Module]) -> nn.Module:
    """Return `call()`, made with torch's generator at `seed`. Raises ValueError where it draws from another generator, or seeds this one.

    The caller restores the generator.
    """

    def seeded() -> nn.Module:
        torch.default_generator.manual_seed(seed)
        return call()

    module, drawn = _watched(seeded, first=1)
    if drawn:
        raise ValueError(
            f"model.name = {path!r} draws from `random` or `numpy.random` when it is made: its initial weights must follow from the seed, "
            "so draw them with torch"
        )
    if torch.default_generator.initial_seed() != seed:
        raise ValueError(
            f"model.name = {path!r} calls torch.manual_seed when it is made: every replicate would be the same, so leave it out"
        )
    return module


def check_parameters(path: str, module: nn.Module) -> None:
    """Raise ValueError unless there are parameters, all of them float32, dense and trainable, and nothing is compiled already."""
    named = list(module.named_parameters())
    for name, part in module.named_modules():
        if "_torchdynamo_orig_callable" in vars(part):
            raise ValueError(f"model.name = {path!r}: {name} is compiled, which a pack can't be: leave torch.compile out")
    if not named:
        raise ValueError(f"model.name = {path!r} has no parameters: there is nothing to train")
    for name, parameter in named:
        if nn.parameter.is_lazy(parameter):
            raise ValueError(f"model.name = {path!r}: parameter {name} has no shape yet: give the lazy layer its input size")
        if parameter.dtype != torch.float32:
            raise ValueError(
                f"model.name = {path!r}: parameter {name} is {parameter.dtype}, and must be torch.float32; make it a buffer if it is fixed"
            )
        if parameter.layout != torch.strided:
            raise ValueError(f"model.name = {path!r}: parameter {name} is sparse ({parameter.layout}), and must be dense")
        if not parameter.requires_grad:
            raise ValueError(
                f"model.name = {path!r}: parameter {name} is frozen (requires_grad is False), and every parameter is trained: make it a "
                "buffer if it is fixed"
            )


def check_made_alike(path: str, one: nn.Module, again: nn.Module, other: nn.Module) -> None:
    """Compare modules made from one seed (`one`, `again`) and from another (`other`).

    Raises ValueError where the first two differ in anything, or `other` in shapes or in what is neither parameter nor buffer.
    """
    for name in _differing(_contents(one), _contents(again)):
        raise ValueError(
            f"model.name = {path!r}: {name} differs between two modules made from one seed: make it from torch's generator alone"
        )
    shapes, theirs = ({name: parameter.shape for name, parameter in module.named_parameters()} for module in (one, other))
    if shapes != theirs:
        raise ValueError(f"model.name = {path!r}: the shapes of its parameters differ between seeds: a pack needs them equal")
    stacked = {name for name, _ in chain(one.named_parameters(), one.named_buffers())}
    for name in _differing(_contents(one), _contents(other)):
        if name not in stacked:
            raise ValueError(
                f"model.name = {path!r}: {name} differs between seeds and is no parameter: keep it with register_buffer, or a pack "
                "would give every replicate that of the first"
            )


@_one_thread()
def run_alone(path: str, module: nn.Module, tokens: Tensor, outputs: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Run one module by itself on tokens [B, T]: its logits [B, T, outputs], and the gradient of their `loss_of` by parameter.

    Raises ValueError with the reason where the forward raises, returns something else, draws random numbers, changes state,
    depends on the mode or mixes strings. The run may change `module`, which must not be used afterwards.
    """
    before, versions = _contents(module), _versions(module)
    try:
        with _Watch(tokens):
            logits, drawn = _watched(lambda: _forward(path, module, tokens))
    except _Forbidden as error:
        raise ValueError(f"model.name = {path!r}: {place(path, error)} {error}") from error
    wanted = (*tokens.shape, outputs)
    if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted or logits.dtype not in _LOGITS:
        got = f"{logits.dtype} {list(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"model.name = {path!r} returned {got} for tokens {list(tokens.shape)}: its forward must return float32 logits {list(wanted)}"
        )
    if logits.isnan().any():
        raise ValueError(
            f"model.name = {path!r} returned NaN for tokens {list(tokens.shape)} before any training: its forward must return numbers"
        )
    if drawn:
        raise ValueError(noisy(path))
    # a write that happens to leave the values as they are counts too: later weights may be others
    written = {name for name, version in _versions(module).items() if version != versions[name]}
    changed = sorted(written.union(_differing(before, _contents(module))))
    if changed:
        raise ValueError(
            f"model.name = {path!r} changes {', '.join(changed)} in forward, as BatchNorm does its running statistics: a "
            "replicate must be a function of its weights and tokens, so use a layer that keeps nothing, such as LayerNorm, and make what "
            "is constant in __init__, with register_buffer"
        )
    # gradients stay on, as in the first call: torch has other kernels without them, which round differently
    if not _same(_forward(path, module, tokens), logits):
        raise ValueError(
            f"model.name = {path!r} returned other logits for the same tokens when called again: it keeps state outside itself or "
            "draws random numbers, and a replicate must be a function of its weights and tokens"
        )
    if not _agrees(_evaluated(path, module, tokens), logits):
        raise ValueError(
            f"model.name = {path!r} returned other logits after module.eval(): a module stays in training mode here, in evaluation "
            "too, so compute the same in both modes, without self.training"
        )
    with torch.no_grad():
        single = _forward(path, module, tokens[:1])
    if not _agrees(single, logits[:1]):
        raise ValueError(
            f"model.name = {path!r} returned other logits for a string alone than beside another one: an answer may not "
            "depend on the other strings of a batch, so mix nothing across them, as BatchNorm does, and use LayerNorm"
        )
    if not logits.requires_grad:
        raise ValueError(f"model.name = {path!r} returned logits that depend on no parameter: there is nothing to train")
    try:
        loss_of(logits).backward()
    except RuntimeError as error:
        raise ValueError(raised(path, tokens, error, "backward")) from error
    gradients = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}
    for name, gradient in gradients.items():
        if gradient.layout != torch.strided:
            raise ValueError(f"model.name = {path!r}: the gradient of {name} is sparse: write sparse=False")
    return logits.detach(), gradients


def check_packed_alike(
    path: str, module: nn.Module, logits: Tensor, packed: Tensor, gradients: dict[str, tuple[Tensor, Tensor | None]]
) -> None:
    """Raise ValueError unless a module's logits, and its gradients (alone, packed) by parameter, are the same alone and in a pack."""
    if not _close(packed, logits, _ROUNDING):
        raise ValueError(
            f"model.name = {path!r} returns other logits in a pack than alone: forward must read each weight from its own parameter or "
            "buffer, not from a copy, list or view kept beside it"
        )
    for name, (alone, together) in gradients.items():
        if together is None or not _close(together, alone, _GRADIENT_ROUNDING):
            if _is_padded(module, name):
                raise ValueError(
                    f"model.name = {path!r}: the gradient of {name} in a pack differs from the one it has alone, since torch.func ignores "
                    "padding_idx: leave padding_idx out"
                )
            raise ValueError(
                f"model.name = {path!r}: the gradient of {name} in a pack differs from the one it has alone: forward must be made of "
                "operations that torch.func supports, and read each weight from its own parameter"
            )


def _is_padded(module: nn.Module, parameter: str) -> bool:
    """Whether a parameter is the weight of an embedding with a padding_idx."""
    weight = module.get_parameter(parameter)
    embeddings = [part for part in module.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
    return any(part.weight is weight and part.padding_idx is not None for part in embeddings)


def loss_of(logits: Tensor) -> Tensor:
    """A number that depends on every finite logit."""
    return torch.where(logits.isfinite(), logits, 0).float().square().mean()


def noisy(path: str) -> str:
    """The sentence for a module that draws random numbers."""
    return (
        f"model.name = {path!r} draws random numbers in forward (dropout in training mode, torch.rand): a replicate's noise must "
        "be keyed by its seed, so leave it out (dropout at 0), or add the model to models/ and use its `noise`"
    )


class _Forbidden(BaseException):
    """What forward does and may not. No Exception, so that the module does not catch it."""


class _Watch(TorchFunctionMode):
    """Raises _Forbidden as soon as a function of torch is called under autocast or has written into the tokens."""

    def __init__(self, tokens: Tensor):
        super().__init__()
        self._tokens, self._version = tokens, tokens._version

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            raise _Forbidden(
                "computes under torch.autocast; leave that out, and write train.precision: bf16 in the study for half precision"
            )
        result = function(*args, **kwargs or {})
        if self._tokens._version != self._version:
            raise _Forbidden("writes into the tokens, which others read too; begin forward with tokens = tokens.clone()")
        return result


def _forward(path: str, module: nn.Module, tokens: Tensor) -> object:
    """What forward returns for tokens [B, T]. Raises ValueError with the reason where it raises."""
    try:
        return module(tokens)
    except Exception as error:
        raise ValueError(raised(path, tokens, error)) from error


def _evaluated(path: str, module: nn.Module, tokens: Tensor) -> object:
    """What forward returns for tokens [B, T] in evaluation mode; each part of the module is left in the mode that it was in."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        return _forward(path, module, tokens)
    finally:
        for part, training in modes:
            part.training = training


def _versions(module: nn.Module) -> dict[str, int]:
    """How often each parameter has been written in place."""
    return {name: parameter._version for name, parameter in module.named_parameters()}


def _agrees(returned: object, logits: Tensor) -> bool:
    """Whether what forward returned is the same logits, up to rounding."""
    return isinstance(returned, Tensor) and returned.shape == logits.shape and _close(returned, logits, _ROUNDING)


def _close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    one, other = one.detach().double().nan_to_num(), other.detach().double().nan_to_num()
    return bool((one - other).norm() <= tolerance * other.norm() + 1e-9)


def _watched(call: Callable[[], _Given], first: int = 0) -> tuple[_Given, bool]:
    """Return `call()`, and whether it drew from a global generator (0 torch, 1 Python, 2 numpy) with a number of at least `first`.

    A second call confirms it, since other threads of the process, such as Ray's, may draw from Python's generator in between.
    """
    before = _states()[first:]
    result = call()
    if _states()[first:] == before:
        return result, False
    before = _states()[first:]
    return call(), _states()[first:] != before


def _states() -> tuple[object, ...]:
    """The states of torch's, Python's and, once it has been imported, numpy's global generator."""
    numpy = sys.modules.get("numpy")
    return (
        bytes(torch.default_generator.get_state().tolist()),
        random.getstate(),
        None
        if numpy is None
        else repr([part.tobytes() if hasattr(part, "tobytes") else part for part in numpy.random.get_state()]),
    )


def _contents(module: nn.Module) -> dict[str, object]:
    """Every tensor and plain value that `module` holds, copied, by name; objects of other kinds are not looked into."""
    named = list(chain(module.named_parameters(), module.named_buffers()))
    contents: dict[str, object] = {name: tensor.detach().clone() for name, tensor in named}
    registered = {id(tensor) for _, tensor in named}
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in _OWN:
                _collect(f"{prefix}.{name}".lstrip("."), value, registered, contents)
    return contents


def _collect(where: str, value: object, registered: set[int], contents: dict[str, object]) -> None:
    if isinstance(value, Tensor):
        if id(value) not in registered:
            contents[where] = value.detach().clone()
    elif isinstance(value, nn.Module):
        for name, tensor in chain(value.named_parameters(), value.named_buffers()):
            _collect(f"{where}.{name}", tensor, registered, contents)
    elif isinstance(value, dict):
        for i, (key, item) in enumerate(value.items()):
            _collect(f"{where}[{repr(key) if isinstance(key, str | int) else i}]", item, registered, contents)
    elif isinstance(value, set | frozenset):
        _collect(where, sorted(value, key=repr), registered, contents)
    elif isinstance(value, list | tuple | deque):
        for i, item in enumerate(value):
            _collect(f"{where}[{i}]", item, registered, contents)
    elif isinstance(value, torch.Generator):
        contents[where] = value.get_state()
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
        contents[where] = value
    elif hasattr(value, "tobytes"):  # a numpy array
        contents[where] = value.tobytes()


def _differing(one: dict[str, object], other: dict[str, object]) -> list[str]:
    return sorted(
        name for name in one.keys() | other.keys() if name not in one or name not in other or not _same(one[name], other[name])
    )


def _same(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and bool(((one == other) | (one != one) & (other != other)).all())
        )
    return type(one) is type(other) and bool(one == other or (one != one and other != other))
