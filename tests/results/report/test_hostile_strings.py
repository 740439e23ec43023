"""Hostile strings in every string column of every table and every field of the manifest: shown as text, run and written nowhere.

The columns are walked by their schema and the manifest by its content, so what is added later is covered as well.
"""

import csv
import html.parser
import io
import json
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.cli import main
from results.dashboards.dashboard import show_dashboard
from results.dashboards.publish import publish
from results.names import slug
from results.output import output_folder
from results.report.flipflop import glitches
from results.report.flipflop.attention_figures import write_figures
from results.report.replicate_page import write_replicate_page
from results.report.report import write_report
from results.rows.latex import latex_escape
from results.rows.summary import to_csv
from results.store import parquet
from results.store import tables as store
from results.store.manifest import newest_manifest
from results.store.schema import SCHEMAS
from results.store.tables import list_names, open_store
from tests.results.report.browser import browser
from tests.results.report.flipflop import glitch_rows
from tests.results.synthetic import failure, manifest, tables, write

ROOT = Path(__file__).parents[3]
STUDIES = sorted((ROOT / "docs/studies").rglob("newest_manifest"))
CODE = "document.documentElement.dataset.pwned=1;top.postMessage(`pwned`,`*`)"
NAME = "../../../pwned\"'><script>" + CODE + "</script>"  # what is renamed everywhere begins with it
TEXT = (
    f"=1+1;x/../../../pwned\x1b]0;pwned\x07\x1b[31m\u202e\r\n{{{{7*7}}}}${{7*7}}%\\\\$$</title></textarea></style></script>-->"
    f'"\'><script>{CODE}</script><svg onload="{CODE}"><img src=x onerror="{CODE}"><a href="javascript:{CODE}" autofocus '
    f'onfocus="{CODE}">]]><script>{CODE}</script><!--<script>'
)
JSON = json.dumps({TEXT: [TEXT, {TEXT: TEXT}]})
IDENTITY = ("key", "parent_key", "pack", "condition", "set", "set_hash", "sets", "keys")  # renamed alike in all tables
LISTED = {"replicates": "status"}  # columns of words that readers know: rows with others are refused
KEPT = ("claims", "study", "watch")  # of a manifest: what no code knows is refused there in one sentence
WORDS = ("direction",)  # of which readers know each one, and refuse a manifest with another
FRAMES = 80  # pages that one browser opens at once


def renamed(text: str | None) -> str | None:
    return None if text is None else f"{NAME}{text}"


def hostile_rows(table: str, rows: pa.Table) -> pa.Table:
    """Names are renamed; of the other strings each column has the payloads in some rows, where all other columns stay as they are.

    Those of probes are further rows, because a report refuses a probe that lacks one.
    """
    texts = [f for f in SCHEMAS[table] if pa.types.is_string(f.type) or pa.types.is_list(f.type)]
    free = [field.name for field in texts if field.name not in (*IDENTITY, LISTED.get(table))]
    turns = 2 * len(free) + 1
    turns = 4 * turns if rows.num_rows >= 4 * turns else turns
    listed = rows.to_pylist()
    for row in listed:
        for name in (field.name for field in texts if field.name in IDENTITY):
            row[name] = [renamed(each) for each in row[name]] if isinstance(row[name], list) else renamed(row[name])
    spoiled = [(index % turns, row) for index, row in enumerate(listed) if index % turns < 2 * len(free)]
    if table == "probes":
        spoiled = [(turn, dict(row)) for turn, row in spoiled]
        listed += [row for _, row in spoiled]
    for turn, row in spoiled:
        row[free[turn // 2]] = (TEXT, JSON)[turn % 2]
    return pa.Table.from_pylist(listed, rows.schema)


def hostile(value, keep=False):
    """A part of a manifest with a payload for every string and one more entry in every mapping; keep: strings stay."""
    if isinstance(value, str):
        return value if keep else TEXT
    if isinstance(value, list):
        return [hostile(each, keep) for each in value]
    if isinstance(value, dict):
        return {name: hostile(each, keep or name in WORDS) for name, each in value.items()} | ({} if keep else {TEXT: TEXT})
    return value


def hostile_manifest(plan: dict) -> dict:
    """Every name is renamed as in the rows; every second condition and set, and all else, has payloads for its strings."""
    made = {name: value if name in KEPT else hostile(value) for name, value in plan.items()}
    made["replicates"] = [[renamed(row[0]), *row[1:]] for row in plan["replicates"]]
    made["packs"] = [hostile(each, keep=True) | {"id": renamed(each["id"])} for each in plan["packs"]]
    made["sets"] = {renamed(name): hostile(each, keep=True) for name, each in plan["sets"].items()}
    if "metrics" in plan:  # of experiments
        made["metrics"] = plan["metrics"] | {NAME: {"better": NAME, "kind": NAME}}
    made["conditions"] = []
    for index, each in enumerate(plan["conditions"]):
        sets = {
            renamed(name): hostile(one, keep=index % 2 == 0) | {"hash": renamed(one["hash"])}
            for name, one in each["sets"].items()
        }
        own = hostile(each, keep=index % 2 == 0 or len(plan["conditions"]) == 1)
        made["conditions"].append(own | {"name": renamed(each["name"]), "sets": sets})
    return made


def write_hostile(at: store.Store, plan: dict, rows: dict[str, pa.Table]) -> dict:
    made = hostile_manifest(plan)
    store.write_bytes(at, "manifests/00.yaml", json.dumps(made).encode())
    for table, found in rows.items():
        store.write_bytes(at, f"{table}/compacted-0.parquet", parquet.serialise(hostile_rows(table, found)))
    return made


def write_hostile_glitches(at: store.Store, key: str) -> None:
    about = glitch_rows.about(steps=[100], sisters=[{"key": "x", "init": 1, "data": 1}], layers=1, heads=1, kept=4, length=64)
    strings = {f.name: TEXT for f in fields(about) if f.type is str} | {"tokens": [TEXT] * 5, "answers": [TEXT] * 5}
    about = replace(about, **(strings | {"key": key, "set": renamed("dense")}))
    glitches.write(at, about, glitch_rows.rows(about, 5))


ADDRESS = re.compile(r"data:,|data:image/png;base64,[A-Za-z0-9+/=\s]*|#?[A-Za-z0-9._/-]*")  # the picture is one of a figure's


class Page(html.parser.HTMLParser):
    """Attributes and scripts of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.wrong, self.scripts, self._script = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._script = dict(attrs).get("type", "") if tag == "script" else None
        for name, value in attrs:
            address = name in ("href", "src", "xlink:href", "action", "srcdoc")
            if name.startswith("on") or (address and not ADDRESS.fullmatch(value or "")):
                self.wrong.append((tag, name, value))

    def handle_data(self, data):
        if self._script == "application/json":
            json.loads(data)
        elif self._script is not None:
            self.scripts.append(data)

    def handle_endtag(self, tag):
        self._script = None


def executed(pages: list[Path], folder: Path) -> list[Path]:
    """The pages and figures in which Chromium ran the payload."""
    folder.mkdir()
    frames = "".join(f'<iframe name="{number}" src="{page.as_uri()}"></iframe>' for number, page in enumerate(pages))
    script = (
        "addEventListener('message', (event) => { for (let i = 0; i < frames.length; i++) "
        "if (event.data === 'pwned' && frames[i] === event.source) ran.textContent += ` ${i} `; });"
    )
    (folder / "frames.html").write_text(f"<p id=ran></p><script>{script}</script>{frames}")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
        "--disable-sync --virtual-time-budget=5000"
    )
    command = [browser(), *flags.split(), f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*command, (folder / "frames.html").as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    numbers = re.search(r'<p id="ran">([\d ]*)</p>', done.stdout)
    assert numbers, done.stdout[:1000]
    assert done.stdout.count("<iframe") == len(pages)
    return sorted({pages[int(number)] for number in numbers[1].split()})


def pages_of(folder: Path) -> list[Path]:
    """The pages and figures of a folder: every file has a safe name, and no page has a script, handler or address of the store's."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert all(re.fullmatch(r"((figures|tables)/)?[A-Za-z0-9][A-Za-z0-9._-]*", str(path.relative_to(folder))) for path in files)
    pages = [path for path in files if path.suffix in (".html", ".svg")]
    for path in pages:
        page = Page(path.read_text())
        assert page.wrong == [], path.name
        assert not [script for script in page.scripts if "pwned" in script], path.name
    return pages


def open_all(pages: list[Path], tmp_path: Path) -> None:
    """Chromium opens the pages and runs nothing of the store's."""
    control = tmp_path / "control.html"
    control.write_text(TEXT)
    for start in range(0, len(pages), FRAMES):
        assert executed([*pages[start : start + FRAMES], control], tmp_path / f"browser-{start}") == [control]


def commands(at: str, study: str, into: str) -> list[list[str]]:
    """What reads a store, but for the reports."""
    plain = [[name, at, study] for name in ("status", "failures", "compare", "spread", "compact")]
    more = [["failures", at, study, "--full"], ["watch", at, study, "--once"], ["claims", at], ["merge", into, at]]
    return [*plain, *more, ["report", at, study, "--key", "nothing"], ["status", at, TEXT], ["status", TEXT]]


def said(capsys: pytest.CaptureFixture, words: list[str]) -> tuple[int, str]:
    """Exit status and all that a command printed."""
    try:
        main(words)
        status = 0
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def outside(tmp_path: Path) -> set[str]:
    return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}


@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout not applied")
def test_no_string_of_a_store_runs_in_a_page_leaves_the_folder_or_is_obeyed_by_a_terminal(tmp_path, capsys):
    deep = tmp_path / "a/b/c/d"
    at, plan = open_store(deep / "store", "synthetic"), manifest(seeds=8)
    parts = tables(plan).values()
    rows = {
        table: pa.concat_tables([each[table] for each in parts])
        for table in ("replicates", "evaluations", "profiles", "curves")
    }
    one = {"stage": 0, "pack": "fd-0", "step": 1000, "probe": "heads", "layer": 0, "head": 0, "item": "x", "value": 1.0}
    rows["probes"] = pa.Table.from_pylist([one | {"key": row[0]} for row in plan["replicates"]], SCHEMAS["probes"])
    broken = [failure(plan["replicates"][-1][0]) | {"attempt": attempt} for attempt in range(9)]
    rows["failures"] = pa.Table.from_pylist(broken, SCHEMAS["failures"])
    made = write_hostile(at, plan, rows)
    key = made["replicates"][0][0]
    write_hostile_glitches(at, key)
    before = outside(tmp_path)
    out = deep / "out"
    for words in (["report", at.root, "synthetic"], ["report", at.root, "synthetic", "--key", key]):
        for more in ([], ["--out", str(out)]):
            status, text = said(capsys, [*words, *more])
            assert (status, "error:" in text) == (0, False), text
    after = outside(tmp_path)
    assert all(path.startswith(("a/b/c/d/out", "a/b/c/d/store/synthetic/report")) for path in after - before)
    assert {path.name for path in out.glob("*.html")} > {"index.html"}
    assert len(list(out.glob("glitches-*.html"))) == 1
    assert sum(1 for path in out.rglob("*.svg") if path.name.startswith("profile-")) == 4  # two axes, and two payloads
    names = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert names.keys() == {p.relative_to(at.path("report")) for p in Path(at.path("report")).rglob("*") if p.is_file()}
    open_all(pages_of(out), tmp_path)
    for words in commands(at.root, "synthetic", str(deep / "into")):
        status, text = said(capsys, words)
        assert status in (0, 1, 2), words
        assert not text.startswith("Traceback")
        assert "\nTraceback" not in text
        controls = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
        assert controls <= {"\n", "\t"}, words
    late = outside(tmp_path) - after
    assert all(path.startswith(("a/b/c/d/store/", "a/b/c/d/into", "browser", "control.html")) for path in late)


@pytest.mark.parametrize("table", LISTED)
def test_a_word_that_no_version_wrote_is_refused_in_one_sentence(tmp_path, capsys, table):
    at, plan = open_store(tmp_path / "store", "synthetic"), manifest(seeds=2)
    write(at, plan)
    name = list_names(at, table)[0]
    rows = store.read(at, table).to_pylist()
    mine = [row | {LISTED[table]: TEXT} for row in rows if f"{row['pack']}.parquet" == name]
    store.write_bytes(at, f"{table}/{name}", parquet.serialise(pa.Table.from_pylist(mine, SCHEMAS[table])))
    for command in ("compare", "spread", "report"):
        status, text = said(capsys, [command, at.root, "synthetic"])
        assert status == 2
        assert "\x1b" not in text
        assert text.count("\n") == 1
        assert f"has the {LISTED[table]} " in text


def test_a_table_for_a_spreadsheet_holds_no_formula_and_a_citation_no_lone_brace():
    table = pa.table({"=x": ["=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "plain", None], "n": [-1, 1, 1, 1, 1, 1, 1]})
    read = list(csv.reader(io.StringIO(to_csv(table).decode())))
    assert read[0] == ["'=x", "n"]
    assert [row[0] for row in read[1:]] == ["'=HYPERLINK(1)", "'+1", "'-1", "'@x", "'\tx", "plain", ""]
    assert read[1][1] == "-1"
    for text in ("}", "{", "a}, note = {b", "\\input{x}", "\x1b\n"):
        escaped = latex_escape(text)
        assert escaped.count("{") == escaped.count("}")
        assert re.fullmatch(r"(?:[^\\{}%$#&_^~]|\\[a-z]+\{\}|\\[&%$#_])*", escaped)
        assert escaped.isprintable()


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_slug_is_safe_its_own_slug_and_another_one_for_another_name(one, other):
    for name in (one, other):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,69}", slug(name))
        assert slug(slug(name)) == slug(name)
    assert (slug(one) == slug(other)) == (one == other)


def test_a_report_refuses_to_leave_its_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/figures").symlink_to(tmp_path / "elsewhere")
    folder = output_folder(tmp_path / "out")
    for name in ("../evil.html", "a/../../evil", "", "a\0b", str(tmp_path / "evil")):
        with pytest.raises(ValueError, match="can't name a file of a store"):
            folder.write(name, b"x")
    with pytest.raises(OSError, match="a symbolic link on its way leads out of"):
        folder.write("figures/loss.svg", b"x")
    assert outside(tmp_path) == {"out", "out/figures", "elsewhere"}
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert output_folder(tmp_path / "link").write("index.html", b"x").read_bytes() == b"x"


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Iterator[list[Path]]:
    """Pages that Chromium opens when all studies have theirs: it takes longer to start than to open them."""
    pages: list[Path] = []
    yield pages
    open_all(pages, tmp_path_factory.mktemp("opened"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout not applied")
@pytest.mark.parametrize("study", STUDIES, ids=lambda path: str(path.parent.relative_to(ROOT / "docs/studies")))
def test_no_string_of_a_familys_study_runs_in_its_pages(tmp_path, opened, study):
    theirs = open_store(study.parent.parent, study.parent.name)
    rows = {table: store.read(theirs, table) for table in SCHEMAS}
    at = open_store(tmp_path / "store", study.parent.name)
    plan = newest_manifest(theirs)[1] | {"claims": {}}
    made = write_hostile(at, plan, {table: found for table, found in rows.items() if found.num_rows})
    out = tmp_path / "out"
    write_report(at, out)
    write_replicate_page(at, made["replicates"][0][0], out)
    write_figures(at, out)
    before = outside(tmp_path)
    opened += pages_of(out)
    publish(at, "offline", tmp_path / "published")
    show_dashboard(at, None, str(tmp_path / "dashboards"), lambda line: None)
    late = {path.split("/")[0] for path in outside(tmp_path) - before}
    assert late <= {"published", "dashboards"}
