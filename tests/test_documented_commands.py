"""What the documents say can be typed: every command line is run at tiny settings, without the project installed, or validated and listed.

A command that is not in documented_not_run.yaml is run, so a new one that can't be run fails: make it one that can, or list it there with
the reason.
"""

import importlib.util
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import numpy as np
import pytest
import yaml

from harness.study.load import load
from launch.cli import cli
from launch.families import find_study
from tests.documented import Documented, documented, our_words, words_of
from tests.environments import ROOT, environment_of, make_environment
from tests.harness.tiny import STUDY

PREPARED = STUDY + "keep: all\nclaims: {R2: {value: 1.0}}\n"

NOT_RUN = {
    (page, text): why
    for why, pages in yaml.safe_load((ROOT / "tests" / "documented_not_run.yaml").read_text()).items()
    for page, texts in pages.items()
    for text in texts
}
NAMED, TESTS = "a sentence names it without its arguments", "the tests, which do not run themselves"
ADDED = "a test of the page adds it to a copy of the project and runs it"
EXAMPLE = "tests/test_examples.py runs it in the folder of the example"
TUTORIAL = "tests/test_tutorial.py runs the page line by line"
SCOREBOARD = "tests/results/claims/test_scoreboard_page.py makes the page by it"


def reason(command: Documented) -> str | None:
    """Why a command is not run; None where it is."""
    ours = our_words(words_of(command.text))
    if command.inline and ours is not None and not [word for word in ours[1:] if not word.startswith("-")]:
        return NAMED
    if re.match(r"(\.ci/run$|(\.venv/bin/)?python -m pytest )", command.text):
        return TESTS
    return NOT_RUN.get((command.page, command.text))


COMMANDS = documented()
LEFT = [command for command in COMMANDS if reason(command) is not None]


def _parse(command, words):
    """Parse a command line down to its last subcommand and run nothing."""
    context = command.make_context(command.name, list(words), resilient_parsing=isinstance(command, click.Group))
    if isinstance(command, click.Group):
        context.resilient_parsing = False  # which would let a name pass that is no command
        _, inner, rest = command.resolve_command(context, list(words))
        _parse(inner, rest)


def _named(command, words):
    """The subcommand and the options that a sentence names."""
    for word in words:
        if word == "--help":
            continue
        if isinstance(command, click.Group) and not word.startswith("…"):
            command = command.commands[word]
        elif word.startswith("--"):
            assert any(word.partition("=")[0] in each.opts for each in command.params), word


def _resolve(words):
    """The study that a command line names, with its overrides."""
    if words[:1] == ["python"] and words[1].startswith("launch/"):
        family, default = re.findall(r'family\("(\w+)", default="(\w+)"\)', (ROOT / words[1]).read_text())[0]
        name = next((word[6:] for word in words if word.startswith("study=")), default)
        load(find_study(family, name), [word for word in words[2:] if not word.startswith("study=")])
    elif (ours := our_words(words)) and ours[0] in ("plan", "run", "retry") and len(ours) > 1 and ours[1] != "my_study.yaml":
        path = ROOT / ours[1] if (ROOT / ours[1]).exists() else find_study(*ours[1].split("/"))
        load(path, [word for word in ours[2:] if re.match(r"[\w.]+=", word)])


@pytest.mark.parametrize("command", LEFT, ids=lambda command: f"{command.page}: {command.text}")
def test_a_command_that_is_not_run_is_valid(command):
    words = words_of(_fill(command.text))
    ours = our_words(words)
    if reason(command) == ADDED:  # the page makes it, and its test runs it
        assert f'"{command.page}"' in (ROOT / "tests" / "test_docs.py").read_text()
    elif reason(command) == EXAMPLE:
        assert command.page.rpartition("/")[2] in (ROOT / "tests" / "test_examples.py").read_text()
        if ours is not None:
            _parse(cli, ours)
        else:
            assert (ROOT / words[-1]).is_dir()
    elif reason(command) == TUTORIAL:
        assert f'"{Path(command.page).name}"' in (ROOT / "tests" / "test_tutorial.py").read_text()
    elif reason(command) == SCOREBOARD:
        made = (ROOT / "tests/results/claims/test_scoreboard_page.py").read_text()
        assert json.dumps(ours[1:]) in made
    elif reason(command) == NAMED:
        _named(cli, ours or [])
    elif ours is not None:
        _parse(cli, ours)
        _resolve(words)
    elif words and words[0] == "ray":
        from ray.scripts.scripts import cli as ray

        if command.inline:
            _named(ray, words[1:])
        else:
            _parse(ray, words[1:])
        if "--" in words:
            job = words[words.index("--") + 1 :]
            if (inner := our_words(job)) is not None:
                _parse(cli, inner)
            _resolve(job)
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2]), words[2]
        assert all((ROOT / word).exists() for word in words[3:] if word.startswith("tests/")), words
    elif words and words[0] == "python":
        _resolve(words)
    for name in re.findall(r"\b(?:launch|tests|benchmarks|docs/studies)/[\w/.-]+\w", command.text):
        assert (ROOT / name).exists(), name


def test_every_line_of_the_list_is_of_a_page():
    listed = {(command.page, command.text) for command in COMMANDS}
    assert [line for line in NOT_RUN if line not in listed] == []


RUN = [command for command in COMMANDS if reason(command) is None]


def test_what_is_run_is_ours():
    """So that a new command of another program is listed with the reason why it is not run."""
    other = [command.text for command in RUN if our_words(words_of(command.text)) is None]
    assert [text for text in other if not re.match(r"(\.venv/bin/)?python (launch/\w+\.py|-m (harness|results)\.)", text)] == []


# --- what is run ---

FILES = {  # written beside the commands of a page: (language, number of the block)
    "README.md": {"my_model.py": ("python", 0), "gauntlet.yaml": ("yaml", 0)},
    "docs/guides/own-task.md": {"my_tasks.py": ("python", 0), "my_parity.yaml": ("yaml", 0)},
    "docs/explanation/automata.md": {"c2.yaml": ("yaml", -1)},
    "docs/guides/own-model.md": {"my_models.py": ("python", 0), "my_study.yaml": ("yaml", 0)},
    "docs/guides/gauntlet.md": {"my_models.py": ("python", 0), "my_gauntlet.yaml": ("yaml", 0)},
    "docs/explanation/lego.md": {"lego.yaml": ("yaml", -1)},
    "docs/explanation/tracing.md": {"traced.yaml": ("yaml", 0)},
}
CONTINUED = (  # pages whose sentences go on with what their blocks trained
    "docs/explanation/campaign.md",
    "docs/explanation/lego.md",
    "docs/explanation/tracing.md",
    "docs/guides/gauntlet.md",
)
MORE = {  # appended to a command, by what follows `manyseeds`: the last of an option counts
    "harness.local": ["--device", "cpu"],
    "evaluate": ["--set", "p_ignore=0.9 sequences=4"],
    "glitches": ["--limit", "2", "--sisters", "0"],
    "probe": ["--strings", "8"],
    "probe alignment": ["--strings", "256"],
    "probe drift": [],
    "trace": ["--glitches", "1", "--strings", "64", "--replays", "16"],
    "watch": ["--once"],
}
TRAINS = re.compile(r"manyseeds run|\S*python launch")
REPORTED = (".venv/bin/python launch/fflm_replicates.py", "manyseeds run FILE [KEY=VALUE]…")
PLACEHOLDERS = {
    **{
        "STORE": "runs",
        "STUDY": "tiny",
        "INTO": "united",
        "FILE": "my_study.yaml",
        "NAME": "attention",
        "flipflop/NAME": "flipflop/lstm",
        "S": "1",
        "'…'": "'length=8'",
    },
    **{"fflm-baseline": "tiny", "fflm-quick": "tiny", "quick": "tiny", "runs/my-gauntlet": "runs"},
}


def _fill(text):
    """A command of a table as one that can be typed: its optional parts left out, the first of several choices, real names."""
    text = re.sub(r"\s*\[[A-Z-][^\]]*\](?=\s|$|…)", "", text) if "[" in text and "slots" not in text else text
    words = [_first(word.strip("…")) if "=" not in word else word for word in re.split(r"\s+", text)]
    return " ".join(PLACEHOLDERS.get(word, word) for word in words if word)


def _first(word):
    """Of choices such as `KEY|all` the first; of the probes one that fits every transformer."""
    return "attention" if "|attention|" in word else word.partition("|")[0]


def _blocks(page, language):
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Of an environment with the dependencies and without the project."""
    return make_environment(tmp_path_factory.mktemp("dependencies") / "venv")


def test_the_environment_has_the_dependencies_and_not_the_project(python, tmp_path):
    code = (
        "import importlib.metadata as m, ray, torch, importlib.util as u; print(u.find_spec('harness')); m.version('manyseeds')"
    )
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=environment_of(python), capture_output=True, text=True)
    assert done.stdout == "None\n"
    assert "PackageNotFoundError" in done.stderr


@pytest.fixture(scope="module")
def outcomes(python, tmp_path_factory):
    """Every command that is run, by command. Two of the runs write their reports here; `manyseeds report` makes those of other stores."""
    return _run_all(python, tmp_path_factory.mktemp("documents"), REPORTED.__contains__)


def _run_all(python, root, reported):
    """In the order of the pages, in one process of that environment; reported: whether a run writes its report."""
    prepared = root / "prepared"
    prepared.mkdir()
    (prepared / "my_study.yaml").write_text(PREPARED)
    first = "manyseeds run my_study.yaml store=runs replicates=2".split()
    jobs = [{"folder": str(prepared), "words": first, "more": [], "report": False}]
    with_run: dict[str, int] = {}  # the last block of a page that trains: what its sentences say is of that
    jobs_of: dict[Documented, int] = {}
    said: dict[str, int] = {}
    for command in RUN:
        if TRAINS.match(command.text) and not command.inline and command.page in CONTINUED:
            with_run[command.page] = command.block
        if re.match(rf"{TRAINS.pattern}|manyseeds estimate", command.text) and command.text in said:  # on another page
            jobs_of[command] = said[command.text]
            continue
        said[command.text] = jobs_of[command] = len(jobs)
        block = with_run.get(command.page, "none") if command.inline else command.block
        folder = root / re.sub(r"\W", "-", f"{command.page}-{block}")
        words = shlex.split(_fill(command.text), comments=True)
        words = ["manyseeds", *found] if (found := our_words(words)) is not None else words
        words = [word.replace("/data/", f"{folder}/") for word in words]
        jobs.append({"folder": str(folder), "words": words, "more": _more(words), "report": bool(reported(command.text))})
        if not folder.exists():
            _furnish(folder, command.page)
    listed, results = root / "jobs.json", root / "results.json"
    listed.write_text(json.dumps(jobs))
    program = [python, ROOT / "tests" / "documented.py", listed, results]
    done = subprocess.run(program, cwd=root, env=environment_of(python), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    ended = json.loads(results.read_text())
    assert ended[0]["status"] == 0, ended[0]["output"]
    return {command: ended[number] for command, number in jobs_of.items()}


def _more(words):
    if "--probe" in words:
        return MORE.get(f"probe {words[words.index('--probe') + 1]}", MORE["probe"])
    return MORE.get(words[2] if words[1] == "-m" else words[1], [])


def _furnish(folder, page):
    """A folder as the root of the repository, with the files that the page shows."""
    folder.mkdir()
    for name in ("launch", "docs", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "my_study.yaml").write_text(PREPARED)
    if page == "docs/guides/own-corpus.md":
        for part in ("train", "test"):
            (folder / "corpus" / part).mkdir(parents=True)
            np.save(folder / "corpus" / part / "tokens.npy", np.arange(4096, dtype=np.uint16) % 50)
    for name, (language, number) in FILES.get(page, {}).items():
        (folder / name).write_text(_blocks(page, language)[number])


def _assert_ended(ended):
    # a few steps reproduce nothing, and `claims` says so by its status
    allowed = (0, 1) if ended["words"][1] == "claims" else (0,)
    assert ended["status"] in allowed, (ended["words"], ended["output"][-3000:])


@pytest.mark.parametrize("command", RUN, ids=lambda command: f"{command.page}: {command.text}")
def test_a_documented_command_runs(outcomes, command):
    _assert_ended(outcomes[command])
    if command.text in REPORTED:
        assert re.search(r"report: .*/index\.html", outcomes[command]["output"])


@pytest.mark.slow
def test_every_documented_run_writes_its_report(python, tmp_path):
    ended = _run_all(python, tmp_path, TRAINS.match)
    for command in RUN:
        _assert_ended(ended[command])
        if TRAINS.match(command.text):
            assert re.search(r"report: .*/index\.html", ended[command]["output"]), command
