"""A user's own task: what the checks let through, and the sentence that each mistake gets."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.executing import cluster, ray_worker
from harness.machine import device
from harness.planning.throughput import measure
from harness.study.config import Condition, build, condition_of, from_dict, name_of, own_digest, to_dict
from harness.study.custom_tasks import path_of
from harness.study.identity import canonical, describe
from harness.study.running_code import refuse_other_code
from harness.study.slot_kinds import Kind
from harness.study.training_options import Train
from models.custom import custom
from models.custom.custom import allow
from results.errors import StudyError
from tests.harness.packs import pack

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "own-task.md"
RIGHT = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]
BITS = "return Batch(bits, bits.cumsum(-1) % 2, torch.ones(bits.shape, device=bits.device), {})"
DRAWN = "(draw.uniform((batch, self.length)) < self.p_one).long()"

MISTAKES = {
    "no_task": ("class Parity(Task)", "class Parity", "is no subclass of tasks.task.Task"),
    "thawed": ("@dataclass(frozen=True)", "@dataclass", "frozen"),
    "no_wrong": ("def wrong", "def wrongly", "wrong"),
    "short": ("bits.cumsum(-1) % 2", "bits[..., 1:]", r"targets of sample are torch.int64 \[3, 3, 7\]"),
    "float_inputs": ("Batch(bits,", "Batch(bits.float(),", "inputs of sample are torch.float32"),
    "double_weights": (
        "torch.ones(bits.shape,",
        "torch.ones(bits.shape, dtype=torch.float64,",
        "weights of sample are torch.float64",
    ),
    "weightless": ("torch.ones", "torch.zeros", "all 0"),
    "classes": ("bits.cumsum(-1) % 2", "bits.cumsum(-1)", "outputs = 2"),
    "global_noise": (DRAWN, "torch.randint(0, 2, (len(draw.seeds), batch, self.length))", "take all randomness from draw"),
    "a_site_twice": (
        DRAWN,
        f"{DRAWN} * draw.integers(2, (batch, 1))",
        "sample draws twice with site=0, which gives the same numbers",
    ),
    "across_the_pack": (DRAWN, DRAWN + ".flip(0)", "others in a pack than alone"),
    "of_the_batch": (DRAWN, DRAWN + " * (batch % 2)", "strings of a larger batch"),
    "undeclared": ('{"position":', '{"place":', r"return these"),
    "unshaped": ("logits.argmax(-1) != targets}", "(logits.argmax(-1) != targets).any(-1)}", "one a position"),
    "one_class": (
        "    metrics:",
        "    classifies: ClassVar[bool] = True\n    metrics:",
        "1 at the last position and 0 elsewhere",
    ),
    "one_class_where_laws_are_declared": (
        "    metrics:",
        "    soft: ClassVar[bool] = True\n    metrics:",
        r"targets of sample are torch.int64 \[3, 3, 8\], and must be torch.float32 \[3, 3, 8, 2\]",
    ),
    "rare_classes": ("bits.cumsum(-1) % 2", "bits.cumsum(-1) % 2 + 7 * (batch > 8)", "targets of sample are from 7 to 8"),
    "raises_when_made": ("if self.length", "if self.size", r"making it raised AttributeError: .*\(own_\w+.py, line 2\d\)"),
    "a_list": (
        "    p_one: float = 0.5",
        "    p_one: float = 0.5\n    parts: list = __import__('dataclasses').field(default_factory=list)",
        r"its field parts is a list, which no option can be: declare int, .* or tuple\[…\]",
    ),
    "a_tensor": (
        "    p_one: float = 0.5",
        "    p_one: float = 0.5\n    table: torch.Tensor = torch.zeros(2)",
        "its field table is a Tensor, which no option can be",
    ),
    "a_default_of_another_type": (
        "    p_one: float = 0.5",
        "    p_one: float = 0.5\n    bits: int = None",
        "its field bits = None must be a whole number; the default and the declared type",
    ),
    "a_revision_in_words": ("    length:", "    rev = 'two'\n    length:", "rev = 'two' must be a whole number"),
    "a_vector_that_is_no_field": (
        "    metrics:",
        "    vectors: ClassVar[tuple[str, ...]] = ('p_on',)\n    metrics:",
        r"vectors = \('p_on',\) must be a tuple of some of its fields length, p_one",
    ),
    "no_view": ("    metrics:", "    views: ClassVar[bool] = True\n    metrics:", "views is true, so it needs a method view"),
    "a_view_of_tokens_alone": (
        "    metrics:",
        "    views: ClassVar[bool] = True\n    view = lambda self, draw, inputs: inputs\n    metrics:",
        "view returns a Tensor, which must be a tasks.batch.View",
    ),
    "a_view_without_places": (
        "    metrics:",
        "    views: ClassVar[bool] = True\n    def view(self, draw, inputs):\n        import tasks.batch\n"
        "        return tasks.batch.View(inputs, None, inputs.float())\n    metrics:",
        r"the places of view are a NoneType, and must be torch.int64 \[3, 3, 8\]",
    ),
    "nothing_about": ("device=bits.device), {})", "device=bits.device), None)", "the about of sample is a NoneType"),
    "a_name_that_is_no_word": (
        "device=bits.device), {})",
        "device=bits.device), {3: bits})",
        "the about of sample has the name 3",
    ),
    "unanswered": (
        "bits.cumsum(-1) % 2",
        "torch.where(bits == 0, -100, 1)",
        "a target of sample is -100 where its weight is above 0, so it would count as an error: give it weight 0",
    ),
    "the_same_at_every_step": (
        DRAWN,
        "torch.randint(0, 2, (batch, self.length), generator=torch.Generator().manual_seed(0)).repeat(len(draw.seeds), 1, 1)",
        "sample makes the same strings at every step",
    ),
    "a_generator_of_its_own": (
        DRAWN,
        "torch.stack([torch.randint(0, 2, (batch, self.length), generator=torch.Generator().manual_seed(seed * 9 + step))\n"
        "for seed, step in zip(draw.seeds.tolist(), torch.as_tensor(draw.step).expand(len(draw.seeds)).tolist())])",
        "a string is another where those before it are left out",
    ),
    "a_tensor_again": (
        f"bits = {DRAWN}",
        "shape = (len(draw.seeds), batch, self.length)\n"
        "        bits = self.__class__.__dict__['__annotations__'].setdefault(str(shape), torch.zeros(shape).long())\n"
        f"        bits.copy_({DRAWN})",
        r"sample changes strings that it has returned: return new tensors, such as x.clone\(\)",
    ),
    "ragged": ("self.length)) <", "self.length - 1)) <", "8 tokens; pad shorter strings, and let padding weigh 0"),
    "one_answer": (
        "bits.cumsum(-1) % 2",
        "bits.sum(-1) % 2",
        "a string's one answer stands at the last position, and others weigh 0",
    ),
    "too_many_classes": (
        "vocabulary: ClassVar[int] = 2",
        "vocabulary: ClassVar[int] = 10**12",
        "is too large: at most 1,000,000",
    ),
    "no_length": ("    length: int = 32", "    size: int = 8", "lacks length: add it to the class, such as length: int = 32"),
    "no_metrics": (
        '    metrics: ClassVar[tuple[str, ...]] = ("position",)\n',
        "",
        "lacks metrics: add it to the class, such as",
    ),
    "exits": (BITS, "raise SystemExit(3)", r"sample called sys.exit\(3\): raise a ValueError that says what is wrong"),
    "exits_when_made": ("if self.length", "raise SystemExit(3)\n        if self.length", r"making it called sys.exit\(3\)"),
    "compares_a_step": (DRAWN, f"{DRAWN} * (1 if draw.step > 3 else 0)", "Boolean value of Tensor with more than one value"),
    "inverted": ("!= targets}", "== targets}", "wrong counts every right answer as an error of position: return True where"),
    "labels_by_the_place_in_the_batch": (
        "bits.cumsum(-1) % 2",
        "(torch.arange(batch) < batch // 2).long()[:, None].expand(bits.shape)",
        "strings of a larger batch are others",
    ),
    "raises": (BITS, "raise KeyError('no bits')", r"sample raised KeyError: 'no bits' \(own_raises.py, line 2\d\)"),
}


def task(tmp_path, monkeypatch, name, text, **fields):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    allow(name)
    return build("task", {"name": f"{name}:Parity", "length": 8, **fields})


def test_a_task_of_ones_own_is_called_by_its_path_and_its_defaults_are_not_hashed(tmp_path, monkeypatch):
    own = task(tmp_path, monkeypatch, "own_right", RIGHT, p_one=0.5)
    assert name_of(own) == path_of(type(own)) == "own_right:Parity"
    assert describe(own, name_of(own)) == {"name": "own_right:Parity", "length": 8}
    assert build("task", describe(own, name_of(own))) == own


@pytest.mark.parametrize(("scale", "said"), [(1, ""), (2, "must be laws")])
@pytest.mark.parametrize("positions", ["bits", "bits[..., -1:]"])
def test_labels_of_ones_own_may_be_laws(scale, said, positions, tmp_path, monkeypatch):
    laws = f"torch.nn.functional.one_hot({positions}, 2) * {scale}.0"
    text = RIGHT.replace(BITS, f"return Batch(bits, {laws}, torch.ones(bits.shape), {{}})")
    text = text.replace("    metrics:", "    soft: ClassVar[bool] = True\n    metrics:").replace(
        "!= targets", "!= targets.argmax(-1)"
    )
    assert text.count("soft") == text.count("one_hot") == text.count("targets.argmax") == 1
    name = f"own_laws_{scale}_{len(positions)}"
    if not said:
        assert task(tmp_path, monkeypatch, name, text).soft
        return
    with pytest.raises(StudyError, match=said):
        task(tmp_path, monkeypatch, name, text)


@pytest.mark.parametrize("other", ["site=1", "site=2"])
def test_draws_with_different_sites_are_no_mistake(other, tmp_path, monkeypatch):
    drawn = f"{DRAWN} * draw.integers(2, (batch, 1), {other})"
    assert task(tmp_path, monkeypatch, f"own_{other[-1]}", RIGHT.replace(DRAWN, drawn)).length == 8


def test_draws_of_other_rows_at_one_site_are_no_mistake(tmp_path, monkeypatch):
    """Also where the rows differ in one of many."""
    rows = "torch.arange(2000).expand(len(draw.seeds), -1)"
    more = f"sum(draw.pick({rows} + (9 if late else 0) * ({rows} == 1000)).integers(2, (2000, 1)).sum() * 0 for late in (0, 1))"
    assert task(tmp_path, monkeypatch, "own_rows", RIGHT.replace(DRAWN, f"{DRAWN} + {more}")).length == 8
    same = more.replace("(9 if late else 0)", "9")
    with pytest.raises(ValueError, match="sample draws twice with site=0"):
        task(tmp_path, monkeypatch, "own_same_rows", RIGHT.replace(DRAWN, f"{DRAWN} + {same}"))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence_before_anything_is_trained(mistake, tmp_path, monkeypatch):
    before, after, said = MISTAKES[mistake]
    assert before in RIGHT
    with pytest.raises(StudyError, match=said) as raised:
        task(tmp_path, monkeypatch, f"own_{mistake}", RIGHT.replace(before, after))
    assert "\n" not in str(raised.value)
    assert f"own_{mistake}:Parity" in str(raised.value)


def test_a_mistake_that_only_a_large_batch_shows_is_one_sentence_when_the_pack_is_measured(tmp_path, monkeypatch):
    own = task(tmp_path, monkeypatch, "own_late", RIGHT.replace(BITS, f"assert batch < 65, 'large'\n        {BITS}"))
    one = Condition("c", own, build("model", {"name": "lstm", "width": 4}), Train(steps=2, batch=65))
    with pytest.raises(StudyError, match=r"'own_late:Parity': it raised AssertionError: large \(own_late.py, line 2\d\)"):
        measure(pack(one, [(1, 1)], sets=()), device.resolve("cpu"))


def test_positions_of_several_tokens_and_weights_that_are_shares_of_a_batch_are_no_mistake(tmp_path, monkeypatch):
    drawn = DRAWN.replace("(batch, self.length)", "(batch, self.length, 2)")
    text = RIGHT.replace(DRAWN, drawn).replace("torch.ones(bits.shape,", "torch.full(bits.shape[:-1], 1 / batch,")
    text = (
        text.replace("cumsum(-1)", "cumsum(-2)")
        .replace("!= targets}", "!= targets).any(-1)}")
        .replace('"position": ', '"position": (')
    )
    text = text.replace("    metrics:", "    slots: ClassVar[int] = 2\n    metrics:", 1)
    assert task(tmp_path, monkeypatch, "own_slots", text).slots == 2


def test_a_rare_answer_beyond_the_outputs_is_one_sentence_in_the_middle_of_a_training(tmp_path, monkeypatch):
    rare = "bits.cumsum(-1) % 2 + 7 * (batch == 65)"
    own = task(tmp_path, monkeypatch, "own_rare", RIGHT.replace("bits.cumsum(-1) % 2", rare))
    one = Condition("c", own, build("model", {"name": "lstm", "width": 4}), Train(steps=2, batch=65))
    with pytest.raises(
        StudyError, match=r"holds an input beyond vocabulary = 2, or a target beyond outputs = 2: Target \d is out"
    ):
        measure(pack(one, [(1, 1)], sets=()), device.resolve("cpu"))


def test_the_logits_of_many_classes_are_checked_in_little_memory(tmp_path, monkeypatch):
    wrong = 'made.append(logits.numel())\n        return {"position"'
    text = RIGHT.replace("vocabulary: ClassVar[int] = 2", "vocabulary: ClassVar[int] = 1_000_000")
    text = text.replace('return {"position"', wrong).replace("from dataclasses", "made = []\nfrom dataclasses", 1)
    task(tmp_path, monkeypatch, "own_large", text)
    assert sys.modules["own_large"].made == [8_000_000]


def test_a_field_of_a_type_that_no_option_has_names_the_types_that_can_be(tmp_path, monkeypatch):
    own = task(tmp_path, monkeypatch, "own_type", RIGHT.replace("p_one: float", "kind: set | None = None\n    p_one: float"))
    with pytest.raises(StudyError, match=r"task.kind = \[1\] must be set, which no option can be: declare int, .* or tuple"):
        build("task", {"name": path_of(type(own)), "kind": [1]})


def test_a_module_that_nobody_allowed_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "own_refused.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StudyError, match="--allow-import own_refused"):
        build("task", {"name": "own_refused:Parity"})
    with pytest.raises(StudyError, match="MODULE:CLASS"):
        build("task", {"name": "own refused:Parity"})


def test_options_are_checked_as_those_of_our_tasks(tmp_path, monkeypatch):
    with pytest.raises(StudyError, match=r"did you mean task\.p_one"):
        task(tmp_path, monkeypatch, "own_options", RIGHT, p_on=0.1)
    with pytest.raises(StudyError, match="a probability"):
        task(tmp_path, monkeypatch, "own_options", RIGHT, p_one=3.0)


def test_a_module_that_is_imported_already_is_not_allowed_by_that(tmp_path, monkeypatch):
    own = task(tmp_path, monkeypatch, "own_imported", RIGHT)
    monkeypatch.setattr(custom, "_allowed", set())
    assert "own_imported" in sys.modules
    with pytest.raises(StudyError, match="--allow-import own_imported"):
        build("task", describe(own, name_of(own)))


def test_workers_are_told_what_their_driver_allows(tmp_path, monkeypatch):
    """Without Ray: what the cluster starts a worker with, and that worker in this process."""
    own = task(tmp_path, monkeypatch, "own_remote", RIGHT)
    started = []

    class Remote:
        def options(self, **resources):
            return self

        def remote(self, *arguments):
            started.append(arguments)

    monkeypatch.setattr(cluster.ray, "remote", lambda kind: Remote())
    cluster.Cluster.worker(SimpleNamespace(_idle=[]), Kind("cpu"))
    monkeypatch.setattr(custom, "_allowed", set())
    monkeypatch.setattr(ray_worker.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(device, "prepare", lambda device, share: None)
    with pytest.raises(StudyError):
        build("task", describe(own, name_of(own)))
    ray_worker.Slot(*started[0])
    assert build("task", describe(own, name_of(own))) == own


def test_the_code_of_a_task_of_ones_own_is_part_of_the_key(tmp_path, monkeypatch):
    """An edit is another condition; a row that was planned with other code is not run again as if it were this one."""

    def planned(text):
        sys.modules.pop("own_coded", None)
        own = task(tmp_path, monkeypatch, "own_coded", text)
        return Condition(
            "c", own, build("model", {"name": "lstm"}), Train(), code=own_digest(own, build("model", {"name": "lstm"}))
        )

    before, after = planned(RIGHT), planned(RIGHT + "\n# edited\n")
    assert before.config() | {"code": after.code} == after.config()
    assert before.code != after.code
    assert from_dict(to_dict(after)).code == after.code
    with pytest.raises(StudyError, match=f"planned with the code {before.code[:12]}, and the code here is {after.code[:12]}: "):
        from_dict(to_dict(before))
    row = {"condition": "c", "config": canonical(before.config()), "own_git": "0123456789abcdef", "own_dirty": True}
    with pytest.raises(StudyError, match=r"was planned with \(git commit 0123456789ab with uncommitted changes\)$"):
        condition_of(row)
    with pytest.raises(StudyError, match=r"that it was planned with$"):
        condition_of(row | {"own_git": None, "own_dirty": None})
    with pytest.raises(StudyError, match="then run manyseeds retry"):
        refuse_other_code(before)
    older = to_dict(after)  # of a version that hashed no code
    del older["config"]["code"]
    assert from_dict(older).code is None


def test_a_worker_that_has_not_imported_a_model_of_ones_own_compares_its_code(tmp_path, monkeypatch):
    """Only the worker that measured a pack has imported the module: the others get packs without it."""
    module = tmp_path / "own_model_unseen.py"
    module.write_text(
        "from torch import nn\n\n\nclass Table(nn.Module):\n"
        "    def __init__(self, vocabulary, length):\n"
        "        super().__init__()\n"
        "        self.table = nn.Embedding(vocabulary, vocabulary)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    allow("own_model_unseen")
    task, model = build("task", {"name": "flipflop"}), build("model", {"name": "own_model_unseen:Table"})
    condition = Condition("c", task, model, Train(), code=own_digest(task, model))
    assert condition.code is not None
    del sys.modules["own_model_unseen"]
    refuse_other_code(condition)
    module.write_text(module.read_text() + "# edited\n")
    del sys.modules["own_model_unseen"]
    with pytest.raises(StudyError, match=f"planned with the code {condition.code[:12]}"):
        refuse_other_code(condition)
    del sys.modules["own_model_unseen"]
    module.unlink()
    with pytest.raises(StudyError, match="No module named 'own_model_unseen'"):
        refuse_other_code(condition)


def test_what_is_built_in_has_no_code():
    assert own_digest(build("task", {"name": "flipflop"}), build("model", {"name": "lstm"})) is None
