"""Every command line of README.md and docs/, and a program that runs many of them in one process.

As a program, `python tests/documented.py JOBS.json RESULTS.json`, it needs the dependencies only, not pytest.
"""

import functools
import json
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
    """All commands in the order of the pages; a line `a && b` is two commands, and a command that a page repeats counts once."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        fence = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
        for number, block in enumerate(fence.finditer(text)):
            language, body = block[1], re.sub(r" *\\\n *", " ", block[2])
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


# --- the program ---


def smaller(words: list[str]) -> list[str]:
    """Overrides that make the study of `words` (after `run` or `plan`) tiny; those that the study does not take are left out."""
    from launch.families import find_study

    name, *given = [word for word in words if not word.startswith("-")]
    path = Path(name) if Path(name).exists() else find_study(*name.split("/"))
    overrides = [word for word in given if re.match(r"[\w.]+=", word)]
    return _smaller(path.resolve(), tuple(overrides))


@functools.cache
def _smaller(path: Path, overrides: tuple[str, ...]) -> list[str]:
    from harness.study.load import from_tree
    from harness.study.tree import read_file

    tree = read_file(path)  # once: it takes longer than the rest
    study = from_tree(tree, overrides, str(path))
    names = list(dict.fromkeys(each.name for each in study.conditions if not each.stage))
    kept = KEPT_CONDITIONS.get(study.name, names[:1])
    wanted = [[f"only={json.dumps(kept)}"], ["replicates=1"], ["executor=local"], ["pack.size=1"]]
    if not any(word.startswith("wandb=") for word in overrides):
        wanted.append(["wandb=off"])
    wanted += [[f"conditions.{condition}.replicates=1"] for condition in kept]
    for field, values in SMALL.items():
        wanted.append([f"{field}={value}" for value in values])
        wanted += [[f"conditions.{condition}.{field}={value}" for value in values] for condition in kept]
    wanted += [[f"evaluate.sets.{each.name}.sequences={16 if study.name in TRACED else 2}"] for each in study.sets]
    return _taken(lambda words: from_tree(tree, [*overrides, *words], str(path)), wanted)


def _taken(load: Callable[[list[str]], Any], wanted: list[list[str]]) -> list[str]:
    """From each list, the first word that `load` accepts together with the earlier ones, if there is one."""
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


def _few(words: list[str]) -> list[str]:
    """The words with one replicate where the page asks for dozens, ten steps for hundreds, and the first of several conditions."""
    for many, few in (
        (r"^((?:conditions\.\w+\.)?replicates)=\d\d+$", r"\1=1"),
        (r"^train\.steps=\d{3,}$", "train.steps=10"),
        (r"^only=\[(\w+),.*\]$", r"only=[\1]"),
    ):
        words = [re.sub(many, few, word) for word in words]
    return words


def _key(words: list[str]) -> list[str]:
    """KEY, or the first digits of one that a page shows, as that of a replicate in the store."""
    from results.store.tables import committed, open_store, studies

    if words[1] not in ("evaluate", "export", "glitches", "report", "rerun", "trace"):
        return words
    store = words[words.index("--store") + 1] if "--store" in words else words[2]
    rows = committed(open_store(store, studies(store)[0])).to_pylist()
    key = min(rows, key=lambda row: (row["condition"] != "transformer", row["key"]))["key"]  # which every format exports
    return [key if re.fullmatch(r"KEY|(?=\d*[a-f])[0-9a-f]{4,6}", word) else word for word in words]


SMALL = {
    "keep": ("all",),
    "task.length": (8, 16),
    "model.layers": (1,),
    "model.heads": (1,),
    "model.width": (16, 8),
    "train.warmup": (0, 1),
    "train.steps": (2, 4, 10),
    "train.batch": (2,),
}  # in this order, since each must fit those before it
KEPT_CONDITIONS = {
    "gru": ["transformer", "mine"],
    "tiny": ["transformer", "lstm"],
    "my-gauntlet": ["transformer", "lstm", "mingru"],
    "fflm-simulation": ["half_none", "drift"],
}  # more than the first
TRACED = ("traced", "additivity", "additivity-learned")  # with a wrong read in some string


def _run(job: dict) -> dict:
    import contextlib
    import io
    import os
    import runpy
    import shutil
    import sys
    import time
    import traceback

    import harness.run

    path, modules, report = list(sys.path), set(sys.modules), harness.run._report
    began, output, status = time.process_time(), io.StringIO(), 0
    if not job["report"]:
        harness.run._report = lambda store: ["report: none"]
    os.chdir(job["folder"])
    if (
        not any(word in ("run", "retry", "merge") or word.endswith(".py") for word in job["words"])
        and not Path("runs").exists()
    ):
        shutil.copytree("../prepared/runs", "runs")
    try:
        words = job["words"]
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            if words[0] == "manyseeds":
                from launch.cli import main

                words = _key(words)
                if words[1] in ("run", "retry", "plan"):
                    words = _few(words)
                    if "--allow-import" in words:
                        from models.custom.custom import allow

                        allow(words[words.index("--allow-import") + 1])
                    words = [*words, *smaller(words[2:])]
                main([*words[1:], *job["more"]])
            elif words[1] == "-m":
                sys.argv = words = [*words[2:], *job["more"]]
                runpy.run_module(words[0], run_name="__main__", alter_sys=True)
            else:
                script = Path(words[1])
                family, default = re.findall(r'family\("(\w+)", default="(\w+)"\)', script.read_text())[0]
                study = next((word[6:] for word in words if word.startswith("study=")), default)
                others = _few([word for word in words[2:] if not word.startswith("study=")])
                words = [*words[1:], *smaller([f"{family}/{study}", *others]), *job["more"]]
                sys.argv = words
                runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        output.write(traceback.format_exc())
        status = 99
    sys.path[:], harness.run._report = path, report
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(Path(job["folder"]).parent)):
            del sys.modules[name]  # a module that the page shows
    return {"status": status, "output": output.getvalue(), "words": words, "seconds": time.process_time() - began}


if __name__ == "__main__":
    import gc
    import sys

    gc.set_threshold(50_000, 10, 10)  # as in conftest.py
    jobs, results = map(Path, sys.argv[1:])
    sys.path.insert(0, str(ROOT))
    import harness.planning.throughput

    harness.planning.throughput._BUDGET_S = 0.0  # a few steps of each size are timed, instead of half a second of them
    done = []
    for each in json.loads(jobs.read_text()):
        done.append(_run(each))
        results.write_text(json.dumps(done))
