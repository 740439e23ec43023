import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.draw import Draw
from harness.study.config import keep_steps, keep_tail
from harness.study.identity import key
from harness.study.load import from_tree, load
from harness.study.seeds import pairs_of, seeds_of
from launch.families import find_study
from results.errors import StudyError
from tests.harness.study.small_study import by_name, refusal, small_study, small_tree

# ---- conditions, grids, sweeps


def test_one_condition_without_a_sweep_is_named_for_its_model():
    (condition,) = small_study().conditions
    assert (condition.name, condition.seeds) == ("transformer", ((0, 0), (1, 1)))


def test_a_changed_name_replaces_the_node():
    conditions = by_name(
        small_study(conditions={"transformer": {}, "lstm": {"model": {"name": "lstm"}, "train": {"steps": 5}}})
    )
    assert conditions["lstm"].config()["model"] == {"name": "lstm"}
    assert conditions["lstm"].train.steps == 5
    assert conditions["transformer"].model.heads == 2


def test_a_condition_of_the_same_name_keeps_the_rest_of_the_node():
    conditions = by_name(small_study(conditions={"deep": {"model": {"name": "transformer", "layers": 3}}}))
    assert (conditions["deep"].model.layers, conditions["deep"].model.width) == (3, 8)


def test_conditions_are_crossed_with_the_grid():
    conditions = by_name(
        small_study(
            conditions={"a": {}, "b": {"train": {"batch": 4}}}, grid={"model.layers": [1, 2], "train": {"lr": [1e-3, 1e-2]}}
        )
    )
    assert len(conditions) == 8
    last = conditions["b, model.layers=2, train.lr=0.01"]
    assert (last.train.batch, last.model.layers, last.train.lr) == (4, 2, 0.01)


def test_sweeps_are_grid_each_and_zip_with_their_own_replicates():
    study = small_study(
        sweeps=[
            {"grid": {"model.layers": [1, 2], "model.width": [8, 16]}, "replicates": 3},
            {"each": {"train.lr": [1e-3, 1e-2], "train.batch": [4]}, "replicates": 5},
            {"zip": {"train.steps": [30, 40], "train.warmup": [3, 4]}},
        ]
    )
    assert [(condition.name, len(condition.seeds)) for condition in study.conditions] == [
        ("model.layers=1, model.width=8", 3),
        ("model.layers=1, model.width=16", 3),
        ("model.layers=2, model.width=8", 3),
        ("model.layers=2, model.width=16", 3),
        ("train.lr=0.001", 5),
        ("train.lr=0.01", 5),
        ("train.batch=4", 5),
        ("train.steps=30, train.warmup=3", 2),
        ("train.steps=40, train.warmup=4", 2),
    ]


def test_equal_configurations_merge_with_the_most_replicates_and_the_first_name():
    study = small_study(conditions={"base": {}}, sweeps=[{"each": {"model.layers": [1, 2]}, "replicates": 7}])
    assert [(condition.name, len(condition.seeds)) for condition in study.conditions] == [("base", 7), ("model.layers=2", 7)]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["grid", "each", "zip"]),
            st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
            st.integers(1, 4),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_the_union_of_sweeps_holds_every_replicate_once(sweeps):
    study = small_study(sweeps=[{kind: {"model.layers": layers}, "replicates": count} for kind, layers, count in sweeps])
    expected = {
        layer: max(count for _, layers, count in sweeps if layer in layers) for _, layers, _ in sweeps for layer in layers
    }
    assert {condition.model.layers: len(condition.seeds) for condition in study.conditions} == expected
    keys = [key(condition.config(), 0, *seeds) for condition in study.conditions for seeds in condition.seeds]
    assert len(set(keys)) == len(keys)


def test_a_mixture_is_one_value_of_a_grid():
    study = small_study(grid={"task.p_ignore": [0.8, [0.9, 0.98, 0.1]]})
    assert [condition.task.p_ignore for condition in study.conditions] == [0.8, (0.9, 0.98, 0.1)]


def test_whole_models_can_be_swept():
    study = small_study(sweeps=[{"each": {"model": [{"name": "lstm", "width": 4}, {"layers": 2}]}}])
    assert [condition.config()["model"]["name"] for condition in study.conditions] == ["lstm", "transformer"]


def test_a_grid_over_what_a_condition_sets_itself_is_refused():
    found = refusal(conditions={"deep": {"model.layers": 3}, "plain": {}}, grid={"model.layers": [1, 2]})
    assert found.startswith("grid.model.layers is also set by condition deep, as model.layers: leave it out of one of them")


# ---- seeds


def test_what_comes_later_replaces_a_product_of_seeds_as_a_whole():
    product = {"seeds": {"init": "0..1", "data": "0..1"}, "replicates": 2}

    def seeds(*overrides, **changes):
        return small_study(*overrides, **product, **changes).conditions[0].seeds

    assert seeds("seeds={from: 3}") == ((3, 3), (4, 4))
    assert seeds("seeds={data: 0..2}") == tuple((init, data) for init in (0, 1) for data in (0, 1, 2))
    assert seeds("scale=x", scales={"x": {"replicates": 1, "seeds": {"from": 5}}}) == ((5, 5),)
    (condition,) = small_study("seeds={init: 0, data: 0..1}", seeds={"from": 100}).conditions
    assert condition.seeds == ((0, 0), (0, 1))


def test_seeds_are_the_product_of_both_lists():
    (condition,) = small_study(seeds={"init": "0..1", "data": [5, "7..8"]}).conditions
    assert condition.seeds == ((0, 5), (0, 7), (0, 8), (1, 5), (1, 7), (1, 8))


def test_paired_seeds_may_begin_elsewhere():
    """As where a trial has used the first ones; conditions with a number of their own begin there too."""
    (condition,) = small_study(seeds={"from": 100}, replicates=2).conditions
    assert condition.seeds == ((100, 100), (101, 101))
    (condition,) = small_study("replicates=3", seeds={"from": 100}, replicates=2).conditions
    assert condition.seeds == ((100, 100), (101, 101), (102, 102))
    assert pairs_of({"replicates": 5, "seeds": {"from": 7}}, {"replicates": 1}, "") == [(7, 7)]
    assert pairs_of({"replicates": 2}, {"seeds": {"from": 7}}, "") == [(7, 7), (8, 8)]
    assert pairs_of({"seeds": {"init": 0, "data": "0..3"}}, {"replicates": 1}, "") == [(0, 0)]
    assert pairs_of({"seeds": {"from": 7}}, {"seeds": {"init": 1, "data": 2}}, "") == [(1, 2)]


@pytest.mark.parametrize(
    "seeds", [{"from": -1}, {"from": 2**63 - 1}, {"from": "0..4"}, {"from": True}, {"first": 1}, {}, [3], 5]
)
def test_odd_first_seeds_are_refused(seeds):
    with pytest.raises(ValueError, match="seeds"):
        pairs_of({"seeds": seeds}, {}, "")


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_range_has_both_ends(first, more):
    assert seeds_of(f"{first}..{first + more}", "seeds.init") == list(range(first, first + more + 1))


@pytest.mark.parametrize("spec", ["4..0", "a", -1, 1.5, True, [], [[]], None, {"a": 1}, "0..", "1...3"])
def test_odd_seeds_are_refused(spec):
    with pytest.raises(ValueError, match=r"seeds\.init"):
        seeds_of(spec, "seeds.init")


@pytest.mark.parametrize("spec", [[0, 1, 1], ["0..4", 3], ["0..2", "2..4"], [[5], 5]])
def test_a_seed_that_is_listed_twice_is_refused(spec):
    with pytest.raises(StudyError, match=r"^seeds\.data has the seed [1325] twice: list each seed once$"):
        small_study(seeds={"init": 0, "data": spec})


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        (
            {"seqences": 50},
            "evaluate.sets.same.sequences is missing: the number of strings in the set; did you mean it by seqences?",
        ),
        ({"p_ignore": 0.5}, "evaluate.sets.same.sequences is missing: the number of strings in the set"),
        (
            {"sequences": 50, "evry": 10},
            "evaluate.sets.same.evry is not an option of a set of the flipflop; did you mean evaluate.sets.same.every?",
        ),
    ],
)
def test_a_misspelt_key_of_an_evaluation_set_is_named(definition, sentence):
    assert refusal(evaluate={"sets": {"same": definition}}) == sentence


@pytest.mark.parametrize("replicates", [0, -1, 1.5, "many", True])
def test_replicates_are_at_least_one(replicates):
    assert refusal(replicates=replicates).startswith(f"replicates = {replicates!r} must be a whole number of at least 1")


# ---- precedence


def test_a_bare_off_is_no_truth_value():
    assert small_study("wandb=off").wandb == "off"


# ---- bad input: one sentence that says where and what instead


def test_a_scale_called_paper_is_refused():
    """It would be used without being asked for: `paper` is the scale of a file that names none."""
    assert "scale=paper is the file itself" in refusal(scales={"paper": {"train": {"steps": 30}}})
    assert small_study(scales={"paper": {}}).conditions[0].train.steps == 20


def test_a_gpu_by_its_number_is_refused_beside_ray():
    message = "device = cuda:1 names one GPU, and executor = ray takes all of them: write executor=local, or device=cuda"
    assert message in refusal("device=cuda:1", "executor=ray")


def test_two_conditions_of_one_name_are_refused():
    changes = {"conditions": {"model.layers=2": {"train": {"steps": 5}}}, "sweeps": [{"each": {"model.layers": [2]}}]}
    assert "two different conditions are called 'model.layers=2'" in refusal(**changes)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: a\ntask:\n\tname: b\n", "line 3: found character '\\t' that cannot start any token: indent with spaces"),
        ("name: a\nname: b\n", "line 2: found duplicate key name, while constructing a mapping from line 1 on"),
        (
            "question: why: this?\n",
            "line 1: mapping values are not allowed here: indent all keys of a mapping alike, and put a text "
            'with ": " in quotes',
        ),
        ('name: "a\nquestion: b\n', "line 3: found unexpected end of stream, while scanning a quoted scalar from line 1 on"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(tmp_path, text, sentence):
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(StudyError) as refused:
        load(tmp_path / "study.yaml")
    assert str(refused.value) == f"{tmp_path / 'study.yaml'} is not a readable YAML file: {sentence}"


def test_a_grid_of_names_keeps_what_a_condition_sets():
    """The name of the base, swept too, took the condition's other options away in silence."""
    conditions = {"one": {}, "two": {"model": {"layers": 2}, "train": {"lr": 0.1}}}
    swept = small_study(conditions=conditions, grid={"model.name": ["transformer", "lstm"]}).conditions
    assert [(each.model.layers, each.config()["model"]["name"]) for each in swept] == [
        (1, "transformer"),
        (1, "lstm"),
        (2, "transformer"),
        (2, "lstm"),
    ]


def test_conditions_whose_names_have_commas_are_listed_with_semicolons():
    grid = {"train.lr": [0.1, 0.2], "train.batch": [2]}
    assert "conditions: train.lr=0.1, train.batch=2; train.lr=0.2, train.batch=2" in refusal("only=[nothing]", grid=grid)
    rule = {"min": 2, "max": 4, "until": {"ratio_of_medians": {"set": "sparse", "baseline": "nothing", "width": 2}}}
    assert "; train.lr=0.2, train.batch=2" in refusal(grid=grid, replicates=rule)


def test_a_class_of_ones_own_with_a_dot_for_the_colon_is_told_so():
    for section in ("task", "model"):
        refused = refusal(f"{section}.name=my_own.parts.Parity")
        assert refused.endswith("; for a class of your own write my_own.parts:Parity, and pass --allow-import my_own.parts")
        refused = refusal(f"{section}.name=GLR")
        assert refused.endswith("; for a class of your own write MODULE:GLR, and pass --allow-import MODULE")


def test_two_names_of_one_condition_are_refused():
    """One of them would be lost. The points of a sweep may meet a condition, and conditions may share a first stage."""
    twice = {"a": {"train": {"lr": 0.1}}, "b": {"train": {"lr": 0.1}, "replicates": 2}, "c": {}}
    assert "conditions.a and conditions.b are the same: change a setting of one, or leave it out" in refusal(conditions=twice)
    lr = small_study(conditions={"a": {"train": {"lr": 0.1}}}, sweeps=[{"each": {"train.lr": [0.1, 0.2]}}])
    assert [condition.name for condition in lr.conditions] == ["a", "train.lr=0.2"]
    stages = [{"labels": "teacher"}]
    assert len(small_study(conditions={"one": {}, "two": {"stages": stages}}).conditions) == 2


def test_a_stage_of_several_conditions_is_named_by_the_one_that_ends_with_it():
    """Whatever their order: the report of a study with `teacher: {}` has a row that is called so."""
    student, teacher = {"stages": [{"labels": "teacher"}]}, {"replicates": 7}
    for conditions in ({"teacher": teacher, "student": student}, {"student": student, "teacher": teacher}):
        built = {condition.label: len(condition.seeds) for condition in small_study(conditions=conditions).conditions}
        assert built == {"teacher": 7, "student, stage 1": len(small_study().conditions[0].seeds)}


def test_a_missing_section_is_named():
    tree = small_tree()
    for section, message in (
        ("model", "model.name is missing"),
        ("evaluate", "evaluate.sets is missing"),
        ("name", "name = None"),
    ):
        with pytest.raises(ValueError, match=message):
            from_tree({name: value for name, value in tree.items() if name != section})


@pytest.mark.parametrize("keep", ["none", "all", "tail(25)"])
def test_keep_is_a_number_of_weights(keep):
    assert keep_tail(small_study(f"keep={keep}").keep) == {"none": 0, "all": None, "tail(25)": 25}[keep]
    assert keep_steps(keep) == ()


def test_keep_names_steps_before_the_last():
    study = small_study("train.steps=20", "keep=steps(12, 0,3,12)")
    assert keep_tail(study.keep) is None
    assert keep_steps(study.keep) == (0, 3, 12)
    with pytest.raises(ValueError, match=r"'steps\(5, 21\)'.* 21.* 20 steps"):
        small_study("train.steps=20", "keep=steps(5, 21)")
    for wrong in ("steps()", "steps(1.5)", "steps(-1)", "steps(2", "steps(1,,2)"):
        with pytest.raises(ValueError, match="must be none, all or tail"):
            keep_tail(wrong)


# ---- files


def test_an_unknown_study_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'basline' of fflm; .*quick.*; did you mean baseline\?"):
        find_study("fflm", "basline")
    with pytest.raises(ValueError, match=r"no family of studies 'ffl'; families: .*fflm") as refused:
        find_study("ffl", "quick")
    families = str(refused.value).partition("families: ")[2].partition(";")[0].split(", ")
    assert len(families) == len(set(families))


@pytest.mark.parametrize("text", ["a: [1", "a: 1\na: 2", "- 1", "just words", "", "1: {}", "when: 2020-01-01", "\x00"])
def test_a_file_that_is_no_study_is_refused(tmp_path, text):
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"odd\.yaml"):
        load(path)


def test_a_file_in_another_encoding_is_told_how_to_be_saved(tmp_path):
    (tmp_path / "odd.yaml").write_bytes("name: a\nquestion: Größe?\n".encode("latin-1"))
    with pytest.raises(StudyError, match=r"odd\.yaml is not a readable YAML file: line 2 is not UTF-8: save the file as UTF-8"):
        load(tmp_path / "odd.yaml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"there is no study file .*nothing\.yaml"):
        load(tmp_path / "nothing.yaml")


def test_the_shipped_studies_are_what_their_cards_say():
    baseline = load(find_study("fflm", "baseline"))
    (condition,) = baseline.conditions
    assert condition.config() == {"task": {"name": "flipflop"}, "model": {"name": "transformer"}, "train": {}}
    assert condition.seeds == tuple((seed, seed) for seed in range(500))
    assert {each.name: (each.sequences, each.every) for each in baseline.sets} == {
        "sparse_online": (1000, 100),
        "sparse": (100_000, None),
        "dense": (4000, None),
        "in_distribution": (16_000, None),
    }
    lstm = load(find_study("fflm", "lstm"), ["scale=laptop"])
    assert lstm.conditions[0].config() == {"task": {"name": "flipflop"}, "model": {"name": "lstm"}, "train": {"steps": 500}}
    assert {each.name: each.sequences for each in lstm.sets} == {"sparse": 10_000, "dense": 1000, "in_distribution": 1000}
    quick = load(find_study("fflm", "quick"))
    assert [(c.name, c.train.steps, c.train.lr, len(c.seeds)) for c in quick.conditions] == [
        ("transformer", 1500, 2e-3, 12),
        ("lstm", 300, 1e-3, 12),
    ]
    assert "train.lr: 3e-4 -> 2e-3 (transformer), 1e-3 (LSTM)" in quick.reductions


def test_a_manifest_needs_neither_omegaconf_nor_ray_nor_wandb():
    code = (
        "import sys; import harness.planning.manifest, harness.planning.plan, harness.study.config, harness.study.identity; "
        "assert not {'omegaconf', 'ray', 'wandb', 'yaml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("task", "other", "sentence"),
    [
        ({"name": "automaton"}, {"automaton": "C3"}, "3 tokens in the vocabulary and those of the training 2: set automaton"),
        ({"name": "automaton"}, {"scratchpad": True}, "4 tokens in the vocabulary and those of the training 2: set scratchpad"),
        (
            {"name": "automaton"},
            {"automaton": "Grid4"},
            "4 classes and those of the training 2: set automaton so that there are no",
        ),
        (
            {"name": "in_context_ngram"},
            {"alphabet": 2},
            "2 classes and those of the training 5: set alphabet so that there are as",
        ),
    ],
)
def test_a_set_that_needs_other_tokens_or_classes_is_refused(task, other, sentence):
    said = refusal(task=task, evaluate={"sets": {"other": other | {"sequences": 10}}})
    assert said.startswith("evaluate.sets.other of condition transformer: ")
    assert sentence in said


def test_a_set_may_need_fewer_classes():
    task = {"name": "associations", "outputs": 16}
    assert small_study(task=task, evaluate={"sets": {"fewer": {"outputs": 8, "sequences": 10}}}).sets[0].name == "fewer"


def test_lags_that_nothing_can_measure_are_refused():
    assert small_study("evaluate.watch={lags: 15}").watch.lags == 15
    assert refusal("evaluate.watch={lags: 16}").endswith("whose strings have 16 tokens: write at most 15")
    assert "no condition's model has any: leave it out" in refusal("evaluate.watch={lags: 2}", model={"name": "lstm"})


def test_the_largest_seed_of_a_table_is_named():
    task = {"name": "associations", "table_seed": 2**63}
    assert "write at most 9,223,372,036,854,775,807" in refusal(task=task, evaluate={"sets": {"same": {"sequences": 10}}})


@pytest.mark.parametrize(
    "task",
    [
        {"name": "flipflop"},
        {"name": "automaton", "scratchpad": True},
        {"name": "in_context_ngram", "labels": "every"},
        {"name": "pcfg", "root": 13, "length": 40, "objective": "next"},
        {"name": "dyck"},
        {"name": "bracket_strings"},
    ],
)
def test_a_model_that_would_read_the_answers_ahead_is_refused(task):
    sets = {"sets": {"same": {"sequences": 10}}}
    said = refusal("model.causal=false", task=task, evaluate=sets)
    assert said.endswith(f"would read the answers of {task['name']} ahead, which stand in its strings: leave it out")
    # what the property says is so: after some scored position stands its answer, the law's likeliest token, or the closing bracket
    (condition,) = small_study(task=task, evaluate=sets).conditions
    batch = condition.task.sample(Draw(torch.arange(2)), 50)
    targets = batch.targets.argmax(-1) if condition.task.soft else batch.targets
    inputs, targets, scored = batch.inputs[..., 1:], targets[..., :-1], batch.weights[..., :-1] > 0
    if task["name"] == "automaton":
        inputs = inputs - 2
    same = (inputs == targets)[scored].float().mean()
    assert same > (0.4 if condition.task.soft else 0.999)  # by chance 0.2, of five tokens


@pytest.mark.parametrize(
    "task", [{"name": "automaton"}, {"name": "associations"}, {"name": "in_context_ngram"}, {"name": "dyck_copy"}]
)
def test_a_model_may_look_ahead_where_no_answer_stands(task):
    study = small_study("model.causal=false", task=task, evaluate={"sets": {"same": {"sequences": 10}}})
    assert not study.conditions[0].model.causal
