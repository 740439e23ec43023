"""Overrides on the command line: what they change, and what is refused in one clear sentence."""

import pytest
import yaml

from harness.study.load import from_tree
from tests.harness.study.small_study import by_name, refusal, small_study
from tests.harness.tiny import STUDY


def test_the_order_is_defaults_file_scale_command_line_condition():
    changes = {
        "train": {"steps": 20, "batch": 4},
        "scales": {"laptop": {"train": {"steps": 10, "batch": 3, "warmup": 2}, "replicates": 1}},
        "conditions": {"a": {}, "b": {"train": {"steps": 7}}},
    }
    conditions = by_name(small_study("scale=laptop", "train.batch=2", **changes))
    assert (conditions["a"].train.steps, conditions["b"].train.steps) == (10, 7)
    assert {(c.train.batch, c.train.warmup, c.train.lr, len(c.seeds)) for c in conditions.values()} == {(2, 2, 3e-4, 1)}
    assert {condition.train.batch for condition in small_study(**changes).conditions} == {4}


def test_an_override_may_change_a_condition_where_it_is_set():
    study = small_study(
        "conditions.lstm.train.steps=3", conditions={"lstm": {"model": {"name": "lstm"}, "train": {"steps": 5}}}
    )
    assert study.conditions[0].train.steps == 3


def test_a_number_names_an_item_of_a_list():
    def staged(*trains):
        return {"a": {"stages": [{"init": "previous", "train": train} for train in trains]}}

    conditions = staged({"steps": 5, "lr": 0.1}, {"steps": 6})
    ours = small_study("conditions.a.stages.1.train.steps=7", "conditions.a.stages.1.train.lr=0.2", conditions=conditions)
    written = staged({"steps": 5, "lr": 0.1}, {"steps": 7, "lr": 0.2})
    assert ours.conditions == small_study(conditions=written).conditions
    assert small_study("grid.train.lr.1=0.3", grid={"train.lr": [0.1, 0.2]}).conditions == (
        small_study(grid={"train.lr": [0.1, 0.3]}).conditions
    )
    scaled = {"laptop": {"conditions": {"a": {"stages.0.train.steps": 3}}}}
    assert [c.train.steps for c in small_study("scale=laptop", conditions=conditions, scales=scaled).conditions[1:]] == [3, 6]
    assert refusal("conditions.a.stages.2.train.steps=7", conditions=conditions) == (
        "conditions.a.stages.2: conditions.a.stages has no item 2 (its items are 0 to 1): change another, or write the whole list"
    )
    assert "must be a list of mappings" in refusal("conditions.a.stages.00.train.steps=7", conditions=conditions)
    assert refusal("only.0=a", only=[]) == "only.0: only has no item 0 (it is empty): change another, or write the whole list"


def test_a_changed_name_on_the_command_line_replaces_the_node():
    assert small_study("model.name=lstm", "model.width=16").conditions[0].config()["model"] == {"name": "lstm", "width": 16}


def test_references_to_other_keys_see_the_overrides():
    assert small_study("train.steps=60", train={"steps": 20, "warmup": "${train.steps}"}).conditions[0].train.warmup == 60


def test_what_has_wandb_runs_merges_with_the_mode_of_the_file():
    assert (small_study().wandb, small_study().wandb_runs) == (small_study("wandb.mode=" + small_study().wandb).wandb, "study")
    chosen = small_study("wandb.runs=condition", wandb="online")
    assert (chosen.wandb, chosen.wandb_runs) == ("online", "condition")
    chosen = small_study("wandb=off", wandb={"mode": "online", "runs": "replicate"})
    assert (chosen.wandb, chosen.wandb_runs) == ("off", "replicate")
    assert small_study("wandb.runs=replicate", "replicates=1000").wandb_runs == "replicate"
    assert refusal("wandb.runs=replicate", "replicates=1001") == (
        "wandb.runs = replicate would make 1,001 W&B runs of this study and W&B shows 1,000: write condition or study, or select fewer"
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.laters=2", "model.laters is not an option of the transformer; did you mean model.layers?"),
        ("train.epochs=3", "train.epochs is not an option of the training; did you mean train.steps?"),
        ("train.learning_rate=1", "did you mean train.lr?"),
        ("train.seed=1", "train.seed is not an option of the training; did you mean seeds?"),
        ("model.d_model=8", "model.d_model is not an option of the transformer; did you mean model.width?"),
        ("batch_size=8", "the command line has no key 'batch_size'; did you mean train.batch?"),
        ("n_layers=2", "the command line has no key 'n_layers'; did you mean model.layers?"),
        ("grid={iterations: [1]}", "grid.iterations can't be swept; did you mean train.steps?"),
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
            "train.final_lr on the command line changes nothing: it applies only to train.schedule: cosine, and no",
        ),
        (
            "train={schedule: constant, decay_steps: 20000}",
            "train.decay_steps on the command line changes nothing: it applies only to train.schedule: linear or cosine, and no",
        ),
        (
            "train.patience=3",
            "train.patience on the command line changes nothing: it applies only to train.schedule: plateau, and no",
        ),
        (
            "train={optimizer: sgd, betas: [0.5, 0.9]}",
            "train.betas on the command line changes nothing: it applies only to train.optim",
        ),
        ("evaluate.curve_evry=3", "evaluate has no key 'curve_evry'; did you mean curve_every?"),
        (
            "evaluate.sets.sparse.p_ignor=0.9",
            "evaluate.sets.sparse.p_ignor is not an option of a set of the flipflop; did you mean evaluate.sets.sparse.p_ignore?",
        ),
        (
            "evaluate.sets.sparse.typo=1",
            "evaluate.sets.sparse.typo is not an option of a set of the flipflop; options: length, p_ignore, p_write, p_read, mode, "
            "symbols, sequences, every",
        ),
        ("evaluate.sets.sparse.seq_len=8", "did you mean evaluate.sets.sparse.length?"),
        ("evaluate.sets.sparse.sequences=0", "evaluate.sets.sparse.sequences = 0 must be a whole number of at least 1"),
        ("evaluate.sets.sparse.p_ignore=1.5", "evaluate.sets.sparse of condition transformer: task.p_ignore = 1.5"),
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
        (
            "model={norm: post, final_norm: false}",
            "model.final_norm on the command line changes nothing: it applies only to model.norm: pre or branch",
        ),
        (
            "train.sharpen={weight: 1, period: 9}",
            "train.sharpen.period on the command line changes nothing: it applies only to train.sharpen.schedule: oscillating",
        ),
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
        ("evaluate.seed=9999999999999999999", "evaluate.seed = 9999999999999999999 must be a whole number from 0 to 2^63 - 1"),
        ("train.sharpen={weight: 0.1, layers: [0, 0]}", "train.sharpen.layers = [0, 0] names a layer twice"),
        (
            "stages=[{labels: teacher, train: {sharpen: {kind: l2}}}]",
            "stages[0]: train.sharpen.weight is missing, so there would be no penalty",
        ),
        (
            "stages=[{labels: teacher, model: {name: lstm}, train: {sharpen: {weight: 0.1}}}]",
            "stages[0]: train.sharpen is a penalty on attention and the lstm has none: leave it out, or write null",
        ),
        ("train.sharpen={kind: l2}", "train.sharpen.weight is missing, so there would be no penalty: write one"),
        ("sweeps={}", "sweeps = {} must be a list"),
        ("grid={replicates: [1]}", "grid.replicates can't be swept; sweep keys of"),
        ("grid={lr: [1]}", "grid.lr can't be swept; did you mean train.lr?"),
        ("grid={layers: [1]}", "grid.layers can't be swept; did you mean model.layers?"),
        ("sweeps=[{each: {p_ignore: [0.5]}}]", "sweeps[0].each.p_ignore can't be swept; did you mean task.p_ignore?"),
        ("conditions={a: {lr: 1}}", "conditions.a has no key 'lr'; did you mean train.lr?"),
        ("grid={train.lr: 3}", "grid.train.lr = 3 must be a list of at least one value"),
        ("sweeps=[{each: {train.lr: [1]}, zip: {train.lr: [1]}}]", "sweeps[0] must have exactly one of grid, each and zip"),
        ("sweeps=[{zip: {train.lr: [1], train.steps: [1, 2]}}]", "train.lr has 1, train.steps has 2: give lists of one length"),
        ("sweeps=[{each: {train.le: [1]}}]", "condition train.le=1: train.le is not an option of the training"),
        ("conditions.lstm.modle.name=lstm", "conditions.lstm has no key 'modle'; did you mean model?"),
    ],
)
def test_bad_input_is_one_clear_sentence(override, message):
    assert message in refusal(override)


def test_an_override_that_the_shell_took_apart_is_told_to_be_quoted():
    words = "seeds={init: [0, 1], data: 3}".split(" ")
    assert "'[0,' on the command line is no override: put quotes around all of seeds=…" in refusal(*words)
    assert "write key=value" in refusal("seeds={from: 3}", "replicates")


def test_a_key_that_conditions_also_set_lists_them():
    conditions = {"a": {"train": {"lr": 0.1}}, "b": {}, "c": {"train": {"lr": 0.2}}}
    assert "by 2 of 3 conditions (a; c)" in refusal("train.lr=0.3", conditions=conditions)
    assert "(train.lr=0.1; train.lr=0.2)" in refusal("train.lr=0.3", sweeps=[{"each": {"train.lr": [0.1, 0.2]}}])
    assert "(model.layers=2)" in refusal("replicates=3", sweeps=[{"each": {"model.layers": [2]}, "replicates": 9}])


def test_lists_of_seeds_and_a_number_of_replicates_set_the_same():
    """Each point would keep its own, and the override would change nothing."""
    seeded = [{"grid": {"train.lr": [0.1, 0.2]}, "seeds": {"init": "0..1", "data": "0..1"}}]
    assert "set by 2 of 2 conditions (train.lr=0.1; train.lr=0.2)" in refusal("replicates=50", sweeps=seeded)
    assert [len(each.seeds) for each in small_study("replicates=2", sweeps=[{"each": {"train.lr": [0.1]}}]).conditions] == [2]
    counted = {"a": {"replicates": 2}, "b": {"train": {"lr": 0.1}}}
    assert "set by 1 of 2 conditions (a)" in refusal("seeds.init=0..1", "seeds.data=0..4", conditions=counted)
    assert small_study("seeds={from: 7}", conditions=counted).conditions[0].seeds[0] == (7, 7)


def test_an_override_without_an_effect_is_refused():
    assert "every condition has its own model" in refusal("model.layers=3", conditions={"lstm": {"model": {"name": "lstm"}}})
    assert "the study gives seeds" in refusal("replicates=3", seeds={"init": 0, "data": 0})
    lost = refusal("scale=x", seeds={"init": 0, "data": 0}, scales={"x": {"replicates": 3}})
    assert lost.startswith("replicates of scale x changes nothing: the study gives seeds")
    assert "train.lr on the command line is given twice: keep one" in refusal("train.lr=1", "train.lr=2")
    assert "train and train.lr on the command line set the same thing: keep one" in refusal("train={lr: 1}", "train.lr=2")
    assert "or write wandb.mode=… in place of wandb=…" in refusal("wandb=online", "wandb.runs=condition")
    two = {"a": {"train.lr": 0.1}, "b": {}}
    assert "only=[…]" in refusal("conditions={}", conditions=two)
    for word in ("evaluate.sets={}", "evaluate.sets.sparse={}", "conditions.a={}"):
        assert refusal(word, conditions=two).startswith(f"{word} on the command line changes nothing")
    two["b"] = {"train.lr": 0.2}
    assert [condition.name for condition in small_study("conditions.c={}", conditions=two).conditions] == [*"abc"]


def test_a_change_of_a_condition_that_the_study_lacks_is_refused():
    """A typing error would leave the condition that is meant as it is, and train one more."""
    conditions = {"base": {}, "slow": {"train": {"lr": 1e-5}}}
    message = refusal("conditions.slwo.train.steps=3", conditions=conditions)
    assert "the study has no condition 'slwo'; conditions: base, slow; did you mean slow?" in message
    added = by_name(small_study("conditions.new={train: {steps: 3}}", conditions=conditions))
    assert (list(added), added["new"].train.steps) == (["base", "slow", "new"], 3)
    assert list(by_name(small_study("conditions.a.train.steps=3", "conditions.b.train.steps=4"))) == ["a", "b"]


def test_a_change_of_an_evaluation_set_that_the_study_lacks_is_refused():
    sets = {"sparse": {"p_ignore": 0.98, "sequences": 9}, "dense": {"p_ignore": 0.1, "sequences": 9}}
    message = refusal("evaluate.sets.sprse.sequences=3", evaluate={"sets": sets})
    assert "the study has no evaluation set 'sprse'; evaluation sets: sparse, dense; did you mean sparse?" in message
    added = small_study("evaluate.sets.new={sequences: 3}", "evaluate.sets.dense.sequences=4", evaluate={"sets": sets})
    assert [(each.name, each.sequences) for each in added.sets] == [("sparse", 9), ("dense", 4), ("new", 3)]


def test_a_condition_may_be_changed_however_it_is_written():
    """As a dotted path in the file and nested on the command line; a name with a dot, which no path can hold, as a mapping."""
    conditions = {"slow": {"train.lr": 1e-5, "model.layers": 2}, "v1.5": {"train.lr": 1e-4}}
    changed = by_name(small_study("conditions.slow.train.lr=2e-5", conditions=conditions))["slow"]
    assert (changed.train.lr, changed.model.layers) == (2e-5, 2)
    scaled = {"x": {"conditions": {"slow": {"train": {"lr": 3e-5}}}}}
    assert by_name(small_study("scale=x", conditions=conditions, scales=scaled))["slow"].train.lr == 3e-5
    message = refusal("conditions.v1.5.train.lr=2e-4", conditions=conditions)
    assert message.endswith("the condition 'v1.5' has a dot in its name, so write 'conditions={v1.5: {…}}', in quotes")
    assert by_name(small_study("conditions={v1.5: {train: {lr: 2e-4}}}", conditions=conditions))["v1.5"].train.lr == 2e-4


@pytest.mark.parametrize("grid", [{"task.length": [8, 16]}, {"task": {"length": [8, 16]}}])
def test_the_command_line_replaces_one_axis_of_a_grid_however_the_file_spells_it(grid):
    tree = yaml.safe_load(STUDY) | {"grid": grid | {"train.lr": [1e-3, 1e-2]}}
    study = from_tree(tree, ["grid.task.length=[12]"])
    assert {condition.task.length for condition in study.conditions} == {12}
    assert {condition.train.lr for condition in study.conditions} == {1e-3, 1e-2}
