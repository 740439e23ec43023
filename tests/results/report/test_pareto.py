import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.report import pareto
from results.report.family_sections import FAMILIES
from results.report.page_template import FOLDER, script_json
from results.rows.summary import Replicate, Score, replicates_of
from results.store.schema import SCHEMAS
from results.store.tables import Store, committed, open_store, read
from tests.results.report.browser import EVIL, FLAGS, browser
from tests.results.synthetic import manifest, write

SHELL = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><style>body { margin: 0; '
    "padding: 0 20px; }</style></head><body>{}{}</body></html>"
)
PRESS = """<script type="module">
const plot = document.getElementById("pareto-plot"), live = document.getElementById("pareto-live"), told = [];
const note = (name, value) => { told.push([name, value]); };
const press = (key) => {
  plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  return live.textContent;
};
plot.focus();
note("focused", document.activeElement === plot);
note("home", press("Home")); note("end", press("End")); note("left", press("ArrowLeft")); note("up", press("ArrowUp"));
const area = plot.getBoundingClientRect(), ring = document.getElementById("pareto-ring");
press("Home");
const at = [area.left + parseFloat(ring.style.left), area.top + parseFloat(ring.style.top)];
press("End");
plot.dispatchEvent(new PointerEvent("pointermove", { clientX: at[0], clientY: at[1], bubbles: true }));
note("hover", live.textContent);
note("enter", press("Enter"));
note("opened", document.getElementById("pareto-curve").innerText);
note("canvas", document.querySelectorAll("#pareto-curve canvas").length);
note("closed", (press("Escape"), document.getElementById("pareto-curve").hidden));
note("wide", document.documentElement.scrollWidth - document.documentElement.clientWidth);
note("requests", performance.getEntriesByType("resource").length);
const answer = document.createElement("pre");
answer.id = "told"; answer.textContent = btoa(encodeURIComponent(JSON.stringify(told)));
document.body.replaceChildren(answer);
</script>"""


def parts(store: Store, plan: dict[str, Any]) -> tuple[list[Replicate], pa.Table]:
    evaluations = read(store, "evaluations", filter=pc.field("metric") == "read")
    return replicates_of(plan, committed(store), evaluations, read(store, "failures")), evaluations


def block(section: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="pareto-data">(.*?)</script>', section, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[Replicate], pa.Table, str]:
    store, plan = open_store(str(tmp_path_factory.mktemp("store")), "synthetic"), manifest(12, names=("transformer", EVIL))
    write(store, plan)
    known, evaluations = parts(store, plan)
    found = pareto.section(plan, known, evaluations, FAMILIES)
    assert found is not None
    return plan, known, evaluations, str(found)


def test_the_block_holds_every_replicate_and_diverged_is_no_number(study: Any) -> None:
    _, known, _, text = study
    data = block(text)
    assert (data["sparse"], data["dense"], data["online"]) == ("sparse", "dense", "sparse_online")
    assert [each["name"] for each in data["conditions"]] == ["transformer", EVIL]
    points = [point for each in data["conditions"] for point in zip(each["keys"], each["init"], each["sparse"], strict=True)]
    assert [key for key, *_ in points] == [replicate.key[:10] for replicate in known]
    assert [seed for _, seed, _ in points] == [replicate.init_seed for replicate in known]
    for replicate, (_, _, rate) in zip(known, points, strict=True):
        error = replicate.error("sparse")
        assert error is not None
        if np.isinf(error):
            assert rate is None
        else:
            assert rate == pytest.approx(error, rel=1e-3)
            assert (rate == 0) == (error == 0)
    assert sum(rate is None for *_, rate in points) == 2  # the last of each condition that is no LSTM


def test_an_embedded_curve_is_the_rows_by_step(study: Any) -> None:
    _, known, evaluations, text = study
    data = block(text)
    assert sorted(map(int, data["curves"])) == list(range(24))  # fewer than 300: all of them
    which, errors = data["curves"]["0"]
    mine = (pc.field("key") == known[0].key) & (pc.field("set") == "sparse_online")
    rows = evaluations.filter(mine).sort_by("step").to_pylist()
    assert data["steps"][which] == [row["step"] for row in rows]
    assert errors == [pytest.approx(row["errors"] / row["count"], rel=1e-3) for row in rows]
    lost = data["curves"]["11"][1]
    assert lost[-1] is None
    assert lost[0] is not None


def test_what_rows_hold_cannot_leave_the_script(study: Any) -> None:
    text = study[3]
    assert text.count("</script>") == 2
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert "\u2028" not in text
    assert json.loads(script_json({"a": EVIL})) == {"a": EVIL}
    assert not set("<>&\u2028\u2029") & set(script_json({"a": "<!--&>\u2028\u2029"}))


def test_the_front_is_what_no_replicate_dominates() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, (2, 200)) / 30.0
    y = np.where(x + y < 0.4, 0.5, y)  # keeps the corner free
    x[:5], y[3:8] = np.inf, np.inf
    finite = {(a, b) for a, b in zip(x, y, strict=True) if np.isfinite(a) and np.isfinite(b)}
    best = sorted((a, b) for a, b in finite if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in finite))
    assert len(best) > 2
    assert [tuple(row) for row in pareto.front(x, y)] == best
    assert len(pareto.front(np.array([np.inf]), np.array([np.inf]))) == 0


def test_of_many_curves_the_worst_the_best_and_a_sample_of_the_others_are_chosen() -> None:
    sparse = np.random.default_rng(1).permutation(1000).astype(np.float64)
    ranks = np.sort(sparse[pareto.chosen_curves(sparse, np.zeros(1000), 300)])
    assert len(set(ranks)) == 300
    assert list(ranks[:100]) == list(range(100))
    assert list(ranks[-100:]) == list(range(900, 1000))
    assert np.ptp(np.diff(ranks[100:200])) <= 1


def test_ten_thousand_replicates_stay_small() -> None:
    plan = manifest(5313)
    rng = np.random.default_rng(0)
    known = []
    for key, condition, init_seed, data_seed in plan["replicates"]:
        rates = 10 ** rng.normal(-3, 1, 2)
        scores = {n: Score(1, 1000, 100, float(r), 0.0, 1.0) for n, r in zip(("sparse", "dense"), rates, strict=True)}
        name = plan["conditions"][condition]["name"]
        known.append(Replicate(name, 0, key, init_seed, data_seed, "finished", 0.1, None, scores))
    text = pareto.section(plan, known, SCHEMAS["evaluations"].empty_table(), FAMILIES)
    assert text is not None
    assert len(text.encode()) < 900_000
    assert len(known) > 10_625


def test_a_study_without_a_sparse_or_a_dense_set_has_no_section(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "some"), manifest(2)
    write(store, plan)
    known, evaluations = parts(store, plan)
    assert pareto.section(plan, known, evaluations, FAMILIES) is not None
    del plan["sets"]["dense"]
    assert pareto.section(plan, known, evaluations, FAMILIES) is None
    nothing = [SCHEMAS[table].empty_table() for table in ("replicates", "evaluations", "failures")]
    assert pareto.section(manifest(2), replicates_of(manifest(2), *nothing), evaluations, FAMILIES) is None


def test_hover_and_keys_tell_and_open_a_replicate_at_the_width_of_a_phone(study: Any, tmp_path: Path) -> None:
    tools = (FOLDER / "scripts" / "page_tools.js").read_text(encoding="utf-8")
    page = SHELL.replace("{}{}", f"{study[3]}<script>{tools}</script>{PRESS}")
    title = "document.title = frames[0].document.getElementById('told').textContent"
    (tmp_path / "page.html").write_text(
        f'<body style="margin:0"><iframe style="width:390px;height:900px;border:0" srcdoc="{_attribute(page)}"></iframe>'
        f"<script>addEventListener('load', () => {{ {title}; }})</script>",
        encoding="utf-8",
    )
    command = [browser(), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", (tmp_path / "page.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    shutil.rmtree(tmp_path / "profile", ignore_errors=True)
    assert "CONSOLE" not in done.stderr
    told = _decoded(done.stdout)
    known = study[1]
    ranked = sorted(known, key=lambda r: (r.error("sparse"), r.error("dense")))
    assert told["focused"] is True
    assert f"key {ranked[0].key[:10]}" in told["home"]
    assert "sparse 0, dense" in told["home"]
    assert "sparse diverged, dense diverged" in told["end"]
    assert told["left"] != told["end"]
    assert told["hover"] == told["home"]
    assert "Its curve is drawn below." in told["enter"]
    assert f"manyseeds report STORE synthetic --key {ranked[0].key[:10]}" in told["opened"]
    assert told["canvas"] == 1
    assert told["closed"] is True
    assert told["wide"] <= 0
    assert told["requests"] == 0


def _attribute(page: str) -> str:
    return page.replace("&", "&amp;").replace('"', "&quot;")


def _decoded(document: str) -> dict[str, Any]:
    found = re.search(r"<title>([A-Za-z0-9+/=]+)</title>", document)
    assert found, document[:2000]
    return dict(json.loads(unquote(base64.b64decode(found[1]).decode())))
