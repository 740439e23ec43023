import subprocess
import sys

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.study.config import keep_steps, keep_tail
from harness.study.identity import key
from harness.study.load import from_tree, load
from harness.study.seeds import pairs_of, seeds_of
from launch.families import find_study
from results.errors import StudyError
from tests.harness.tiny import STUDY

SETS = {"sparse": {"p_ignore": 0.98, "sequences": 100}}


def _tree(**changes):
    return {
        "name": "trial",
        "task": {"name": "flipflop", "length": 16},
        "model": {"name": "transformer", "layers": 1, "width": 8, "heads": 2},
        "train": {"steps": 20},
        "evaluate": {"sets": SETS},
        "replicates": 2,
    } | changes


def _study(*overrides, **changes):
    return from_tree(_tree(**changes), overrides)


def _refused(*overrides, **changes):
    with pytest.raises(ValueError) as raised:
        _study(*overrides, **changes)
    message = str(raised.value)
    assert "\n" not in message
    return message


def _named(study):
    return {condition.name: condition for condition in study.conditions}


# ---- conditions, grids, sweeps


def test_one_condition_without_a_sweep_is_named_for_its_model():
    (condition,) = _study().conditions
    assert (condition.name, condition.seeds) == ("transformer", ((0, 0), (1, 1)))


def test_a_changed_name_replaces_the_node():
    conditions = _named(_study(conditions={"transformer": {}, "lstm": {"model": {"name": "lstm"}, "train": {"steps": 5}}}))
    assert conditions["lstm"].config()["model"] == {"name": "lstm"}
    assert conditions["lstm"].train.steps == 5
    assert conditions["transformer"].model.heads == 2


def test_a_condition_of_the_same_name_keeps_the_rest_of_the_node():
    conditions = _named(_study(conditions={"deep": {"model": {"name": "transformer", "layers": 3}}}))
    assert (conditions["deep"].model.layers, conditions["deep"].model.width) == (3, 8)


def test_conditions_are_crossed_with_the_grid():
    conditions = _named(
        _study(conditions={"a": {}, "b": {"train": {"batch": 4}}}, grid={"model.layers": [1, 2], "train": {"lr": [1e-3, 1e-2]}})
    )
    assert len(conditions) == 8
    last = conditions["b, model.layers=2, train.lr=0.01"]
    assert (last.train.batch, last.model.layers, last.train.lr) == (4, 2, 0.01)


def test_sweeps_are_grid_each_and_zip_with_their_own_replicates():
    study = _study(
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
    study = _study(conditions={"base": {}}, sweeps=[{"each": {"model.layers": [1, 2]}, "replicates": 7}])
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
    study = _study(sweeps=[{kind: {"model.layers": layers}, "replicates": count} for kind, layers, count in sweeps])
    expected = {
        layer: max(count for _, layers, count in sweeps if layer in layers) for _, layers, _ in sweeps for layer in layers
    }
    assert {condition.model.layers: len(condition.seeds) for condition in study.conditions} == expected
    keys = [key(condition.config(), 0, *seeds) for condition in study.conditions for seeds in condition.seeds]
    assert len(set(keys)) == len(keys)


def test_a_mixture_is_one_value_of_a_grid():
    study = _study(grid={"task.p_ignore": [0.8, [0.9, 0.98, 0.1]]})
    assert [condition.task.p_ignore for condition in study.conditions] == [0.8, (0.9, 0.98, 0.1)]


def test_whole_models_can_be_swept():
    study = _study(sweeps=[{"each": {"model": [{"name": "lstm", "width": 4}, {"layers": 2}]}}])
    assert [condition.config()["model"]["name"] for condition in study.conditions] == ["lstm", "transformer"]


def test_a_grid_over_what_a_condition_sets_itself_is_refused():
    found = _refused(conditions={"deep": {"model.layers": 3}, "plain": {}}, grid={"model.layers": [1, 2]})
    assert found.startswith("grid.model.layers is also set by condition deep, as model.layers: leave it out of one of them")


# ---- seeds


def test_what_comes_later_replaces_a_product_of_seeds_as_a_whole():
    product = {"seeds": {"init": "0..1", "data": "0..1"}, "replicates": 2}

    def seeds(*overrides, **changes):
        return _study(*overrides, **product, **changes).conditions[0].seeds

    assert seeds("seeds={from: 3}") == ((3, 3), (4, 4))
    assert seeds("seeds={data: 0..2}") == tuple((init, data) for init in (0, 1) for data in (0, 1, 2))
    assert seeds("scale=x", scales={"x": {"replicates": 1, "seeds": {"from": 5}}}) == ((5, 5),)
    (condition,) = _study("seeds={init: 0, data: 0..1}", seeds={"from": 100}).conditions
    assert condition.seeds == ((0, 0), (0, 1))


def test_seeds_are_the_product_of_both_lists():
    (condition,) = _study(seeds={"init": "0..1", "data": [5, "7..8"]}).conditions
    assert condition.seeds == ((0, 5), (0, 7), (0, 8), (1, 5), (1, 7), (1, 8))


def test_paired_seeds_may_begin_elsewhere():
    """As where a trial has used the first ones; conditions with a number of their own begin there too."""
    (condition,) = _study(seeds={"from": 100}, replicates=2).conditions
    assert condition.seeds == ((100, 100), (101, 101))
    (condition,) = _study("replicates=3", seeds={"from": 100}, replicates=2).conditions
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


@pytest.mark.parametrize("replicates", [0, -1, 1.5, "many", True])
def test_replicates_are_at_least_one(replicates):
    assert _refused(replicates=replicates).startswith(f"replicates = {replicates!r} must be a whole number of at least 1")


# ---- precedence


def test_the_order_is_defaults_file_scale_command_line_condition():
    changes = {
        "train": {"steps": 20, "batch": 4},
        "scales": {"laptop": {"train": {"steps": 10, "batch": 3, "warmup": 2}, "replicates": 1}},
        "conditions": {"a": {}, "b": {"train": {"steps": 7}}},
    }
    conditions = _named(_study("scale=laptop", "train.batch=2", **changes))
    assert (conditions["a"].train.steps, conditions["b"].train.steps) == (10, 7)
    assert {(c.train.batch, c.train.warmup, c.train.lr, len(c.seeds)) for c in conditions.values()} == {(2, 2, 3e-4, 1)}
    assert {condition.train.batch for condition in _study(**changes).conditions} == {4}


def test_a_scale_states_its_reductions_and_selects_conditions():
    study = _study(
        "scale=laptop",
        conditions={"transformer": {}, "lstm": {"model": {"name": "lstm"}}},
        reductions=["length is short"],
        scales={"laptop": {"train": {"steps": 10, "batch": 8}, "only": ["lstm"]}},
    )
    assert [condition.name for condition in study.conditions] == ["lstm"]
    assert study.reductions == (
        "length is short",
        "train.steps: 20 -> 10",
        "train.batch: 16 -> 8",
        "conditions: transformer, lstm -> lstm",
    )


def test_an_override_may_change_a_condition_where_it_is_set():
    study = _study("conditions.lstm.train.steps=3", conditions={"lstm": {"model": {"name": "lstm"}, "train": {"steps": 5}}})
    assert study.conditions[0].train.steps == 3


def test_a_changed_name_on_the_command_line_replaces_the_node():
    assert _study("model.name=lstm", "model.width=16").conditions[0].config()["model"] == {"name": "lstm", "width": 16}


def test_references_to_other_keys_see_the_overrides():
    assert _study("train.steps=60", train={"steps": 20, "warmup": "${train.steps}"}).conditions[0].train.warmup == 60


def test_a_bare_off_is_no_truth_value():
    assert _study("wandb=off").wandb == "off"


def test_what_has_wandb_runs_merges_with_the_mode_of_the_file():
    assert (_study().wandb, _study().wandb_runs) == (_study("wandb.mode=" + _study().wandb).wandb, "study")
    chosen = _study("wandb.runs=condition", wandb="online")
    assert (chosen.wandb, chosen.wandb_runs) == ("online", "condition")
    chosen = _study("wandb=off", wandb={"mode": "online", "runs": "replicate"})
    assert (chosen.wandb, chosen.wandb_runs) == ("off", "replicate")
    assert _study("wandb.runs=replicate", "replicates=1000").wandb_runs == "replicate"
    assert _refused("wandb.runs=replicate", "replicates=1001") == (
        "wandb.runs = replicate would make 1,001 W&B runs of this study and W&B shows 1,000: write condition or study, or select fewer"
    )


# ---- bad input: one sentence that says where and what instead


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.laters=2", "model.laters is not an option of the transformer; did you mean model.layers?"),
        ("task.lenght=32", "task.lenght is not an option of the flipflop; did you mean task.length?"),
        ("train.stpes=3", "train.stpes is not an option of the training; did you mean train.steps?"),
        ("trian.steps=3", "the command line has no key 'trian'; did you mean train?"),
        ("lr=1", "the command line has no key 'lr'; did you mean train.lr?"),
        ("steps=3", "the command line has no key 'steps'; did you mean train.steps?"),
        ("layers=3", "the command line has no key 'layers'; did you mean model.layers?"),
        ("length=32", "the command line has no key 'length'; did you mean task.length?"),
        ("conditions={null: {}}", "the command line: conditions: a key that is null is not a word: put it in quotes"),
        (
            "train.final_lr=0.5",
            "train.final_lr on the command line changes nothing: it applies only to schedule: cosine, and no",
        ),
        (
            "train.patience=3",
            "train.patience on the command line changes nothing: it applies only to schedule: plateau, and no",
        ),
        (
            "train={optimizer: sgd, betas: [0.5, 0.9]}",
            "train.betas on the command line changes nothing: it applies only to optim",
        ),
        ("evaluate.curve_evry=3", "evaluate has no key 'curve_evry'; did you mean curve_every?"),
        ("evaluate.sets.sparse.p_ignor=0.9", "did you mean task.p_ignore?"),
        ("evaluate.sets.sparse.sequences=0", "evaluate.sets.sparse.sequences = 0 must be a whole number of at least 1"),
        ("evaluate.sets.sparse.p_ignore=1.5", "evaluate.sets.sparse of condition transformer: task.p_write"),
        ("evaluate.sets.sparse.mode=generative", "task.mode is fixed to 'deterministic' in an evaluation set"),
        ("evaluate.sets.other={p_ignore: 0.5}", "evaluate.sets.other.sequences is missing"),
        ("evaluate.sets.twin={p_ignore: 0.98, sequences: 100}", "evaluate.sets.sparse and evaluate.sets.twin are the same set"),
        ("pack.sice=3", "pack has no key 'sice'; did you mean size?"),
        ("pack.size=0", "pack.size = 0 must be a whole number of at least 1 or auto"),
        ("model.name=transfomer", "did you mean transformer?"),
        ("task.length=15", "task.length = 15 is not an even number"),
        ("task.p_write=0.5", "must be non-negative and sum to 1"),
        ("task.length=long", "task.length = 'long' must be a whole number"),
        ("train.steps=0", "train.steps = 0 must be at least 1"),
        ("train.lr=-1", "train.lr = -1.0 must be above 0"),
        ("train.lr=.nan", "train.lr = nan must be a finite number"),
        ("train.betas=[0.9]", "train.betas = [0.9] must be a list of 2"),
        ("train.betas=[0.9,1]", "two numbers in [0, 1)"),
        ("train.schedule=cosinus", "train.schedule = 'cosinus' must be linear or constant or cosine or plateau"),
        ("train.precision=fp16", "train.precision = 'fp16' must be fp32 or tf32 or bf16"),
        ("train=3", "train = 3 must be a mapping"),
        ("replicates=0", "replicates = 0 must be a whole number of at least 1"),
        ("scale=laptop", "scale = 'laptop' is not a scale of the study; scales: paper"),
        ("keep=tail(0)", "keep = 'tail(0)' must be none, all or tail(n)"),
        ("device=gpu", "device = 'gpu' must be auto, cpu, cuda"),
        ("executor=slurm", "executor = 'slurm' must be auto or ray or local"),
        ("wandb=on", "wandb = 'on' must be off or offline or online"),
        ("wandb.runs=conditions", "wandb.runs = 'conditions' must be study or condition or replicate; did you mean condition?"),
        ("wandb.rums=study", "wandb has no key 'rums'; did you mean runs?"),
        ("name=a/b", "name = 'a/b' must be a word"),
        ("only=[lsmt]", "there is no condition 'lsmt'; conditions: transformer"),
        ("seeds.init=0..2", "must give both init and data"),
        ("question=${oc.env:HOME}", "is refused: only ${other.key} may be referred to"),
        ("question=${${name}:HOME}", "is refused"),
        ("question=${nowhere}", "Interpolation key 'nowhere' not found"),
        ("question=???", "question"),
        ("replicates", "'replicates' on the command line is no override: write key=value"),
        ("seeds={from:3}", "the command line: seeds: 'from:3' has no space after the colon: write from: 3"),
        ("train[lr]=3", "'train[lr]=3' on the command line is no override: write key=value"),
        ("name=12", 'name = 12 is no text in YAML: put it in quotes, such as name: "12"'),
        (f"name={'x' * 201}", "has 201 characters, and a study's name at most 200"),
        ("store=s3:/bucket/x", "write s3://…, or ./s3:… for a folder of that name"),
        ("train.sharpen={weight: 0.1, layers: [0, 1]}", "the model lacks: with model.layers = 1 the last one is 0"),
        ("train.lr=[1", "can't be read"),
        ("sweeps={}", "sweeps = {} must be a list"),
        ("grid={replicates: [1]}", "grid.replicates can't be swept"),
        ("grid={train.lr: 3}", "grid.train.lr = 3 must be a list of at least one value"),
        ("sweeps=[{each: {train.lr: [1]}, zip: {train.lr: [1]}}]", "sweeps[0] must have exactly one of grid, each and zip"),
        ("sweeps=[{zip: {train.lr: [1], train.steps: [1, 2]}}]", "train.lr has 1, train.steps has 2: give lists of one length"),
        ("sweeps=[{each: {train.le: [1]}}]", "condition train.le=1: train.le is not an option of the training"),
        ("conditions.lstm.modle.name=lstm", "conditions.lstm has no key 'modle'; did you mean model?"),
    ],
)
def test_bad_input_is_one_clear_sentence(override, message):
    assert message in _refused(override)


def test_an_override_that_the_shell_took_apart_is_told_to_be_quoted():
    words = "seeds={init: [0, 1], data: 3}".split(" ")
    assert "'[0,' on the command line is no override: put quotes around all of seeds=…" in _refused(*words)
    assert "write key=value" in _refused("seeds={from: 3}", "replicates")


def test_a_scale_called_paper_is_refused():
    """It would be used without being asked for: `paper` is the scale of a file that names none."""
    assert "scale=paper is the file itself" in _refused(scales={"paper": {"train": {"steps": 30}}})
    assert _study(scales={"paper": {}}).conditions[0].train.steps == 20


def test_a_gpu_by_its_number_is_refused_beside_ray():
    message = "device = cuda:1 names one GPU, and executor = ray takes all of them: write executor=local, or device=cuda"
    assert message in _refused("device=cuda:1", "executor=ray")


def test_a_key_that_conditions_also_set_lists_them():
    conditions = {"a": {"train": {"lr": 0.1}}, "b": {}, "c": {"train": {"lr": 0.2}}}
    assert "by 2 of 3 conditions (a; c)" in _refused("train.lr=0.3", conditions=conditions)
    assert "(train.lr=0.1; train.lr=0.2)" in _refused("train.lr=0.3", sweeps=[{"each": {"train.lr": [0.1, 0.2]}}])
    assert "(model.layers=2)" in _refused("replicates=3", sweeps=[{"each": {"model.layers": [2]}, "replicates": 9}])


def test_lists_of_seeds_and_a_number_of_replicates_set_the_same():
    """Each point would keep its own, and the override would change nothing."""
    seeded = [{"grid": {"train.lr": [0.1, 0.2]}, "seeds": {"init": "0..1", "data": "0..1"}}]
    assert "set by 2 of 2 conditions (train.lr=0.1; train.lr=0.2)" in _refused("replicates=50", sweeps=seeded)
    assert [len(each.seeds) for each in _study("replicates=2", sweeps=[{"each": {"train.lr": [0.1]}}]).conditions] == [2]
    counted = {"a": {"replicates": 2}, "b": {"train": {"lr": 0.1}}}
    assert "set by 1 of 2 conditions (a)" in _refused("seeds.init=0..1", "seeds.data=0..4", conditions=counted)
    assert _study("seeds={from: 7}", conditions=counted).conditions[0].seeds[0] == (7, 7)


def test_an_override_without_an_effect_is_refused():
    assert "every condition has its own model" in _refused("model.layers=3", conditions={"lstm": {"model": {"name": "lstm"}}})
    assert "the study gives seeds" in _refused("replicates=3", seeds={"init": 0, "data": 0})
    lost = _refused("scale=x", seeds={"init": 0, "data": 0}, scales={"x": {"replicates": 3}})
    assert lost.startswith("replicates of scale x changes nothing: the study gives seeds")
    assert "train.lr on the command line is given twice: keep one" in _refused("train.lr=1", "train.lr=2")
    assert "train and train.lr on the command line set the same thing: keep one" in _refused("train={lr: 1}", "train.lr=2")
    assert "or write wandb.mode=… in place of wandb=…" in _refused("wandb=online", "wandb.runs=condition")
    two = {"a": {"train.lr": 0.1}, "b": {}}
    assert "only=[…]" in _refused("conditions={}", conditions=two)
    for word in ("evaluate.sets={}", "evaluate.sets.sparse={}", "conditions.a={}"):
        assert _refused(word, conditions=two).startswith(f"{word} on the command line changes nothing")
    two["b"] = {"train.lr": 0.2}
    assert [condition.name for condition in _study("conditions.c={}", conditions=two).conditions] == [*"abc"]


def test_two_conditions_of_one_name_are_refused():
    changes = {"conditions": {"model.layers=2": {"train": {"steps": 5}}}, "sweeps": [{"each": {"model.layers": [2]}}]}
    assert "two different conditions are called 'model.layers=2'" in _refused(**changes)


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


def test_a_change_of_a_condition_that_the_study_lacks_is_refused():
    """A typing error would leave the condition that is meant as it is, and train one more."""
    conditions = {"base": {}, "slow": {"train": {"lr": 1e-5}}}
    message = _refused("conditions.slwo.train.steps=3", conditions=conditions)
    assert "the study has no condition 'slwo'; conditions: base, slow; did you mean slow?" in message
    added = _named(_study("conditions.new={train: {steps: 3}}", conditions=conditions))
    assert (list(added), added["new"].train.steps) == (["base", "slow", "new"], 3)
    assert list(_named(_study("conditions.a.train.steps=3", "conditions.b.train.steps=4"))) == ["a", "b"]


def test_a_change_of_an_evaluation_set_that_the_study_lacks_is_refused():
    sets = {"sparse": {"p_ignore": 0.98, "sequences": 9}, "dense": {"p_ignore": 0.1, "sequences": 9}}
    message = _refused("evaluate.sets.sprse.sequences=3", evaluate={"sets": sets})
    assert "the study has no evaluation set 'sprse'; evaluation sets: sparse, dense; did you mean sparse?" in message
    added = _study("evaluate.sets.new={sequences: 3}", "evaluate.sets.dense.sequences=4", evaluate={"sets": sets})
    assert [(each.name, each.sequences) for each in added.sets] == [("sparse", 9), ("dense", 4), ("new", 3)]


def test_a_condition_may_be_changed_however_it_is_written():
    """As a dotted path in the file and nested on the command line; a name with a dot, which no path can hold, as a mapping."""
    conditions = {"slow": {"train.lr": 1e-5, "model.layers": 2}, "v1.5": {"train.lr": 1e-4}}
    changed = _named(_study("conditions.slow.train.lr=2e-5", conditions=conditions))["slow"]
    assert (changed.train.lr, changed.model.layers) == (2e-5, 2)
    scaled = {"x": {"conditions": {"slow": {"train": {"lr": 3e-5}}}}}
    assert _named(_study("scale=x", conditions=conditions, scales=scaled))["slow"].train.lr == 3e-5
    message = _refused("conditions.v1.5.train.lr=2e-4", conditions=conditions)
    assert message.endswith("the condition 'v1.5' has a dot in its name, so write 'conditions={v1.5: {…}}', in quotes")
    assert _named(_study("conditions={v1.5: {train: {lr: 2e-4}}}", conditions=conditions))["v1.5"].train.lr == 2e-4


def test_a_grid_of_names_keeps_what_a_condition_sets():
    """The name of the base, swept too, took the condition's other options away in silence."""
    conditions = {"one": {}, "two": {"model": {"layers": 2}, "train": {"lr": 0.1}}}
    swept = _study(conditions=conditions, grid={"model.name": ["transformer", "lstm"]}).conditions
    assert [(each.model.layers, each.config()["model"]["name"]) for each in swept] == [
        (1, "transformer"),
        (1, "lstm"),
        (2, "transformer"),
        (2, "lstm"),
    ]


def test_conditions_whose_names_have_commas_are_listed_with_semicolons():
    grid = {"train.lr": [0.1, 0.2], "train.batch": [2]}
    assert "conditions: train.lr=0.1, train.batch=2; train.lr=0.2, train.batch=2" in _refused("only=[nothing]", grid=grid)
    rule = {"min": 2, "max": 4, "until": {"ratio_of_medians": {"set": "sparse", "baseline": "nothing", "width": 2}}}
    assert "; train.lr=0.2, train.batch=2" in _refused(grid=grid, replicates=rule)


def test_a_class_of_ones_own_with_a_dot_for_the_colon_is_told_so():
    for section in ("task", "model"):
        refused = _refused(f"{section}.name=my_own.parts.Parity")
        assert refused.endswith("; for a class of your own write my_own.parts:Parity")


def test_two_names_of_one_condition_are_refused():
    """One of them would be lost. The points of a sweep may meet a condition, and conditions may share a first stage."""
    twice = {"a": {"train": {"lr": 0.1}}, "b": {"train": {"lr": 0.1}, "replicates": 2}, "c": {}}
    assert "conditions.a and conditions.b are the same: change a setting of one, or leave it out" in _refused(conditions=twice)
    lr = _study(conditions={"a": {"train": {"lr": 0.1}}}, sweeps=[{"each": {"train.lr": [0.1, 0.2]}}])
    assert [condition.name for condition in lr.conditions] == ["a", "train.lr=0.2"]
    stages = [{"labels": "teacher"}]
    assert len(_study(conditions={"one": {}, "two": {"stages": stages}}).conditions) == 2


def test_a_stage_of_several_conditions_is_named_by_the_one_that_ends_with_it():
    """Whatever their order: the report of a study with `teacher: {}` has a row that is called so."""
    student, teacher = {"stages": [{"labels": "teacher"}]}, {"replicates": 7}
    for conditions in ({"teacher": teacher, "student": student}, {"student": student, "teacher": teacher}):
        built = {condition.label: len(condition.seeds) for condition in _study(conditions=conditions).conditions}
        assert built == {"teacher": 7, "student, stage 1": len(_study().conditions[0].seeds)}


def test_a_missing_section_is_named():
    tree = _tree()
    for section, message in (
        ("model", "model.name is missing"),
        ("evaluate", "evaluate.sets is missing"),
        ("name", "name = None"),
    ):
        with pytest.raises(ValueError, match=message):
            from_tree({name: value for name, value in tree.items() if name != section})


@pytest.mark.parametrize("keep", ["none", "all", "tail(25)"])
def test_keep_is_a_number_of_weights(keep):
    assert keep_tail(_study(f"keep={keep}").keep) == {"none": 0, "all": None, "tail(25)": 25}[keep]
    assert keep_steps(keep) == ()


def test_keep_names_steps_before_the_last():
    study = _study("train.steps=20", "keep=steps(12, 0,3,12)")
    assert keep_tail(study.keep) is None
    assert keep_steps(study.keep) == (0, 3, 12)
    with pytest.raises(ValueError, match=r"'steps\(5, 21\)'.* 21.* 20 steps"):
        _study("train.steps=20", "keep=steps(5, 21)")
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


@pytest.mark.parametrize("grid", [{"task.length": [8, 16]}, {"task": {"length": [8, 16]}}])
def test_the_command_line_replaces_one_axis_of_a_grid_however_the_file_spells_it(grid):
    tree = yaml.safe_load(STUDY) | {"grid": grid | {"train.lr": [1e-3, 1e-2]}}
    study = from_tree(tree, ["grid.task.length=[12]"])
    assert {condition.task.length for condition in study.conditions} == {12}
    assert {condition.train.lr for condition in study.conditions} == {1e-3, 1e-2}
