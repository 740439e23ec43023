"""The pages that tell how to add something are true: their code is run as printed."""

import csv
import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from torch.nn.functional import cross_entropy

import models
from harness.exchange.replicate import find
from harness.exchange.weights import single
from harness.probes.strings import strings
from harness.run import run
from harness.study.config import condition_of
from harness.study.load import from_tree
from harness.training.pack_state import Training
from models.transformer import positions
from results.errors import StudyError
from results.store.tables import commit, committed, open_store, read
from tests.environments import PACKAGES
from tests.harness.killed import without_report
from tests.harness.packs import condition, pack
from tests.harness.tiny import STUDY
from tests.page_code import ANYWHERE, ROOT, UNTIMED, blocks
from tests.results.claims import claim_rows
from tests.results.store.sample_rows import pack_tables


def _import(text, name, folder, monkeypatch):
    """The first block of a page as a module of its own."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def _refuse_an_empty_report(study, metric, replicates):
    """The report of a study's folder: all have finished, each set's worst rate is that of its rows, and a figure shows them."""
    page = (study / "report" / "index.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert f"{replicates} planned, {replicates} finished, 0 diverged, 0 failed, 0 missing" in text
    rows = pq.read_table(study / "evaluations").to_pylist()
    last = max(row["step"] for row in rows)
    rates: dict = {}
    for row in rows:
        if (row["metric"], row["weights"], row["step"]) == (metric, "raw", last):
            rates.setdefault(row["set"], {})[row["key"]] = row["errors"] / row["count"]
    assert rates
    with (study / "report" / "summary.csv").open() as file:
        summary = {row["set"]: row for row in csv.DictReader(file)}
    for name, by_key in rates.items():
        assert len(by_key) == replicates
        assert float(summary[name]["error_max"]) == pytest.approx(max(by_key.values()))
        assert float(summary[name]["error_min"]) == pytest.approx(min(by_key.values()))
        shown = re.search(rf'<th scope="row">{name}\b.*?</tr>', page, re.DOTALL)[0]
        assert f">{max(by_key.values()):.3g}<" in shown
    assert (study / "report" / "figures" / "errors.svg").stat().st_size > 1000
    assert "Error by condition" in text
    assert '<div class="plot"><script type="application/json">' in page
    return text


def _run_a_page(page, files, folder, *more):
    """Write the blocks of a page under these names and run its command there."""
    for language, name in files.items():
        (folder / name).write_text(blocks(page, language)[0])
    (command,) = blocks(page, "bash")
    words = [sys.executable, "-c", UNTIMED, *command.split()[1:], *more]
    done = subprocess.run(words, cwd=folder, env=ANYWHERE, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_a_task_of_ones_own_is_trained_and_reported_as_the_page_says(tmp_path):
    _run_a_page(
        "docs/guides/own-task.md", {"python": "my_tasks.py", "yaml": "my_parity.yaml"}, tmp_path, "executor=local", "wandb=off"
    )
    text = _refuse_an_empty_report(tmp_path / "runs" / "my-parity", "position", 2)
    assert "An error is a position whose more probable class is not the parity of the bits up to it." in text
    (rows,) = {row["config"] for row in committed(open_store(tmp_path / "runs", "my-parity")).to_pylist()}
    assert json.loads(rows)["task"] == {"name": "my_tasks:Parity", "length": 16}


def _add_the_model(folder, monkeypatch):
    """The model of the page under the name that it says to add to GENERAL, until the test ends."""
    page = "docs/guides/adding-a-model.md"
    (text,) = blocks(page, "python")
    name, kind = re.search(r'add `"(\w+)": (\w+)` to `GENERAL` of `models/__init__.py`', (ROOT / page).read_text()).groups()
    assert name not in models.GENERAL
    assert models.GENERAL.items() <= models.REGISTRY.items()
    monkeypatch.setitem(models.REGISTRY, name, getattr(_import(text, name, folder, monkeypatch), kind))


def test_the_model_of_the_page_is_trained_and_reported(tmp_path, monkeypatch):
    _add_the_model(tmp_path, monkeypatch)
    tree = yaml.safe_load(STUDY) | {"conditions": {}, "store": str(tmp_path / "runs"), "model": {"name": "average", "width": 8}}
    assert run(from_tree(tree, ["replicates=2"]), say=lambda text: None) == 0
    _refuse_an_empty_report(tmp_path / "runs" / "tiny", "read", 2)
    with pytest.raises(StudyError, match=r"model\.width = 0 must be at least 1"):
        from_tree(tree, ["model.width=0"])


def _losses(one, seeds, steps=20):
    """Losses of a training by step and replicate, [steps, R]."""
    training, losses = Training(pack(one, seeds), torch.device("cpu")), []
    for _ in range(steps):
        training.advance()
        losses.append(training.recent[training.step % len(training.recent)].clone())
    return torch.stack(losses)


def test_the_added_model_is_bitwise_the_same_alone_and_in_a_pack(tmp_path, monkeypatch):
    _add_the_model(tmp_path, monkeypatch)
    one = condition("average", model_fields={"width": 8})
    assert torch.equal(_losses(one, [(3, 3)])[:, 0], _losses(one, [(1, 1), (3, 3)])[:, 1])


def test_the_position_encoding_of_the_page_is_trained_and_is_bitwise_the_same_in_a_pack(tmp_path, monkeypatch):
    function, line = blocks("docs/guides/adding-a-position.md", "python")
    monkeypatch.setitem(positions.ENCODINGS, "logarithmic", None)  # removed again afterwards
    exec(function + line, dict(vars(positions)))
    fields = {"layers": 2, "width": 16, "heads": 2}
    one, without = (condition(model_fields=fields | {"positions": name}) for name in ("logarithmic", "none"))
    alone = _losses(one, [(3, 3)])[:, 0]
    assert torch.equal(alone, _losses(one, [(1, 1), (3, 3)])[:, 1])
    assert not torch.equal(alone, _losses(without, [(3, 3)])[:, 0])
    (study,) = blocks("docs/guides/adding-a-position.md", "yaml")
    tree = yaml.safe_load(STUDY) | {"conditions": {}, "store": str(tmp_path / "runs")} | yaml.safe_load(study)
    assert run(from_tree(tree, ["replicates=2"]), say=lambda text: None) == 0
    _refuse_an_empty_report(tmp_path / "runs" / "tiny", "read", 2)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["ray", "local"])
def test_a_module_of_ones_own_is_trained_as_the_page_says(executor, tmp_path):
    files = {"python": "my_models.py", "yaml": "my_study.yaml"}
    for words in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    _run_a_page("docs/guides/own-model.md", files, tmp_path, f"executor={executor}", "wandb=off", "train.steps=20")
    _refuse_an_empty_report(tmp_path / "runs" / "my-study", "read", 4)
    rows = committed(open_store(tmp_path / "runs", "my-study"))
    assert rows["status"].to_pylist() == ["finished"] * 4
    assert json.loads(rows["config"][0].as_py())["model"] == {"name": "my_models:ConvMixer", "width": 16, "reach": 16}
    state = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert set(rows["own_git"].to_pylist()) == {state.stdout.strip()}  # of the person's checkout, not of this one
    assert set(rows["own_dirty"].to_pylist()) == {False}


def test_the_study_file_of_the_page_is_valid():
    from omegaconf import OmegaConf

    (text,) = blocks("docs/reference/study-file.md", "yaml")
    tree = OmegaConf.to_container(OmegaConf.create(text))
    names = [each.name for each in from_tree(tree).conditions]
    assert len(names) == len(set(names)) > 10
    assert [each.name for each in from_tree(tree, ["scale=laptop"]).conditions] == [
        "lstm, train.lr=0.0003",
        "lstm, train.lr=0.001",
    ]


def _anchors(text):
    """Of the headings, by GitHub's rule."""
    found, seen, fenced = set(), {}, False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        heading = re.match(r"#{1,6} +(.*?) *$", line)
        if heading and not fenced:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            seen[anchor] = seen.get(anchor, -1) + 1
            found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
    return found


def test_every_link_of_a_page_leads_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    for page in pages:
        for target, _, anchor in re.findall(r"\]\(([^)#\s]*)(#([^)\s]+))?\)", page.read_text()):
            if "://" in target:
                continue
            leads = page.parent / target if target else page
            assert leads.exists(), f"{page.name}: {target}"
            assert not anchor or leads.suffix != ".md" or anchor in _anchors(leads.read_text()), (
                f"{page.name}: {target}#{anchor}"
            )


def test_the_students_of_the_page_on_stages_are_taught_as_it_says():
    from omegaconf import OmegaConf

    from harness.study.stages import parent_of, spans_of, steps_taken

    _, text = blocks("docs/reference/stages.md", "yaml")
    loaded = from_tree(OmegaConf.to_container(OmegaConf.create(text)))
    students = {each.name: each for each in loaded.conditions if each.stage}
    assert len(loaded.conditions) == 5  # one teacher
    assert {parent_of(each).config()["model"]["width"] for each in students.values()} == {50_000}
    begins = {
        name: [(each.begin, getattr(each.at, "plus", each.at)) for each in spans_of(one)] for name, one in students.items()
    }
    last = (1_000_001, 20_000_000)
    assert begins == {
        "begin": [(1, -500_000), last],
        "middle": [(1, 0), last],
        "end": [(1, 600_000), last],
        "one_shot": [(1, 20_000_000)],
    }
    assert steps_taken(students["middle"]) == set(range(100_000, 20_000_001, 100_000))
    page = (ROOT / "docs/reference/stages.md").read_text()
    for words in re.findall(r"^\| .* \| `({(?:checkpoints|shots).*?})`", page, re.MULTILINE):
        stage = f"stages=[{{train: {{steps: 19950000}}, labels: teacher, teacher: {words}}}]"
        assert spans_of(from_tree(yaml.safe_load(text), ["conditions=null", stage]).conditions[1])[-1].at == 20_000_000


def test_the_code_and_the_numbers_of_the_distillation_page_are_true(capsys):
    from omegaconf import OmegaConf

    from tasks.distillation.grammars import NAMES, grammar
    from tasks.quantile import quantile

    page = "docs/explanation/progressive-distillation.md"
    names: dict = {}
    for block in blocks(page, "python"):
        exec(block, names)
    assert {13, 14, 15} == set(names["labels"].tolist())
    assert torch.equal(names["parts"].symbol, names["labels"].long())
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 6
    assert printed[-2:] == ["Transition(begin=9700000, middle=10200000, end=10800000)", "None"]
    studies = [from_tree(OmegaConf.to_container(OmegaConf.create(text))) for text in blocks(page, "yaml")]
    assert [study.name for study in studies] == ["parity-ce", "parity-transformer", "cfg3b-bert"]
    text = (ROOT / page).read_text()
    for name in NAMES:
        law = grammar(name).lengths()
        exact = " | ".join(str(quantile(law, share)) for share in (0.25, 0.5, 0.75, 0.95))
        assert f"| `{name}` | {exact} |" in text


@pytest.fixture
def project(tmp_path):
    """A copy of the packages, to be changed as a page says."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def _launch(project, *words):
    """What a command of the copy prints."""
    done = subprocess.run([sys.executable, "-m", "launch", *words], cwd=project, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _add_file(project, page):
    """Write the first block of a page into the file that it names first."""
    name = re.search(r"`(\w+(?:/\w+)+\.py)`", (ROOT / page).read_text())[1]
    assert not (project / name).exists()
    (project / name).write_text(blocks(page, "python")[0])


def _change(file, pattern, text):
    """Replace what a pattern finds once in a file."""
    changed, count = re.subn(pattern, lambda found: text, file.read_text(), flags=re.MULTILINE)
    assert count == 1
    file.write_text(changed)


def test_the_command_of_the_page_is_listed_and_prints(project):
    function, line = blocks("docs/guides/adding-a-command.md", "python")
    with (project / "launch/cli/read.py").open("a") as file:
        file.write(f"\n\n{function}")
    registry = project / "launch/cli/__init__.py"
    assert line.replace(", read.slowest", "") in registry.read_text()  # with all its other commands
    _change(registry, r'^    "Read": .*\n', line)
    rows = pack_tables("fd-1", ["a" * 32, "b" * 32])
    seconds = rows["replicates"].schema.get_field_index("train_s")
    rows["replicates"] = rows["replicates"].set_column(seconds, "train_s", pa.array([1.25, 60.5]))
    commit(open_store(str(project / "runs"), "quick"), "fd-1", rows)
    listed = _launch(project, "--help").split("\nRead:\n")[1].split("\nExplain:\n")[0]
    assert "slowest List the replicates of a study by training time" in " ".join(listed.split())
    assert _launch(project, "slowest", "runs", "quick").splitlines() == ["bbbbbbbb  60.5 s  here", "aaaaaaaa  1.2 s  here"]


UNREPORTED = f"import harness.run; harness.run._report = lambda store: 'none'\n{UNTIMED}"


def test_the_task_of_the_page_is_trained_and_scored(project):
    page = "docs/guides/adding-a-task.md"
    _add_file(project, page)
    registry = project / "tasks/automata/__init__.py"
    entry = re.search(r'`("prefix_parity": PrefixParity)`', (ROOT / page).read_text())[1]
    _change(registry, r"}$", f", {entry}}}")
    registry.write_text(f"from tasks.automata.prefix_parity import PrefixParity\n{registry.read_text()}")
    tree = yaml.safe_load(blocks("docs/guides/own-task.md", "yaml")[0]) | {"task": {"name": "prefix_parity", "length": 16}}
    tree["evaluate"]["sets"] = {"same": {"sequences": 200}, "longer": {"length": 40, "sequences": 100}}
    (project / "prefix.yaml").write_text(yaml.safe_dump(tree))
    command = [sys.executable, "-c", UNREPORTED, "run", "prefix.yaml", "executor=local", "wandb=off", "train.steps=20"]
    subprocess.run(command, cwd=project, capture_output=True, timeout=120, check=True)
    store = open_store(str(project / "runs"), "my-parity")
    assert {json.loads(row["config"])["task"]["name"] for row in committed(store).to_pylist()} == {"prefix_parity"}
    rows = [(row["set"], row["metric"], row["count"]) for row in read(store, "evaluations").to_pylist()]
    assert sorted(rows) == sorted([("same", "position", 200 * 16), ("longer", "position", 100 * 40)] * 2)


def test_the_rows_of_the_probe_of_the_page_are_in_the_store(project, monkeypatch):
    without_report(monkeypatch)
    tree = yaml.safe_load(STUDY) | {"conditions": {}, "store": str(project / "runs"), "keep": "all"}
    assert run(from_tree(tree, ["replicates=2", "train.steps=2"]), say=lambda text: None) == 0
    _add_file(project, "docs/guides/adding-a-probe.md")
    _, line = blocks("docs/guides/adding-a-probe.md", "python")
    _change(project / "harness/probes/flipflop/__init__.py", r"^}$", f"{line}}}")
    _launch(project, "probe", "runs", "--probe", "confidence", "--strings", "30")
    store = open_store(str(project / "runs"), "tiny")
    found = {row["key"]: row["value"] for row in read(store, "probes").to_pylist() if row["probe"] == "confidence"}
    replicates = committed(store).to_pylist()
    assert len(found) == len(replicates) == 2
    for row in replicates:
        one, weights = condition_of(row), find(store, row["key"]).tensors
        model = single(one.model, one.task.vocabulary, one.task.length, weights, row["init_seed"], outputs=one.task.outputs)
        (batch,) = strings(one.task, 30, 30)
        losses = cross_entropy(model(batch.inputs).flatten(0, 2), batch.targets.flatten(), reduction="none")
        assert found[row["key"]] == pytest.approx((-losses[batch.weights.flatten() > 0]).exp().mean().item())


def test_a_page_on_adding_something_is_read_in_a_minute():
    for subject in SUBJECTS:
        assert len((ROOT / f"docs/guides/adding-a-{subject}.md").read_text().splitlines()) <= 30, subject


SUBJECTS = ("position", "task", "claim", "section", "probe", "command")


def test_the_claim_and_the_section_of_the_pages_stand_in_the_report(project):
    for page in ("docs/guides/adding-a-claim.md", "docs/guides/adding-a-section.md"):
        _add_file(project, page)
    claims, sections = project / "results/claims/flipflop/__init__.py", project / "results/report/flipflop/__init__.py"
    line = blocks("docs/guides/adding-a-claim.md", "python")[1]
    assert line.replace(", X1", "") in claims.read_text()  # with all its other claims
    _change(claims, r"^CLAIMS = .*\n", f"from results.claims.flipflop.clipping import X1\n\n{line}")
    line = blocks("docs/guides/adding-a-section.md", "python")[1]
    _change(
        sections,
        r"^FAMILY = ReportFamily\(\n",
        f"from results.report.flipflop import final_loss\n\nFAMILY = ReportFamily(\n{line}",
    )
    conditions = [claim_rows.condition(15, 1e-2, 1e-3), claim_rows.condition(15, 1e-3, 1e-3, train__clip=1.0)]
    store = open_store(str(project / "runs"), "claims")
    claim_rows.write(store, {"X1": {"value": 2}}, conditions)
    assert re.search(r"X1 .*reproduced", _launch(project, "claims", "runs"))
    _launch(project, "report", "runs", "claims")
    page = (project / "runs/claims/report/index.html").read_text()
    assert re.search(r"X1</b> <span>reproduced</span>.*Clipping raises no error", page, re.DOTALL)
    assert "Training loss at the end" in page
    assert (project / "runs/claims/report/figures/final-loss.svg").stat().st_size > 1000
