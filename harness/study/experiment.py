"""What a replicate does where nothing is trained: a function or a command, with settings and a seed.

    experiment: {name: "my_module:measure", lr: 0.1}
    experiment: {name: built_in, horizon: 8}
    experiment: {command: [python, train.py, --lr, "{lr}", --seed, "{seed}"], metrics: "{folder}/m.jsonl", sources: [train.py], lr: 0.1}

A key that is no option of this file is a setting. Everything but `time_limit` is hashed, with the digest of a person's own code
(`foreign_code`). A built-in experiment (`harness.experiments.built_in`) has a revision in place of the digest, and its settings are hashed
where they differ from the defaults.
"""

import difflib
import inspect
import math
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.experiments.built_in import REGISTRY, BuiltIn
from harness.study.foreign_code import ForeignCode, code_of_modules, code_of_sources
from harness.study.identity import canonical, describe, typed
from models.custom import custom
from results.errors import StudyError, nearest, settings_errors
from results.plain_values import Options, Tree, Value

GIVEN = ("seed", "folder")  # placeholders of a command that are not settings
IMPORTED = "imported"  # the name of experiments whose numbers came from a table
ALLOW_COMMANDS = "--allow-command"  # beside the modules that `custom.allow` names: studies may start commands
FORMATS = (".jsonl", ".ndjson", ".json", ".csv")
_OPTIONS = {"function": ("name", "sources"), "command": ("command", "metrics", "sources", "environment", "time_limit")}
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Experiment:
    """A function by its import path or its registered name (`name`), or a command with the file or folder that it leaves its metrics in.

    step: the name of the steps in that file, "" where it is `step`, written as metrics: {file: "{folder}/log.csv", step: epoch}.
    sources: files and folders that the code needs beside what it imports; environment: variables that the command sees beside the usual
    ones; time_limit: seconds that a command may take, None for no limit.
    """

    name: str = ""
    command: tuple[str, ...] = ()
    metrics: str = ""
    step: str = ""
    sources: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    time_limit: float | None = None
    settings: Options = field(default_factory=dict)

    def config(self) -> Tree:
        """What is hashed, without empty parts."""
        metrics = {"file": self.metrics, "step": self.step} if self.step else self.metrics
        parts: dict[str, Any] = {"name": self.name, "command": list(self.command), "metrics": metrics}
        parts |= {"sources": list(self.sources), "environment": list(self.environment), "settings": dict(self.settings)}
        built_in = self.built_in
        parts["rev"] = built_in.rev if built_in is not None and built_in.rev != 1 else None
        return {name: value for name, value in parts.items() if value}

    @property
    def built_in(self) -> BuiltIn | None:
        """The registered experiment with its settings; None for a person's own function or command."""
        return typed(REGISTRY[self.name], self.settings, "experiment") if self.name in REGISTRY else None

    @property
    def all_settings(self) -> Tree:
        """The settings; for a built-in experiment, defaults included."""
        return dict(self.settings) if self.built_in is None else asdict(self.built_in)

    @property
    def title(self) -> str:
        """What it is called where a condition has no name of its own."""
        if self.name:
            return self.name.rpartition(":")[2]
        return next((Path(word).stem for word in self.command[1:] if not word.startswith("-")), self.command[0])

    @property
    def words(self) -> str:
        """The function or the command, as a person writes it."""
        return self.name or shlex.join(self.command)

    def function(self) -> Callable[..., Any]:
        """The function itself, imported."""
        built_in = self.built_in
        return _function(self.name)[0] if built_in is None else lambda draw, settings: built_in.measure(draw)

    @property
    def packed(self) -> bool:
        """Whether it is a function that measures all seeds of a pack at once: its first argument is called `draw`."""
        return self.name in REGISTRY or (bool(self.name) and _function(self.name)[1] == "draw")

    def code(self, running: bool = False) -> ForeignCode | None:
        """The person's own code that it runs, None where there is none.

        running: the code that this process imported, whatever has become of its files since.
        """
        if self.name in REGISTRY:
            return None
        if self.name:
            self.function()
            return code_of_modules([self.name.partition(":")[0]], self.sources, running)
        return code_of_sources(self.sources)

    def command_for(self, seed: int, folder: str) -> list[str]:
        """The words of the command of one replicate."""
        values = {name: _text(value) for name, value in self.settings.items()} | {"seed": str(seed), "folder": folder}
        return [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.command]


def build_experiment(node: Value) -> Experiment:
    """The experiment of a study's section, checked; its module is imported where `--allow-import` names it."""
    if not isinstance(node, Mapping) or ("name" in node) == ("command" in node):
        raise StudyError(
            f'experiment = {node!r} must have either a name, such as {{name: "my_module:measure"}}, or a command, such as '
            '{command: [python, train.py, --seed, "{seed}"], metrics: "{folder}/metrics.jsonl", sources: [train.py]}'
        )
    kind = "function" if "name" in node else "command"
    options = {name: value for name, value in node.items() if name in _OPTIONS[kind]}
    settings = {name: value for name, value in node.items() if name not in options}
    for name in settings:
        if not _WORD.fullmatch(name):
            raise StudyError(f"experiment.{name}: a setting is called by a word of letters, digits and underscores")
        if name in GIVEN or name in _OPTIONS["command"]:
            why = "each replicate has its own" if name in GIVEN else "it belongs to a command"
            raise StudyError(f"experiment.{name} can't be a setting: {why}; call the setting something else")
    try:
        canonical(settings)
    except (TypeError, ValueError) as error:
        raise StudyError(f"experiment: {error}") from error
    sources = _words(options.get("sources", []), "experiment.sources", "[train.py, src]")
    if kind == "function":
        if not isinstance(options["name"], str):
            raise StudyError(f"experiment.name = {options['name']!r} must be MODULE:FUNCTION, such as my_module:measure")
        if ":" not in options["name"]:
            return _built_in_experiment(options["name"], sources, settings)
        with settings_errors():
            custom.refuse_others(options["name"], "experiment")
        _function(options["name"])
        return Experiment(name=options["name"], sources=sources, settings=settings)
    return _command_experiment(options, sources, settings)


def experiment_of(config: Options) -> Experiment:
    """The inverse of `Experiment.config`."""
    parts = {name: value for name, value in config.items() if name not in ("settings", "rev")}
    built = build_experiment({**config.get("settings", {}), **parts})
    if (own := built.config().get("rev", 1)) != (rev := config.get("rev", 1)):
        raise StudyError(
            f"the experiment {built.name} has the revision {rev} here and this code has {own}: use the version of the code that wrote it"
        )
    return built


def _built_in_experiment(name: str, sources: tuple[str, ...], settings: Options) -> Experiment:
    if name == IMPORTED:
        raise StudyError(
            "these runs were imported from a table: the store has their numbers, and nothing that could be run again"
        )
    if name not in REGISTRY:
        match = difflib.get_close_matches(name, list(REGISTRY), n=1)
        raise StudyError(
            f"experiment.name = {name!r} must be MODULE:FUNCTION, such as my_module:measure, or one of {', '.join(REGISTRY)}"
            + (f"; did you mean {match[0]}?" if match else "")
        )
    if sources:
        raise StudyError(f"experiment.sources belongs to code of your own, and {name} is built in: leave it out")
    with settings_errors():
        described = describe(typed(REGISTRY[name], settings, "experiment"))
    described.pop("rev", None)
    return Experiment(name=name, settings=described)


def _command_experiment(options: Options, sources: tuple[str, ...], settings: Options) -> Experiment:
    command = _command(options["command"], settings)
    metrics, step = _metrics(options.get("metrics"))
    if not sources:
        raise StudyError("experiment.sources is missing: the files that the command needs, such as [train.py, src]")
    written = Path(metrics.removeprefix("{folder}/"))
    if shared := next((source for source in sources if written.is_relative_to(source)), None):
        raise StudyError(
            f"experiment.metrics = {metrics!r} is in {shared!r} of experiment.sources, which all replicates share: name only the files "
            "that the command reads, such as [train.py], or let it write elsewhere"
        )
    limit = options.get("time_limit")
    if limit is not None and (type(limit) not in (int, float) or not limit > 0 or not math.isfinite(limit)):
        raise StudyError(f"experiment.time_limit = {limit!r} must be a number of seconds above 0")
    environment = _words(options.get("environment", []), "experiment.environment", "[CUDA_HOME]")
    return Experiment(
        command=command,
        metrics=metrics,
        step=step,
        sources=sources,
        environment=environment,
        time_limit=None if limit is None else float(limit),
        settings=settings,
    )


def _command(node: Value, settings: Options) -> tuple[str, ...]:
    """The words of a command that names the seed, and each setting, and nothing else. Refused unless commands are allowed."""
    example = '[python, train.py, --seed, "{seed}"]'
    command = _words(node, "experiment.command", example)
    if ALLOW_COMMANDS not in custom.allowed():
        shown = shlex.join(command)[:100]
        raise StudyError(f"experiment.command would start `{shown}`: if you trust it and its study, pass {ALLOW_COMMANDS}")
    if not command:
        raise StudyError(f"experiment.command is empty: write the words of the command, such as {example}")
    used = [name for word in command for name in _PLACEHOLDER.findall(word)]
    for name in used:
        if name not in settings and name not in GIVEN:
            raise StudyError(f"experiment.command names {{{name}}}, and there is no such setting: write experiment.{name}")
    if "seed" not in used:
        raise StudyError(
            'experiment.command does not name "{seed}", so all replicates would be the same: hand it to the script'
        )
    if unused := [name for name in settings if name not in used]:
        if meant := nearest(unused[0], _OPTIONS["command"], "experiment."):
            raise StudyError(f"experiment.{unused[0]} is not used by the command{meant}")
        raise StudyError(
            f"experiment.{unused[0]} is not used by the command: write {{{unused[0]}}} where it belongs, or leave it out"
        )
    return command


def _metrics(node: Value) -> tuple[str, str]:
    """Where a command leaves its metrics, and the name of the steps there, "" where it is `step`."""
    path, step = node, ""
    if isinstance(node, Mapping):
        if node.keys() != {"file", "step"} or not isinstance(node["step"], str) or not node["step"]:
            raise StudyError(
                f"experiment.metrics = {dict(node)!r} must be a file, or a file and the name of the steps in it, such as "
                '{file: "{folder}/log.csv", step: epoch}'
            )
        path, step = node["file"], node["step"]
    inside = isinstance(path, str) and path.startswith("{folder}/") and ".." not in Path(path).parts
    if not inside or not (str(path).endswith("/") or Path(str(path)).suffix in FORMATS):
        raise StudyError(
            f'experiment.metrics = {path!r} must be a file that the script writes, such as "{{folder}}/metrics.jsonl"; it ends in '
            f"{', '.join(FORMATS)}, or in / where it is a folder with TensorBoard's files or a W&B run"
        )
    if filled := _PLACEHOLDER.findall(str(path).removeprefix("{folder}/")):
        raise StudyError(
            f"experiment.metrics = {path!r} has {{{filled[0]}}}, and only {{folder}} is filled in: every replicate has a folder of its "
            "own, so let the script write the same name in each"
        )
    return str(path), step


def _words(value: Value, where: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(type(word) in (str, int, float) for word in value):
        raise StudyError(f"{where} = {value!r} must be a list of words, such as {example}")
    return tuple(str(word) for word in value)


def _text(value: Value) -> str:
    """A setting as a word of a command: text as it is, and other values as in JSON."""
    return value if isinstance(value, str) else canonical(value)


def _function(path: str) -> tuple[Callable[..., Any], str]:
    """The function at MODULE:FUNCTION and the name of its first argument, seed or draw."""
    module, _, name = path.partition(":")
    with settings_errors():
        held = vars(custom.module_of(path, "experiment"))
    function = held.get(name)
    if not inspect.isroutine(function):
        what = f"has no {name}{nearest(name, held)}" if function is None else f"has {name}, which is no function"
        raise StudyError(f"experiment.name = {path!r}: the module {module} {what}")
    parameters = inspect.signature(function).parameters
    arguments = list(parameters)
    by_place = all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters.values())
    if len(arguments) != 2 or arguments[0] not in ("seed", "draw") or not by_place:
        raise StudyError(
            f"experiment.name = {path!r} takes ({', '.join(arguments)}): write {name}(seed, settings), which measures one seed, or "
            f"{name}(draw, settings), which measures many at once"
        )
    return function, arguments[0]
