"""Every command line of README.md and docs/, and overrides that make a study tiny."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = "manyseeds python python3 ray pip aws gcloud kubectl docker helm sbatch squeue wandb .ci/run".split()


@dataclass(frozen=True)
class Documented:
    """One command of a page as it stands there; inline: in backticks within a sentence or a table."""

    page: str
    text: str
    inline: bool
    block: int = 0


def documented() -> list[Documented]:
    """In the order of the pages; a line `a && b` is two commands, and a command that a page repeats is there once."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        fence = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
        for number, block in enumerate(fence.finditer(text)):
            language, body = block[1], block[2].replace("\\\n", " ")
            if language == "bash":
                lines = re.sub(r"<<'?EOF'?\n.*?^EOF\n", "\n", body, flags=re.DOTALL | re.MULTILINE).splitlines()
            else:
                lines = [line for line in body.splitlines() if not language and re.match(rf"({'|'.join(PROGRAMS)}) ", line)]
            for line in lines:
                found += [Documented(page, part, False, number) for part in _parts(line)]
        for inline in re.findall(r"`([^`\n]+)`", fence.sub("", text)):
            words = inline.replace("\\|", "|").split()
            if words and words[0] in PROGRAMS and (len(words) > 1 or words[0] == ".ci/run"):
                found += [Documented(page, part, True) for part in _parts(" ".join(words))]
    return list(dict.fromkeys(found))


def _parts(line: str) -> list[str]:
    """The commands of a line, without its comment."""
    line = re.sub(r"(^|\s+)# .*$", "", line).strip()
    return [part for part in re.split(r"\s+&&\s+", line) if part]


def words_of(text: str) -> list[str]:
    """The words of a command, without variables set before it and without what leads its output elsewhere."""
    words = shlex.split(re.split(r" > | \| ", text)[0])
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    return words


def our_words(words: list[str]) -> list[str] | None:
    """The words after `manyseeds`, as which every way into the command line counts; None for another program."""
    if words[:1] == ["manyseeds"]:
        return words[1:]
    if words[:3] == ["python", "-m", "launch"]:
        return words[3:]
    return None


def smaller(words: list[str]) -> list[str]:
    """Overrides that make the study of `words` (after `run` or `plan`) tiny: each that it takes, the others left out."""
    from harness.study.load import find_study, load

    name, *given = [word for word in words if not word.startswith("-")]
    path = Path(name) if Path(name).exists() else find_study(*name.split("/"))
    overrides = [word for word in given if re.match(r"[\w.]+=", word)]
    study = load(path, overrides)
    names = list(dict.fromkeys(each.name for each in study.conditions if not each.stage))
    kept = KEPT_CONDITIONS.get(study.name, names[:1])
    wanted = [[f"only=[{', '.join(kept)}]"], ["replicates=1"], ["executor=local"], ["pack.size=1"]]
    if not any(word.startswith("wandb=") for word in overrides):
        wanted.append(["wandb=off"])
    for field, values in SMALL.items():
        wanted.append([f"{field}={value}" for value in values])
        wanted += [[f"conditions.{condition}.{field}={value}" for value in values] for condition in kept]
    wanted += [[f"evaluate.sets.{each.name}.sequences=2"] for each in study.sets]
    return _taken(lambda words: load(path, [*overrides, *words]), wanted)


def _taken(load: Callable[[list[str]], Any], wanted: list[list[str]]) -> list[str]:
    """Of each list the first word that `load` takes beside those before it, or none."""
    if not wanted:
        return []
    try:
        load(words := [choices[0] for choices in wanted])
    except ValueError:
        if len(wanted) == 1:
            return _taken(load, [wanted[0][1:]]) if wanted[0][1:] else []
        middle = len(wanted) // 2
        first = _taken(load, wanted[:middle])
        return first + _taken(lambda words: load([*first, *words]), wanted[middle:])
    return words


SMALL = {
    "task.length": (8, 16),
    "model.layers": (1,),
    "model.width": (16, 8),
    "model.heads": (1,),
    "train.warmup": (0, 1),
    "train.steps": (2, 4, 10),
    "train.batch": (2,),
    "keep": ("all",),
}
KEPT_CONDITIONS = {
    "tiny": ["transformer", "lstm"],
    "my-gauntlet": ["transformer", "lstm"],
    "fflm-simulation": ["half_none", "drift"],
}  # more than the first
