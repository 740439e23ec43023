"""axe-core finds no violation on each kind of page: wide and light, narrow and dark."""

import html
import json
import re
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import axe_core_python
import pytest

from harness.run import run
from harness.study.load import load
from models.custom import custom
from results.report import dyck, lego, subsequences
from results.report.family import ReportFamily
from results.report.flipflop import glitches
from results.report.flipflop.glitch_page import write_glitch_page
from results.report.page_parts import Drawing, drawn_files
from results.report.replicate_page import write_replicate_page
from results.report.report import page, write_report
from results.rows.summary import replicates_of, summarise
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read
from tests.harness.experiments import own_functions
from tests.results.report.browser import FLAGS, browser, with_script
from tests.results.report.flipflop.glitch_rows import about, rows
from tests.results.synthetic import manifest, write

AXE = Path(axe_core_python.__file__).parent / "axe.min.js"
# once a frame has run its own scripts, it tells its parent what axe found in it
CHECK = """<script src="{axe}"></script><script>
addEventListener("load", () => axe.run(document, {{resultTypes: ["violations"]}}).then(
  found => parent.postMessage({{
    page: "{name}",
    passes: found.passes.length,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    violations: found.violations.map(each => [each.id, ...each.nodes.map(node => node.html.slice(0, 200))])
  }}, "*")));
</script>"""
FRAMES = """<!doctype html><html lang="en"><meta name="color-scheme" content="light dark">
<title>frames</title><pre id="found"></pre><script>
const found = [];
addEventListener("message", event => {{
  found.push(event.data);
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>{frames}</html>"""  # a frame may be done before the next one is parsed, so the listener comes first
WHOLE = {"automata": "a3", "distillation": "p9", "ngrams": "ngram-stationarity"}  # small stores of docs/studies
OWN_FIGURES = {  # stores whose other figures would take long, and are of the kinds that the whole pages have
    "dyck": (dyck.FAMILY, "dyck-lengths"),
    "lego": (lego.FAMILY, "lego-self-training"),
    "subsequences": (subsequences.FAMILY, "alignment"),
}
EXPERIMENT = f"""
name: own
question: Does a shift show?
experiment: {{name: "{own_functions.__name__}:measure"}}
evaluate: {{metrics: {{score: higher}}}}
grid: {{experiment.shift: [0, 3]}}
replicates: 3
executor: local
wandb: off
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], str]]:
    """What makes the text of a page of each kind, once, by a name of its own."""
    folder = tmp_path_factory.mktemp("store")
    store, plan = open_store(str(folder), "synthetic"), manifest(6)
    write(store, plan)

    def values() -> Path:
        (folder / "own.yaml").write_text(EXPERIMENT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(custom, "_allowed", {own_functions.__name__})
            assert run(load(folder / "own.yaml", [f"store={folder}"]), say=lambda line: None) == 0
        return folder / "own" / "report" / "index.html"

    def glitch_page() -> Path:
        glitchy, told = open_store(str(folder), "glitchy"), about()
        glitches.write(glitchy, told, rows(told, 20))
        return write_glitch_page(glitchy, told.key, told.set)

    def whole(family: str) -> Path:
        return write_report(open_store(f"docs/studies/{family}", WHOLE[family]), folder / family)

    written: dict[str, Callable[[], Path]] = {
        "glitches": glitch_page,
        "report": partial(write_report, store),
        "replicate": partial(write_replicate_page, store, plan["replicates"][0][0]),
        "values": values,
        **{family: partial(whole, family) for family in WHOLE},
    }
    figures = {name: partial(page_of_own_figures, family, name, study) for name, (family, study) in OWN_FIGURES.items()}
    return {name: cache(partial(text_of, write)) for name, write in written.items()} | {
        name: cache(made) for name, made in figures.items()
    }


def text_of(write: Callable[[], Path]) -> str:
    return write().read_text(encoding="utf-8")


def page_of_own_figures(family: ReportFamily, folder: str, name: str) -> str:
    """The page of a committed study with the figures of its family alone, and few rows."""
    store = open_store(f"docs/studies/{folder}", name)
    newest, finished = newest_manifest(store), committed(store)
    assert newest is not None
    evaluations, failures = (read(store, table, winning=finished) for table in ("evaluations", "failures"))
    known = replicates_of(newest[1], finished, evaluations, failures)
    drawn = [Drawing(*each) for section in family.sections for each in section(store, newest[1], known, finished)]
    assert drawn
    summary = summarise(newest[1], known)
    return page(newest[1], known[:10], summary, finished, failures, drawn_files(drawn)[1], families=[family])


def violations(pages: dict[str, str], width: int, dark: bool, folder: Path) -> dict[str, Any]:
    """What axe says of each page in a frame of its own: how many rules pass, and the others with the elements."""
    frames = ""
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(with_script(text, CHECK.format(axe=AXE.as_uri(), name=name)), encoding="utf-8")
        frames += f'<iframe src="{name}.html" title="{name}" width="{width}" height="3000"></iframe>'
    (folder / "frames.html").write_text(FRAMES.format(frames=frames), encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    # virtual time passes only while no script runs, so that no machine is too slow
    command = [browser(), *FLAGS, scheme, f"--window-size={width + 40},3000", "--virtual-time-budget=20000", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'profile'}", (folder / "frames.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found
    return {each["page"]: each for each in json.loads(html.unescape(found[1]) or "[]")}


ALL = ("glitches", "report", "replicate", "values", *WHOLE, *OWN_FIGURES)


@pytest.mark.parametrize(
    ("width", "dark", "names"),
    [
        (1300, False, ("report", "values")),
        (400, True, ("report", "replicate")),
        pytest.param(1300, False, ALL, marks=pytest.mark.slow),
        pytest.param(400, True, ALL, marks=pytest.mark.slow),
    ],
)
def test_no_page_has_a_violation(
    width: int, dark: bool, names: tuple[str, ...], pages: dict[str, Callable[[], str]], tmp_path: Path
) -> None:
    """A page whose heading is made pale has one, which axe must see."""
    pale = {"pale": pages["replicate"]().replace("<h1", '<h1 style="color: #eee; background: #fff"', 1)}
    assert sorted(ALL) == sorted(pages)
    found = violations({name: pages[name]() for name in names} | pale, width, dark, tmp_path)
    assert [each[0] for each in found.pop("pale")["violations"]] == ["color-contrast"]
    assert sorted(found) == sorted(names)
    assert {each["dark"] for each in found.values()} == {dark}
    assert {name: each["violations"] for name, each in found.items() if each["violations"]} == {}
    assert min(each["passes"] for each in found.values()) > 15
