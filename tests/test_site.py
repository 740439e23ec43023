"""The documentation's site is built without a warning and fetches nothing, and the pages of reference say what the code says."""

import dataclasses
import os
import re
import subprocess
import sys

import pytest

import models
import tasks
from harness.study.load import KEYS
from harness.study.training_options import Train
from launch.cli.reference_page import page
from results.store.schema import SCHEMAS
from results.version import VERSION
from tests.page_code import ROOT, blocks

PAGES = [  # those of docs/studies follow the tables beside them
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "studies" not in path.parts),
    ROOT / "benchmarks" / "README.md",
]
WIDTH = 110


def _text(name):
    return (ROOT / "docs" / name).read_text()


def _headings(name):
    return re.findall(r"^#+ (.*)$", _text(name), re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1", "SOURCE_URL": "https://example.org/blob/main"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stderr == ""
    return folder


def test_the_site_fetches_nothing_from_other_servers(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* rel=\"(?:stylesheet|preconnect)\"[^>]* href=\"(?:https?:)?//"
    )
    assert [path.name for path in pages if fetched.search(path.read_text())] == []


def test_links_out_of_the_documentation_lead_to_the_source(site):
    text = (site / "explanation" / "why.html").read_text()
    assert 'href="https://example.org/blob/main/benchmarks/README.md#what-was-measured-on-2-cpu-cores"' in text
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_the_site_has_the_docstrings_of_the_stable_names(site):
    text = (site / "reference" / "python.html").read_text()
    for name in ("tasks.build", "models.build", "harness.draw.Draw", "results.rows.load_rows.load"):
        assert f'id="{name}"' in text, name


def test_the_code_of_the_page_on_python_runs():
    names = {}
    (code,) = blocks("docs/reference/python.md", "python")
    exec(code, names)
    assert names["logits"].shape == (3, 16, 64, 5)


def test_the_citation_is_valid_and_of_this_version():
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff"]
    checked = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"version: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_page_of_commands_is_their_help():
    assert _text("reference/cli.md") == page(), "python -m launch.cli.reference_page > docs/reference/cli.md"


@pytest.mark.parametrize("table", SCHEMAS)
def test_the_page_of_tables_has_every_column_with_its_type(table):
    shared, *sections = re.split(r"^## ", _text("reference/tables.md"), flags=re.MULTILINE)
    (section,) = [part for part in sections if part.startswith(f"{table}\n")]
    rows = re.findall(r"^\| `(\w+)` \| (.+?)(, nullable)? \|", section, re.MULTILINE)
    common = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", shared, re.MULTILINE))
    said = {name: (kind, bool(null)) for name, kind, null in rows}
    expected = {field.name: (str(field.type), field.nullable) for field in SCHEMAS[table]}
    assert {name for name in expected if name not in said} <= set(common)
    assert all(common[name] == kind for name, (kind, _) in expected.items() if name not in said)
    assert said == {name: expected.get(name) for name in said}


def test_the_page_of_training_options_has_every_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", _text("reference/training.md"), re.MULTILINE))
    expected = {each.name: each.default for each in dataclasses.fields(Train)}
    written = {
        name: "null" if value is None else str(list(value) if isinstance(value, tuple) else value)
        for name, value in expected.items()
    }
    assert rows == written


def _written(value):
    """A default as a page writes it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", ["flipflop", "transformer", "lstm", "mlp", "ngram_mlp"])
def test_the_page_of_study_files_has_every_option_of_a_task_or_model_with_its_default(name):
    table = re.search(rf"^\| `{name}` \| default .*?\n\n", _text("reference/study-file.md"), re.DOTALL | re.MULTILINE)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", table, re.MULTILINE))
    assert rows == {each.name: _written(each.default) for each in dataclasses.fields((tasks.REGISTRY | models.REGISTRY)[name])}


def test_the_page_of_study_files_has_every_key():
    said = set(re.findall(r"^\| `(\w+)(?:\.\w+)?` \|", _text("reference/study-file.md"), re.MULTILINE))
    assert said >= set(KEYS)


WORDS = {
    "artifact",
    "card",
    "claim",
    "commit",
    "condition",
    "dense",
    "draw",
    "evaluation set",
    "experiment",
    "family",
    "glitch",
    "key",
}
WORDS |= {
    "in distribution",
    "manifest",
    "pack",
    "probe",
    "reduction",
    "replicate",
    "scale",
    "slot",
    "sparse",
    "stage",
    "store",
    "study",
}
WORDS |= {"tail", "verdict"}


def test_the_glossary_defines_the_words_of_the_house_in_order():
    words = _headings("reference/glossary.md")[1:]
    assert set(words) >= WORDS
    assert words == sorted(words)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_of_a_page_is_too_long_to_read(path):
    """A line that can't be broken may be longer, such as the choices of an option that `--help` prints."""
    lines = [line for line in path.read_text().splitlines() if len(line) > WIDTH and max(map(len, line.split())) < WIDTH - 20]
    assert lines == [], f"lines longer than {WIDTH} characters"
