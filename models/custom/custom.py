"""Bring your own architecture: any `nn.Module` class, named in a study by its import path, packed with torch.func.

    model: {name: "my_models:GRU", width: 64}

calls `GRU(vocabulary=…, length=…, width=64)` once a replicate (and `outputs=…` where the class takes it); its forward maps tokens [B, T]
int64 to logits [B, T, V]. The R modules' weights are stacked and the forward runs under `vmap`: slower than a model written for packs, same
interface. The module stays in training mode and must be a pure function of its weights and tokens (`models/custom/custom_checks.py`).

Importing a module runs it, and a study or store can come from anyone: a module is imported only once `allow` has named it, which
`--allow-import my_models` on the command line does.
"""

import difflib
import importlib
import inspect
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from models.custom import custom_checks
from models.custom.custom_recurrent import Unrolled, has_recurrence
from models.custom.unpackable import unpackable
from models.draws import Draw
from models.model import Attend, Blocks, Model
from models.noise import Noise
from models.unfit import UnfitModel

_PROJECT = Path(__file__).resolve().parents[2]
_GIVEN = ("vocabulary", "length", "outputs")
_PATH = r"\w+(\.\w+)*:\w+"  # MODULE:NAME
_EXAMPLES = {"model": "Mamba", "task": "Parity", "experiment": "measure"}
_allowed: set[str] = set()


def allow(*modules: str) -> None:
    """Let studies and stores name models and tasks of these modules until this process ends. Importing a module runs it."""
    _allowed.update(modules)


def allowed() -> tuple[str, ...]:
    """The modules that `allow` has named in this process, which a driver hands to its workers."""
    return tuple(sorted(_allowed))


@dataclass(frozen=True)
class Custom(Model):
    """A user's class, by its import path MODULE:CLASS, with the keyword arguments that it is called with."""

    path: str
    options: tuple[tuple[str, Any], ...] = ()
    rev: int = 1
    ordered: ClassVar[bool] = False

    def described(self) -> dict[str, Any]:
        """The fields that a key hashes: the path, every option given, and the class's `rev` unless it is 1.

        A user raises `rev` when the class changes its meaning.
        """
        return {"name": self.path} | ({} if self.rev == 1 else {"rev": self.rev}) | dict(self.options)

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Packed":
        """Make the pack of draw.replicates. Raises ValueError with the reason where the module can't be packed.

        The class is called R + 2 times: the two extra modules are used to check that the weights follow from the seed and that a module
        computes the same in a pack as alone.
        """
        kind = _class(self.path)
        classes = vocabulary if outputs is None else outputs
        given = {"vocabulary": vocabulary, "length": length} | dict(self.options)
        if "outputs" in inspect.signature(kind).parameters or (classes != vocabulary and _accepts(kind, "outputs")):
            given["outputs"] = classes
        elif classes != vocabulary:
            raise ValueError(
                f"model.name = {self.path!r} takes no argument `outputs`, and the task has {outputs} classes for {vocabulary} tokens: "
                "add it"
            )
        # a module draws its initial weights from the global generator: seeded by the replicate alone, and put back afterwards
        seeds = [low | (high & 0x7FFFFFFF) << 32 for low, high in draw.named("custom").words((2,)).tolist()]
        with torch.random.fork_rng(devices=[]):
            modules = [custom_checks.built(self.path, seed, lambda: self._call(kind, given)) for seed in seeds]
            again, other = (
                custom_checks.built(self.path, seed, lambda: self._call(kind, given)) for seed in (seeds[0], seeds[0] ^ 1)
            )
            for module in modules:
                custom_checks.check_parameters(self.path, module)
            custom_checks.check_made_alike(self.path, modules[0], again, other)
            _check(self.path, modules[0], other, vocabulary, length, classes)
            packed = Packed(self.path, modules, draw.seeds.device)
            if draw.seeds.device.type != "cpu":
                _check_device(packed, _tokens(vocabulary, length).to(draw.seeds.device))
        return packed

    def _call(self, kind: type[nn.Module], given: dict[str, Any]) -> nn.Module:
        try:
            return kind(**given)
        except Exception as error:
            what = f"raised {type(error).__name__} when it was called with {', '.join(given)}"
            raise ValueError(f"model.name = {self.path!r} {what}: {custom_checks.with_line(self.path, error)}") from error


def configure(path: str, /, **options: Any) -> Custom:
    """Make the configuration of the class at `path` with `options`.

    Raises ValueError where its module is not allowed, there is no such class, or the class does not take one of the options.
    """
    refuse_others(path)
    kind = _class(path)
    parameters = inspect.signature(kind).parameters
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [name for name, parameter in parameters.items() if name not in _GIVEN and parameter.kind in named]
    for name, value in options.items():
        if name in _GIVEN:
            raise ValueError(f"model.{name} is given by the task: leave it out")
        if name == "rev":
            raise ValueError(f"model.rev is the revision of {path}, which it has as an attribute of the class: leave it out")
        if not _accepts(kind, name):
            match = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean model.{match[0]}?" if match else f"; options: {', '.join(names) or 'none'}"
            raise ValueError(f"model.{name} is not an option of {path}{hint}")
        if not _plain(value):
            raise ValueError(f"model.{name} = {value!r} must be a finite number, a word, true, false, null or a list of these")
    for name in ("vocabulary", "length"):
        if not _accepts(kind, name):
            raise ValueError(
                f"model.name = {path!r} takes no argument `{name}`: its __init__ is called with vocabulary and length"
            )
    for name in names:
        if name not in options and parameters[name].default is inspect.Parameter.empty:
            raise ValueError(f"model.{name} is missing: {path} has no default for it")
    rev = getattr(kind, "rev", 1)
    if type(rev) is not int or rev < 1:
        raise ValueError(
            f"model.name = {path!r}: its `rev` is {rev!r}, and must be a whole number from 1: the revision of its meaning"
        )
    frozen = tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items()))
    return Custom(path, frozen, rev)


class Packed(nn.Module):
    """R modules of one class stacked into one. Parameters [R, …] keep the module's names, with two underscores for a dot.

    Buffers are constants: [R, …] where they differ between replicates, stored once where they don't.
    """

    def __init__(self, path: str, modules: Sequence[nn.Module], device: torch.device):
        super().__init__()
        self._path = path
        # in a list, so that its weights are not registered as weights of this module
        self._skeleton = [modules[0]]
        self._recurrent = has_recurrence(modules[0])
        self._names: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._shared: set[str] = set()
        parameters, buffers = (
            [dict(module.named_parameters()) for module in modules],
            [dict(module.named_buffers()) for module in modules],
        )
        for name in parameters[0]:
            value = torch.stack([values[name].detach() for values in parameters]).to(device)
            self.register_parameter(self._attribute(name, self._names, name), nn.Parameter(value))
        for name, first in buffers[0].items():
            same = all(torch.equal(values[name], first) for values in buffers)
            value = first.clone() if same else torch.stack([values[name] for values in buffers])
            self.register_buffer(self._attribute(name, self._constants, f"constant.{name}"), value.to(device), persistent=False)
            if same:
                self._shared.add(name)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V].

        All positions are computed and the needed ones gathered. noise is not used: a user's module has no keyed dropout. Raises
        ValueError where attention weights are asked for.
        """
        if attend is not None:
            raise ValueError(f"model.name = {self._path!r} is a user's module, which hands out no attention weights")
        with _reasons(self._path, tokens):
            logits = self.logits(tokens)
        if needed is None:
            return logits
        return torch.cat([logits.gather(2, block[..., None].expand(-1, -1, -1, logits.shape[-1])) for block in needed], dim=2)

    def logits(self, tokens: Tensor) -> Tensor:
        """As `forward` for all positions, with the module's errors as they are."""
        weights = {name: getattr(self, own) for own, name in self._names.items()}
        buffers = {name: getattr(self, own) for own, name in self._constants.items()}
        axes = (dict.fromkeys(weights, 0), {name: None if name in self._shared else 0 for name in buffers}, 0)
        # the backward of fused attention has no rule for vmap, and falls back to a loop that warns
        with sdpa_kernel(SDPBackend.MATH), Unrolled() if self._recurrent else nullcontext():
            return torch.vmap(self._one, in_dims=axes, randomness="error")(weights, buffers, tokens)

    def _one(self, weights: dict[str, Tensor], buffers: dict[str, Tensor], tokens: Tensor) -> Tensor:
        """The logits of one replicate, tokens [B, T] → [B, T, V]."""
        copies = {name: buffer.clone() for name, buffer in buffers.items()}  # so that nothing written to them lasts
        return functional_call(self._skeleton[0], (weights, copies), (tokens,), tie_weights=True)

    def _attribute(self, name: str, names: dict[str, str], wanted: str) -> str:
        """Choose the attribute of the pack that holds the module's `name`, and record it in `names`.

        Dots become underscores, since nn.Module keeps them for submodules. Raises ValueError where the attribute is taken.
        """
        own = wanted.replace(".", "__")
        if hasattr(self, own):
            raise ValueError(
                f"model.name = {self._path!r}: {name} would be called {own} in a pack, a name that is taken: rename it"
            )
        names[own] = name
        return own


def _tokens(vocabulary: int, length: int) -> Tensor:
    """Two strings, [2, T]."""
    return (torch.arange(2 * length) % vocabulary).view(2, length)


def _check(path: str, first: nn.Module, other: nn.Module, vocabulary: int, length: int, outputs: int) -> None:
    """Run `other` alone, then as the second of a pack of two, on the CPU.

    Raises ValueError unless both runs depend on weights and tokens alone, and agree. `other` must not be used afterwards; `first` lends
    the pack its code and stays as it is.
    """
    tokens = _tokens(vocabulary, length)
    pair = Packed(path, [first, other], torch.device("cpu"))
    logits, gradients = custom_checks.run_alone(path, other, tokens, outputs)
    try:
        packed = pair.logits(tokens.expand(2, -1, -1))[1]
        custom_checks.loss_of(packed).backward()
    except RuntimeError as error:
        raise ValueError(unpackable(path, error)) from error
    together = {name: pair.get_parameter(own).grad for own, name in pair._names.items()}
    compared = {name: (alone, None if (grad := together[name]) is None else grad[1]) for name, alone in gradients.items()}
    custom_checks.check_packed_alike(path, other, logits, packed, compared)


def _check_device(packed: Packed, tokens: Tensor) -> None:
    """Raise UnfitModel where the pack fails on the device of tokens [B, T]. OutOfMemoryError is passed on: it is no fault of the module."""
    replicates = len(next(packed.parameters()))
    try:
        with torch.no_grad():
            packed.logits(tokens.expand(replicates, -1, -1))
    except (torch.OutOfMemoryError, torch.AcceleratorError):  # of the device, and not of what runs on it
        raise
    except RuntimeError as error:
        place = custom_checks.place(packed._path, error)
        raise UnfitModel(
            f"model.name = {packed._path!r} works on the CPU, but {place} fails on {tokens.device} ({str(error).splitlines()[0]}): "
            "make constants in __init__ with register_buffer, and other tensors in forward with torch.arange, zeros or full and "
            "device=tokens.device"
        ) from error


@contextmanager
def _reasons(path: str, tokens: Tensor) -> Iterator[None]:
    """Turn errors of a module, or of vmap with it, on tokens [R, B, T] into UnfitModel: one sentence with the reason."""
    try:
        yield
    except (torch.OutOfMemoryError, torch.AcceleratorError):  # of the device, and not of what runs on it
        raise
    except Exception as error:
        message = str(error)
        if "vmap" in message or "Batching rule" in message:
            raise UnfitModel(unpackable(path, error)) from error
        raise UnfitModel(custom_checks.raised(path, tokens[0], error)) from error


def refuse_others(path: str, section: str = "model") -> None:
    """Raise ValueError unless `path` is MODULE:CLASS and the module has been allowed.

    Called where text becomes a configuration, so a `Custom` that exists has passed. section: the part of the study that names the path,
    such as model or task.
    """
    module, _, name = path.partition(":")
    if not re.fullmatch(_PATH, path) or module.endswith(".py"):
        kind = "FUNCTION" if section == "experiment" else "CLASS"
        file = module[:100].removesuffix(".py").replace(".", "/").replace("-", "_").strip("/")
        meant = f"{file.replace('/', '.')}:{name[:100]}"
        renamed = f"; no module has a hyphen in its name, so rename its file to {file}.py" if "-" in module else ""
        instead = f": write {meant}{renamed}" if re.fullmatch(_PATH, meant) else f", such as my_{section}s:{_EXAMPLES[section]}"
        raise ValueError(f"{section}.name = {path[:100]!r} must be MODULE:{kind}{instead}")
    if module not in _allowed:
        raise ValueError(
            f"{section}.name = {path[:100]!r} would import the module {module[:100]} and run what it holds: if you trust it, pass "
            f"--allow-import {module[:100]} (in Python, call models.custom.custom.allow first)"
        )


def module_of(path: str, section: str) -> ModuleType:
    """The imported module of a path MODULE:NAME. ValueError, with the reason, where it can't be imported."""
    module, where = path.partition(":")[0], f"{section}.name = {path!r}"
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # a console script does not search the folder it is started in
    try:
        source = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(f"{where}: {error}; searched: {os.getcwd()} and what is installed") from error
    except ImportError as error:
        raise ValueError(f"{where}: {error}") from error
    except (Exception, SystemExit) as error:  # a script that runs as it is imported may end with sys.exit
        raise ValueError(f"{where}: importing {module} raised {type(error).__name__}: {error}") from error
    hidden = Path(f"{module}.py").resolve()
    if (
        hidden.is_file()
        and source.__file__ is not None
        and Path(source.__file__).resolve() == _PROJECT / module / "__init__.py"
    ):
        raise ValueError(
            f"{where}: {hidden} has the name of the package {module!r} of manyseeds, which hides it: rename it, for instance "
            f"to my_{module}.py"
        )
    return source


def imported(path: str, section: str, base: type) -> type:
    """The class at `path`, MODULE:CLASS, which inherits from `base`. ValueError, with the reason, where there is none."""
    module, _, name = path.partition(":")
    where = f"{section}.name = {path!r}"
    source = module_of(path, section)
    kind = vars(source).get(name)
    if kind is None:
        classes = [other for other, kind in vars(source).items() if isinstance(kind, type) and base in kind.__mro__]
        match = difflib.get_close_matches(name, classes, n=1)
        raise ValueError(
            f"{where}: the module {module} ({source.__file__}) has no {name}" + (f"; did you mean {match[0]}?" if match else "")
        )
    if not (isinstance(kind, type) and base in kind.__mro__):
        title = "torch.nn.Module" if base is nn.Module else f"{base.__module__}.{base.__qualname__}"
        raise ValueError(f"{where} is no subclass of {title}")
    return kind


def _class(path: str) -> type[nn.Module]:
    return imported(path, "model", nn.Module)


def _accepts(kind: type, name: str) -> bool:
    parameters = inspect.signature(kind).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return parameters[name].kind in named if name in parameters else open_ended


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_plain(item) and not isinstance(item, list | tuple) for item in value)
    return value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))
