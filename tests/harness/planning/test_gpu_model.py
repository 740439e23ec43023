"""The model of a GPU against counts that a reviewer of the CUDA code made by hand, and against the formula of the benchmarks."""

import dataclasses

import pytest
import torch

import models.lstm
from benchmarks.cases import CASES, Case, pack
from benchmarks.floor import needed_flop
from harness.draw import Draw
from harness.planning.gpu_model import Counted, Modelled, step_of, work_of
from harness.planning.gpus import _BANDWIDTH, _BF16, _EXPONENTIALS, GPUS, H200, _like_h200
from harness.planning.pack import ScoredSet
from harness.prepare import executor_of, prepare
from harness.study.load import load
from launch.cli import main
from models.lstm import LSTM
from models.transformer.transformer import Transformer
from tasks.flipflop.flipflop import FlipFlop
from tests.harness.tiny import write_study
from tests.page_code import ROOT

# kernels of a step and MB that a pack of two moves, fp32: more of either is a regression that no GPU is needed to see
COUNTS = {
    "tiny": (153, 1.52),
    "L1-d64-T128": (153, 80.4),
    "L1-d64-T512": (153, 289.2),
    "L2-d64-T128": (221, 223.2),
    "L2-d64-T512": (221, 835.4),
    "L2-d128-T128": (221, 477.8),
    "L2-d128-T512": (221, 1690.2),
    "L6-d512-T128": (493, 9111.6),
    "L6-d512-T512": (493, 26815.6),
    "mlp100": (45, 1.4),
    "mlp1000": (40, 20.1),
    "lstm128-T128": (2628, 445.2),
}


@pytest.fixture(scope="module")
def work():
    """Of the smallest of the transformers."""
    return work_of(*(pack(CASES["L1-d64-T128"], size) for size in (2, 3)))


def test_every_case_of_the_benchmarks_is_counted():
    """One alone is left out: it repeats for 512 tokens what an LSTM does for 128."""
    assert CASES.keys() - COUNTS.keys() == {"lstm128-T512"}


@pytest.mark.parametrize("name", COUNTS)
def test_a_step_launches_no_more_kernels_and_moves_no_more_bytes_than_before(name):
    kernels, megabytes = COUNTS[name]
    step = step_of(pack(CASES[name], 2))[0]
    assert len(step) <= kernels
    assert sum(kernel.bytes for kernel in step) / 1e6 <= megabytes


def test_drawing_strings_launches_no_more_kernels_than_before(work):
    """A kernel a draw, as Triton has it; torch takes 170."""
    assert len(work.drawing.two) <= 53


def test_a_draw_by_torch_takes_some_170_kernels(monkeypatch):
    # a process that has drawn much leaves the words to C
    monkeypatch.setattr(Draw, "_drawer", lambda draw, count: None)
    draw = Draw(torch.tensor([1, 2]), "dropout", torch.tensor([5, 5]))
    with Counted() as mode:
        mode._drawn["words"](draw, (4, 512))
    assert 160 <= len(mode.kernels) <= 190


def test_the_page_on_training_has_the_modelled_times_of_one_layer():
    one, gpus = pack(CASES["L1-d64-T512"], 64, precision="bf16"), Modelled(GPUS["h200"])
    compiled = gpus.measure(dataclasses.replace(one, numerics={**one.numerics, "compile": True})).step_s / 64
    said = f"the cost model says {1e6 * compiled:.0f} and {1e6 * gpus.measure(one).step_s / 64:.0f} µs"
    assert said in " ".join((ROOT / "docs/reference/training.md").read_text().split())


def test_dropout_takes_a_kernel_for_its_factors_and_one_each_way_for_its_product():
    plain, dropped = (
        step_of(
            pack(
                Case("small", Transformer(2, 64, 4, embedding_dropout=rate, feed_forward_dropout=rate), FlipFlop(length=16), 4),
                2,
            )
        )[0]
        for rate in (0.0, 0.1)
    )
    places = 3
    assert [kernel.name for kernel in dropped].count("factors") == places
    assert len(dropped) <= len(plain) + 4 * places


def test_kernels_and_bytes_are_those_of_a_reviews_count():
    """590 kernels a step of six layers, and 104 MB and 24 µs for each replicate of a full pack of one layer; bf16."""
    six = Case("six", Transformer(6, 64, 8), FlipFlop(length=16), 2)
    found = work_of(*(pack(six, size, precision="bf16") for size in (2, 3)))
    assert len(found.step.two) == pytest.approx(590, rel=0.1)
    one = work_of(*(pack(CASES["L1-d64-T512"], size, precision="bf16") for size in (2, 3)))
    assert sum(kernel.bytes for kernel in one.step.two) / 2 == pytest.approx(104e6, rel=0.1)
    assert one.step.seconds(256, GPUS["h200"], "bf16", 3e-6) / 256 == pytest.approx(24e-6, rel=0.3)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_recurrence_is_counted_as_if_it_walked_all_positions(layers, monkeypatch):
    """It walks two: hundreds would take minutes."""
    one = pack(Case("lstm", LSTM(16, layers), FlipFlop(length=16), 2), 2, precision="bf16")
    walked = []
    walk = models.lstm.walk
    short, _, memory = step_of(one)
    monkeypatch.setattr(Counted, "_two_of", lambda mode, positions: walked.append(len(positions)) or walk(positions))
    full, _, full_memory = step_of(one)
    assert (short, memory) == (full, full_memory)
    assert walked == [16] * 2 * layers


def test_products_are_those_of_the_formula(work):
    """Beside attention, whose heads of 16 are padded to 32 here."""
    case = CASES["L1-d64-T128"]
    products = sum(kernel.flop for kernel in work.step.two if not kernel.scores) / 2
    assert products == pytest.approx(needed_flop(case), rel=0.25)


def test_a_gpu_with_an_h200s_datasheet_is_one():
    alike = _like_h200(H200.name, _BF16 / 1e12, _BF16 / 2e12, 67, _BANDWIDTH / 1e12, 139, _EXPONENTIALS)
    assert alike.products == pytest.approx(H200.products, rel=1e-3)
    assert dataclasses.replace(alike, products=H200.products) == H200


def test_other_gpus_take_as_much_longer_as_their_datasheets_say(work):
    """From the shorter of the two ratios, of products and of bandwidth, to the longer; the smallest kernels take as long on each."""
    six = work_of(
        *(pack(Case("six", Transformer(6, 512, 8), FlipFlop(length=512), 2), size, precision="bf16") for size in (2, 3))
    )

    def times(name, of):
        return of.step.seconds(64, GPUS[name], "bf16", 3e-6) / of.step.seconds(64, H200, "bf16", 3e-6)

    assert 1 < times("h100", six) < 4.8 / 3.35
    assert 4.8 / 2.04 < times("a100", six) < 989 / 312
    assert 989 / 362 < times("l40s", six) < 4.8 / 0.864
    assert 4.8 / 1.008 < times("rtx4090", six) < 989 / 165
    assert 1 < times("rtx4090", work) < times("rtx4090", six)


def test_every_size_of_pack_follows_from_two_and_three(work):
    five, six = (pack(CASES["L1-d64-T128"], size) for size in (5, 6))
    direct = work_of(five, six).step.two  # counted at five
    extrapolated = [
        (two.bytes + 3 * (three.bytes - two.bytes), two.flop + 3 * (three.flop - two.flop))
        for two, three in zip(work.step.two, work.step.three, strict=True)
    ]
    assert [(kernel.bytes, kernel.flop) for kernel in direct] == extrapolated


def test_evaluation_counts_every_string_and_every_look():
    case = CASES["tiny"]
    plain = pack(case, 1)

    def evaluate_s(strings, every):
        sets = (ScoredSet("sparse", case.task, strings, every, "0" * 32),)
        replicates = tuple(dataclasses.replace(each, sets=sets) for each in plain.replicates)
        train = dataclasses.replace(plain.replicates[0].condition.train, steps=1000)
        condition = dataclasses.replace(plain.replicates[0].condition, train=train)
        replicates = tuple(dataclasses.replace(each, condition=condition) for each in replicates)
        return Modelled(GPUS["h200"]).measure(dataclasses.replace(plain, replicates=replicates)).evaluate_s

    whole = evaluate_s(100_000, None)
    assert evaluate_s(200_000, None) == pytest.approx(2 * whole)
    assert evaluate_s(100_000, 100) == pytest.approx(10 * whole)


def test_a_pack_that_is_not_compiled_takes_longer():
    """The times of the model are those of compiled packs, which is not what a study gets by default."""
    gpus, plain = Modelled(GPUS["h200"]), pack(CASES["tiny"], 1)
    compiled = gpus.measure(dataclasses.replace(plain, numerics={"compile": True}))
    assert gpus.measure(plain).step_s == 1.5 * compiled.step_s


def test_a_plan_for_gpus_counts_the_weights_that_are_kept(tmp_path):
    """As many bytes as a plan counts that measures."""
    loaded = load(write_study(tmp_path), ["only=[lstm]", "keep=all", f"store={tmp_path / 'runs'}", "executor=local"])
    modelled = prepare(loaded, Modelled(GPUS["h200"])).cost.weights
    assert modelled == prepare(loaded, executor_of(loaded)).cost.weights > 0


def test_a_plan_for_gpus_says_that_it_is_a_model(tmp_path, capsys):
    arguments = ["plan", write_study(tmp_path), "only=[lstm]", f"store={tmp_path / 'runs'}", "--on", "h200"]
    main([*arguments, "--gpus", "8"])
    said = capsys.readouterr().out
    assert "GPU-" in said
    assert "model of one NVIDIA H200" in said
    with pytest.raises(SystemExit):
        main(["plan", "quick", "--gpus", "8"])
    assert "--on h200" in capsys.readouterr().err
