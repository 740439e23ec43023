"""A study lists what its scale and the command line make smaller, of the settings that its conditions have."""

from tests.harness.study.small_study import small_study


def test_a_scale_states_its_reductions_and_selects_conditions():
    study = small_study(
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


def test_what_the_command_line_sets_instead_of_a_scale_is_no_reduction_of_it():
    """A verdict on strings of the paper's own length must not say that they are shorter."""
    scales = {
        "laptop": {
            "train": {"steps": 10, "batch": 8},
            "conditions": {"a": {"model": {"layers": 1}}, "b": {"model": {"layers": 1}}},
            "replicates": 1,
        }
    }
    conditions = {"a": {"model": {"layers": 2}}, "b": {"model": {"layers": 3}}}
    study = small_study(
        "scale=laptop", "train={steps: 15, batch: 16}", "only=[b]", "replicates=30", conditions=conditions, scales=scales
    )
    assert study.reductions == ("train.steps: 20 -> 15", "conditions.b.model.layers: 3 -> 1", "replicates: 2 -> 30")


LAPTOP = {"laptop": {"train": {"steps": 10}, "model": {"layers": 1}, "conditions": {"b": {"train": {"steps": 12}}}}}


def test_a_condition_is_smaller_than_what_it_took_over_from_the_whole_study():
    study = small_study(
        "scale=laptop", model={"name": "transformer", "layers": 2}, conditions={"a": {}, "b": {}}, scales=LAPTOP
    )
    assert study.reductions == ("train.steps: 20 -> 10", "model.layers: 2 -> 1", "conditions.b.train.steps: 20 -> 12")
    same = LAPTOP | {"laptop": {"train": {"steps": 10}, "conditions": {"b": {"train": {"steps": 20}}}}}
    assert small_study("scale=laptop", conditions={"a": {}, "b": {}}, scales=same).reductions == ("train.steps: 20 -> 10",)


def test_a_setting_that_all_conditions_have_of_their_own_is_told_of_these():
    """The ten steps of the scale are those of no condition."""
    study = small_study(
        "scale=laptop",
        "conditions.a.train.steps=15",
        "conditions.b.model.layers=3",
        model={"name": "transformer", "layers": 2},
        conditions={"a": {}, "b": {}},
        scales=LAPTOP,
    )
    assert study.reductions == (
        "conditions.a.train.steps: 20 -> 15",
        "model.layers: 2 -> 1",
        "conditions.b.model.layers: 2 -> 3",
        "conditions.b.train.steps: 20 -> 12",
    )


def test_a_condition_that_repeats_the_name_of_the_model_takes_over_its_layers():
    study = small_study(
        "scale=laptop",
        model={"name": "transformer", "layers": 2},
        conditions={"a": {"model": {"name": "transformer"}}},
        scales={"laptop": {"model": {"layers": 1}}},
    )
    assert study.reductions == ("model.layers: 2 -> 1",)


def test_what_the_command_line_drops_is_not_smaller():
    scales = {"laptop": {"train": {"monitor": {"sequences": 8}, "steps": 10}}}
    train = {"steps": 20, "monitor": {"sequences": 16, "every": 5}}
    assert "train.monitor.sequences: 16 -> 8" in small_study("scale=laptop", train=train, scales=scales).reductions
    study = small_study("scale=laptop", "train.monitor=null", train=train, scales=scales)
    assert study.reductions == ("train.steps: 20 -> 10",)


def test_an_lstm_takes_over_no_layers_of_a_transformer():
    study = small_study(
        "scale=laptop",
        "conditions.a.model.layers=2",
        model={"name": "transformer", "layers": 2},
        conditions={"a": {}, "b": {"model": {"name": "lstm"}}},
        scales=LAPTOP,
    )
    assert "model.layers: 2 -> 1" not in study.reductions
    lstm = LAPTOP | {"laptop": {"conditions": {"b": {"model": {"layers": 3}}}}}
    conditions = {"a": {}, "b": {"model": {"name": "lstm"}}}
    study = small_study("scale=laptop", model={"name": "transformer", "layers": 2}, conditions=conditions, scales=lstm)
    assert study.reductions == ("conditions.b.model.layers: unset -> 3",)


def test_the_points_of_a_sweep_take_over_what_each_condition_has_of_its_own():
    study = small_study(
        "scale=laptop",
        conditions={"a": {"train": {"steps": 15}}},
        sweeps=[{"grid": {"train.lr": [1e-3, 1e-2]}}],
        scales={"laptop": {"train": {"steps": 10}}},
    )
    assert {condition.train.steps for condition in study.conditions} == {10, 15}
    assert study.reductions == ("train.steps: 20 -> 10",)
