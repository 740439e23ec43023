"""Bring your own architecture: any `nn.Module` class, named in a study by its import path, packed with torch.func.

    model: {name: "my_models:GRU", width: 64}

calls `GRU(vocabulary=…, length=…, width=64)` once a replicate (and `outputs=…` where the class takes it); its forward maps tokens [B, T]
int64 to logits [B, T, V]. The R modules' weights are stacked and the forward runs under `vmap`: slower than a model written for packs, same
interface. The module stays in training mode and must be a pure function of its weights and tokens.
"""

import copy
import difflib
import importlib
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

_GIVEN = ("vocabulary", "length", "outputs")


@dataclass(frozen=True)
class Custom:
    """A user's class by its import path MODULE:CLASS, and the keyword arguments it is called with, by name."""

    path: str
    options: tuple[tuple[str, Any], ...] = ()
    rev: int = 1

    def described(self) -> dict[str, Any]:
        """What is hashed: the path, every option given, and the class's `rev` unless it is 1 (raise it with a change of meaning)."""
        return {"name": self.path} | ({} if self.rev == 1 else {"rev": self.rev}) | dict(self.options)

    def make(self, draw, vocabulary: int, length: int, outputs: int | None = None) -> "Packed":
        """The pack of draw.replicates. Raises ValueError with the reason where the module can't be packed."""
        kind = _class(self.path)
        given = {"vocabulary": vocabulary, "length": length} | dict(self.options)
        if outputs is not None and _accepts(kind, "outputs"):
            given["outputs"] = outputs
        elif outputs not in (None, vocabulary):
            raise ValueError(
                f"model.name = {self.path!r} takes no argument `outputs`, and the task has {outputs} classes for {vocabulary} tokens: "
                "add it"
            )
        # a module draws its initial weights from the global generator: seeded by the replicate alone, and put back afterwards
        seeds = draw.named("custom").words((2,)).tolist()
        with torch.random.fork_rng(devices=[]):
            modules = []
            for low, high in seeds:
                torch.manual_seed(low | (high & 0x7FFFFFFF) << 32)
                try:
                    modules.append(kind(**given))
                except TypeError as error:
                    raise ValueError(f"model.name = {self.path!r} can't be called with {', '.join(given)}: {error}") from error
        packed = Packed(self.path, modules, draw.seeds.device)
        packed.check(vocabulary, length, vocabulary if outputs is None else outputs)
        return packed


def configure(path: str, **options: Any) -> Custom:
    """The configuration of the class at `path` with `options`. Raises ValueError where it is none or takes no such option."""
    kind = _class(path)
    known = [name for name in inspect.signature(kind).parameters if name not in _GIVEN]
    for name, value in options.items():
        if name in _GIVEN:
            raise ValueError(f"model.{name} is given by the task: leave it out")
        if not _accepts(kind, name):
            match = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean model.{match[0]}?" if match else f"; options: {', '.join(known) or 'none'}"
            raise ValueError(f"model.{name} is not an option of {path}{hint}")
        if not _plain(value):
            raise ValueError(f"model.{name} = {value!r} must be a number, a word, true, false, null or a list of these")
    for name in ("vocabulary", "length"):
        if not _accepts(kind, name):
            raise ValueError(
                f"model.name = {path!r} takes no argument `{name}`: its __init__ is called with vocabulary and length"
            )
    frozen = tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items()))
    return Custom(path, frozen, getattr(kind, "rev", 1))


class Packed(nn.Module):
    """R modules of one class as one: parameters [R, …] under the names of the module's own, dots as in any state dict."""

    def __init__(self, path: str, modules: Sequence[nn.Module], device: torch.device):
        super().__init__()
        self.path = path
        first = modules[0]
        names = [name for name, _ in first.named_parameters()]
        if not names:
            raise ValueError(f"model.name = {path!r} has no parameters: there is nothing to train")
        for name, parameter in first.named_parameters():
            if parameter.dtype != torch.float32 or not parameter.requires_grad:
                raise ValueError(
                    f"model.name = {path!r}: parameter {name} must be trainable float32; make it a buffer if it is fixed"
                )
        stacked = {name: torch.stack([dict(each.named_parameters())[name].detach() for each in modules]) for name in names}
        # a parameter's own name may hold dots, which nn.Module keeps for submodules
        self._names = {name.replace(".", "__"): name for name in names}
        for own, name in self._names.items():
            self.register_parameter(own, nn.Parameter(stacked[name].to(device)))
        self._buffers_of = {
            name: torch.stack([dict(each.named_buffers())[name] for each in modules]).to(device)
            for name, _ in first.named_buffers()
        }
        # in a list, so that its own weights are none of this module's
        self._skeleton = [first]

    def forward(self, tokens: Tensor, needed: Sequence[Tensor] | None = None, noise=None, attend=None) -> Tensor:
        """tokens [R, B, T] → logits [R, B, T, V]; of `needed` positions, blocks [R, B, K] each, the whole is computed and gathered.

        noise is not used: a user's module has no keyed dropout.
        """
        if attend is not None:
            raise ValueError(f"model.name = {self.path!r} is a user's module, which hands out no attention weights")
        weights = {name: getattr(self, own) for own, name in self._names.items()}
        with _reasons(self.path), sdpa_kernel(SDPBackend.MATH):  # the fused kernels' backward has no rule for vmap
            logits = torch.vmap(self._one, randomness="error")(weights, dict(self._buffers_of), tokens)
        if needed is None:
            return logits
        return torch.cat([logits.gather(2, block[..., None].expand(-1, -1, -1, logits.shape[-1])) for block in needed], dim=2)

    def _one(self, weights: dict[str, Tensor], buffers: dict[str, Tensor], tokens: Tensor) -> Tensor:
        copies = {name: buffer.clone() for name, buffer in buffers.items()}
        return functional_call(self._skeleton[0], (weights, copies), (tokens,), tie_weights=True)

    def check(self, vocabulary: int, length: int, outputs: int) -> None:
        """One forward pass of two short strings: ValueError for a wrong shape, hidden randomness, or state that it changes."""
        replicates = next(self.parameters()).shape[0]
        device = next(self.parameters()).device
        tokens = (torch.arange(2 * length, device=device) % vocabulary).view(2, length)
        trial = copy.deepcopy(self._skeleton[0])
        before = _state(trial)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            trial(tokens.cpu())
            changed = sorted({name for name, _ in set(_state(trial)) ^ set(before)})
            if changed:
                raise ValueError(
                    f"model.name = {self.path!r} changes {', '.join(changed)} in forward, as BatchNorm does its running statistics: a "
                    "replicate must be a function of its weights and tokens, so use a layer that keeps nothing, such as LayerNorm"
                )
            logits = self.forward(tokens.expand(replicates, -1, -1))
        wanted = (replicates, 2, length, outputs)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted or not logits.is_floating_point():
            got = f"{logits.dtype} {list(logits.shape)[1:]}" if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(
                f"model.name = {self.path!r} returned {got} for tokens [2, {length}]: its forward must return float logits "
                f"[2, {length}, {outputs}]"
            )


@contextmanager
def _reasons(path: str) -> Iterator[None]:
    """What vmap says of a module that can't be packed, as a sentence that says what to do."""
    try:
        yield
    except RuntimeError as error:
        words = str(error)
        if "random" in words.lower():
            raise ValueError(
                f"model.name = {path!r} draws random numbers in forward (dropout in training mode, torch.rand): a replicate's noise must "
                "be keyed by its seed, so leave it out, or add the model to models/ and use its `noise`"
            ) from error
        if "in-place" in words or "inplace" in words or "vmap:" in words:
            raise ValueError(
                f"model.name = {path!r} can't run under torch.func.vmap ({words.splitlines()[0]}): keep no state in place and branch on "
                "no values"
            ) from error
        raise


def _state(module: nn.Module) -> list[tuple[str, str]]:
    """What a forward pass could change: every buffer and every plain attribute of every submodule, by name and content."""
    found = [(name, str(buffer.tolist())) for name, buffer in module.named_buffers()]
    for prefix, each in module.named_modules():
        for name, value in vars(each).items():
            if isinstance(value, Tensor):
                found.append((f"{prefix}.{name}".lstrip("."), str(value.tolist())))
            elif isinstance(value, int | float | str | bool | None) or (
                isinstance(value, list | dict) and not name.startswith("_")
            ):
                found.append((f"{prefix}.{name}".lstrip("."), repr(value)))
    return found


def _class(path: str) -> type[nn.Module]:
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # a console script does not search the folder it is started in
    try:
        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise ValueError(f"model.name = {path!r}: {error}; a study's folder and installed packages are searched") from error
    except AttributeError as error:
        raise ValueError(f"model.name = {path!r}: the module {module} has no {name}") from error
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise ValueError(f"model.name = {path!r} is no subclass of torch.nn.Module")
    return kind


def _accepts(kind: type, name: str) -> bool:
    parameters = inspect.signature(kind).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return open_ended or (name in parameters and parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY)


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_plain(item) and not isinstance(item, list | tuple) for item in value)
    return value is None or type(value) in (bool, int, float, str)
