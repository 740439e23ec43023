"""Manifests that someone has edited: every command reads them, or says in one sentence what is wrong; none ends with a traceback.

The variants are made from committed manifests by walking them, so that fields that are added later are edited as well.
"""

import copy
import gzip
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launch.cli import main
from results.report.plots import figure_files
from results.store.manifest import manifest_bytes, manifest_files
from results.store.manifest_schema import problem
from results.store.tables import open_store
from tests.results.synthetic import manifest, write

ROOT = Path(__file__).parents[3]
STUDIES = sorted(path.parent for path in (ROOT / "docs/studies").rglob("newest_manifest"))
FAMILIES = {
    **dict.fromkeys(("fflm-quick", "p9", "lego-self-training", "a5", "alignment", "p7"), 300),
    **dict.fromkeys(("dyck-lengths", "trained-generators", "vgb-long-run", "ngram-stationarity"), 100),
}  # edits of studies of which all readers have something to read
GONE = object()
DEEP: Any = []
for _ in range(60):
    DEEP = [DEEP]
EDITS = (
    GONE,
    None,
    True,
    0,
    -1,
    7,
    2.5,
    10**30,
    1e308,
    float("nan"),
    "",
    "x",
    "x" * 3_000_000,
    [],
    {},
    [[["x"]]],
    {"x": {"y": []}},
    DEEP,
)
COMMANDS = """
status STORE STUDY
watch STORE STUDY --once
failures STORE STUDY
compare STORE STUDY
spread STORE STUDY
claims STORE --study STUDY
report STORE STUDY --out OUT
report STORE STUDY --key KEY --out OUT
merge INTO STORE --study STUDY
"""


def places(node: Any, path: tuple = ()) -> Iterator[tuple]:
    """Every place of a manifest; of a list the first and the last entry stand for all."""
    if path:
        yield path
    if isinstance(node, dict):
        for name, value in node.items():
            yield from places(value, (*path, name))
    elif isinstance(node, list):
        for index in sorted({0, len(node) - 1} if node else ()):
            yield from places(node[index], (*path, index))


def edited(content: dict[str, Any], path: tuple, edit: Any) -> dict[str, Any]:
    made = copy.deepcopy(content)
    node = made
    for step in path[:-1]:
        node = node[step]
    if edit is GONE:
        del node[path[-1]]
    else:
        node[path[-1]] = edit
    return made


def doubled(content: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """What no edit of one place makes: entries twice, names alike, a mapping with a name twice, half a file."""
    for name in ("conditions", "replicates", "packs"):
        yield f"{name} twice", json.dumps(content | {name: [*content[name], *content[name][:1]]}).encode()
    one = copy.deepcopy(content)
    for each in one["conditions"]:
        each["name"] = "same"
    yield "conditions of one name", json.dumps(one).encode()
    text = json.dumps(content)
    yield "a name twice", text.replace("{", '{"study": "other", ', 1).encode()
    yield "half a file", text[: len(text) // 2].encode()
    yield "a half character", text.replace('"study": "', '"study": "\\ud800', 1).encode()
    yield "other bytes", text.encode("utf-16")


def sampled(content: dict[str, Any], count: int, seed: int) -> list[tuple[str, bytes]]:
    """Some of the edits, each kind about as often, and all that `doubled` makes."""
    draw, found = random.Random(seed), []
    at = list(places(content))
    for number in range(count):
        edit = EDITS[number % len(EDITS)]
        # of a path of each length, or the settings of the conditions would be most of what is drawn
        depth = draw.choice(sorted({len(path) for path in at}))
        path = draw.choice([path for path in at if len(path) == depth])
        shown = "gone" if edit is GONE else repr(edit)[:30]
        found.append((f"{'.'.join(map(str, path))} {shown}", json.dumps(edited(content, path, edit)).encode()))
    return [*found, *doubled(content)]


def ended(words: list[str]) -> Any:
    """Exit status of a command; a defect has one of its own, and its traceback is printed."""
    try:
        main(words)
    except SystemExit as end:
        return end.code or 0
    return 0


def last_frame(printed: str) -> str:
    """Where a traceback ends, and with what."""
    lines = printed.splitlines()
    frames = [line.strip() for line in lines if line.strip().startswith("File ")]
    return " ".join([*frames[-1:], *lines[-2:]])[:400]


def tracebacks(store: Path, made: list[tuple[str, bytes]], tmp_path: Path, capsys: pytest.CaptureFixture) -> list[str]:
    """Run every command over every variant in the place of the study's newest manifest; what ended in no sentence."""
    study = next(path for path in store.iterdir() if (path / "manifests").is_dir())
    file, wrong = study / "manifests/edited.yaml", []  # one that is named for its bytes is not read once it was edited
    newest(study).rename(file)
    (study / "newest_manifest").write_text("edited")
    whole = file.read_bytes()
    key = json.loads(whole)["replicates"][0][0]
    for number, (what, data) in enumerate(made):
        file.write_bytes(data)
        for line in COMMANDS.strip().splitlines():
            into = tmp_path / f"into-{number}"
            given = {"STORE": str(store), "STUDY": study.name, "OUT": str(tmp_path / "out"), "KEY": key, "INTO": str(into)}
            status = ended([given.get(word, word) for word in line.split()])
            printed = capsys.readouterr()
            if status not in (0, 1, 2) or "Traceback" in printed.err:
                wrong.append(f"{line.split()[0]}, {what}: {last_frame(printed.err)}")
            elif status == 2:
                sentence = printed.err.strip()
                assert sentence.startswith("error: "), (what, line, sentence[:300])
                assert "\n" not in sentence
                assert len(sentence) < 1000, (what, line)
            shutil.rmtree(into, ignore_errors=True)
    file.write_bytes(whole)
    return wrong


@pytest.fixture
def quickly(monkeypatch):
    """Figures are made and not drawn, which takes most of a report's time and reads nothing of the manifest."""
    monkeypatch.setattr(figure_files, "svg", lambda figure: "<svg></svg>")


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: f"{study.parent.name}-{study.name}")
def test_every_committed_manifest_fits_the_schema(study):
    at = open_store(study.parent, study.name)
    (file,) = manifest_files(at).values()
    assert problem(json.loads(manifest_bytes(at, file))) == ""


def newest(study: Path) -> Path:
    """The manifest of a study's folder that holds."""
    named = study / "newest_manifest"
    return study / f"manifests/{named.read_text().strip()}.yaml" if named.exists() else next((study / "manifests").iterdir())


def copied(name: str, tmp_path: Path) -> Path:
    """A store with one committed study, found by its name, whose manifest is not compressed."""
    study = next(path for path in STUDIES if name == path.name)
    into = shutil.copytree(study, tmp_path / "store" / study.name, ignore=shutil.ignore_patterns("report", "*.svg", "*.png"))
    for file in (into / "manifests").iterdir():
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    return tmp_path / "store"


def test_no_command_ends_with_a_traceback_on_an_edited_manifest(tmp_path, capsys, quickly):
    at = open_store(tmp_path / "store", "synthetic")
    plan = manifest(seeds=2) | {"claims": {"R2": {"value": 1.0}}}
    for each in plan["conditions"]:
        each["settings"] = each["config"]
    write(at, plan)
    made = sampled(plan, 30, 0)
    assert len(made) == 38
    assert tracebacks(tmp_path / "store", made, tmp_path, capsys) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_no_command_ends_with_a_traceback_on_many_edited_manifests(tmp_path, capsys, quickly, name):
    store = copied(name, tmp_path)
    content = json.loads(newest(next(store.iterdir())).read_text())
    made = sampled(content, FAMILIES[name], 1)
    assert len(made) == FAMILIES[name] + 8
    assert tracebacks(store, made, tmp_path, capsys) == []
