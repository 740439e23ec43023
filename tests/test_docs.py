"""The pages that tell how to add something are true: their code is run as printed."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

import models
import tasks
from harness.run import run
from harness.study import from_tree
from harness.train import Training
from results.store import committed, open_store
from tests.harness.packs import condition, pack
from tests.harness.tiny import STUDY

ROOT = Path(__file__).parents[1]
ANYWHERE = os.environ | {"PYTHONPATH": str(ROOT)}  # `python -m launch` from any folder


def _blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def _import(text, name, folder, monkeypatch):
    """The first block of a page as a module of its own."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("page", "name"), [("adding-a-task", "parity"), ("adding-a-model", "average")])
def test_what_a_page_adds_can_be_trained(page, name, tmp_path, monkeypatch):
    text, line = _blocks(f"docs/{page}.md", "python")
    registry = tasks.REGISTRY if "task" in page else models.REGISTRY
    monkeypatch.setitem(registry, name, None)  # removed again afterwards
    exec(line, vars(_import(text, name, tmp_path, monkeypatch)) | {"REGISTRY": registry})
    tree = yaml.safe_load(STUDY) | {"conditions": {}, "store": str(tmp_path / "runs")}
    if "task" in page:
        tree |= {"task": {"name": "parity", "length": 16}, "evaluate": {"sets": {"far": {"p_one": 0.1, "sequences": 20}}}}
    else:
        tree |= {"model": {"name": "average", "width": 8}}
    assert run(from_tree(tree, ["replicates=2"]), say=lambda text: None) == 0
    assert committed(open_store(tmp_path / "runs", "tiny")).num_rows == 2


def test_the_added_model_is_bitwise_the_same_alone_and_in_a_pack(tmp_path, monkeypatch):
    text, line = _blocks("docs/adding-a-model.md", "python")
    monkeypatch.setitem(models.REGISTRY, "average", None)
    exec(line, vars(_import(text, "average", tmp_path, monkeypatch)) | {"REGISTRY": models.REGISTRY})
    one = condition("average", model_fields={"width": 8})
    alone, packed = (Training(pack(one, seeds), torch.device("cpu")) for seeds in ([(3, 3)], [(1, 1), (3, 3)]))
    for _ in range(20):
        alone.advance()
        packed.advance()
        assert torch.equal(alone.recent[:, 0], packed.recent[:, 1])


@pytest.mark.parametrize("executor", [pytest.param("ray", marks=pytest.mark.slow), "local"])
def test_a_module_of_ones_own_is_trained_as_the_page_says(executor, tmp_path):
    (module,), (study,), (command,) = (_blocks("docs/bring-your-own.md", language) for language in ("python", "yaml", "bash"))
    (tmp_path / "my_models.py").write_text(module)
    (tmp_path / "my_study.yaml").write_text(study)
    words = [sys.executable, "-m", "launch", *command.split()[1:], f"executor={executor}"]
    done = subprocess.run(words, cwd=tmp_path, env=ANYWHERE, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = committed(open_store(tmp_path / "runs", "my-study"))
    assert rows["status"].to_pylist() == ["finished"] * 4
    assert json.loads(rows["config"][0].as_py())["model"] == {"name": "my_models:ConvMixer", "width": 16, "reach": 16}


def test_the_study_file_of_the_page_is_valid():
    from omegaconf import OmegaConf

    (text,) = _blocks("docs/studies.md", "yaml")
    tree = OmegaConf.to_container(OmegaConf.create(text))
    names = [each.name for each in from_tree(tree).conditions]
    assert len(names) == len(set(names)) > 10
    assert [each.name for each in from_tree(tree, ["scale=laptop"]).conditions] == [
        "lstm, train.lr=0.0003",
        "lstm, train.lr=0.001",
    ]


def test_the_readme_has_the_one_line_readers_of_the_page():
    readme = [block.strip() for block in _blocks("README.md", "python")]
    page = [re.sub(r"\n\n+", "\n", block.strip()) for block in _blocks("docs/reading-results.md", "python")]
    assert readme
    assert all(block in page for block in readme)


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

    from harness.stages import parent_of, spans_of, steps_taken

    _, text = _blocks("docs/stages.md", "yaml")
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
    for words in re.findall(r"^\| .* \| `({(?:checkpoints|shots).*?})`", (ROOT / "docs/stages.md").read_text(), re.MULTILINE):
        stage = f"stages=[{{train: {{steps: 19950000}}, labels: teacher, teacher: {words}}}]"
        assert spans_of(from_tree(yaml.safe_load(text), ["conditions=null", stage]).conditions[1])[-1].at == 20_000_000


def test_the_code_and_the_numbers_of_the_distillation_page_are_true(capsys):
    from omegaconf import OmegaConf

    from tasks.grammars import NAMES, grammar, quantile

    page = "docs/progressive-distillation.md"
    names: dict = {}
    for block in _blocks(page, "python"):
        exec(block, names)
    assert {13, 14, 15} == set(names["labels"].tolist())
    assert torch.equal(names["parts"].symbol, names["labels"].long())
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 6
    assert printed[-2:] == ["Transition(begin=9700000, middle=10200000, end=10800000)", "None"]
    studies = [from_tree(OmegaConf.to_container(OmegaConf.create(text))) for text in _blocks(page, "yaml")]
    assert [study.name for study in studies] == ["parity-ce", "parity-transformer", "cfg3b-bert"]
    text = (ROOT / page).read_text()
    for name in NAMES:
        law = grammar(name).lengths()
        exact = " | ".join(str(quantile(law, share)) for share in (0.25, 0.5, 0.75, 0.95))
        assert f"| `{name}` | {exact} |" in text
