"""Glitches of replicates: as many as were committed, where a reader of the prompts finds them, with attention written out in loops."""

import math
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import torch

from harness.exchange.replicate import find
from harness.exchange.weights import single
from harness.planning.pack import ScoredSet
from harness.probes.flipflop.glitch_record import record
from harness.probes.flipflop.glitches import attended, glitches, margin
from harness.probes.flipflop.heads import look
from harness.run import run as run_study
from harness.study.load import load
from harness.training import weights as artifacts
from launch.cli import main
from results.report.flipflop import glitches as files
from results.store.tables import Store, committed, open_store, read
from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation
from tests.harness.probes.flipflop.decoders import build_decoder, heads_in_loops
from tests.models.transformer.flip_flop_construction import flip_flop_construction
from tests.rounding import rounded_single

STUDY = """
name: glitchy
question: Where do heads look when they fail?
task: {name: flipflop, length: 16}
model: {name: transformer, layers: 2, width: 8, heads: 2}
train: {steps: 6, batch: 4, warmup: 0}
evaluate: {sets: {sparse: {p_ignore: 0.9, sequences: 20}, dense: {p_ignore: 0.1, sequences: 30}}}
conditions:
  transformer: {}
  lstm: {model: {name: lstm, width: 8}}
  simulation: {task: {name: flipflop_simulation, length: 16}, model: {layers: 1, causal: false}}
  diverged: {train: {lr: 1.0e+30, clip: 0}}
replicates: 3
executor: local
wandb: off
keep: steps(2)
pack: {size: 3}
"""

PARITY = """
name: parity
question: Is it another task?
task: {name: sparse_parity, length: 8, degree: 2}
model: {name: mlp, width: 8}
train: {steps: 2, batch: 4, warmup: 0}
evaluate: {sets: {own: {sequences: 4}}}
conditions: {parity: {}}
replicates: 1
executor: local
wandb: off
keep: all
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("glitches")
    for name, text in (("glitchy", STUDY), ("parity", PARITY)):
        (folder / f"{name}.yaml").write_text(text)
        study = load(str(folder / f"{name}.yaml"), [f"store={folder / 'runs'}", "device=cpu"])
        assert run_study(study, say=lambda line: None) == 0
    return open_store(folder / "runs", "glitchy")


def keys(store: Store, condition: str) -> list[str]:
    rows = committed(store).filter(pc.field("condition") == condition).sort_by("init_seed")
    return [str(key) for key in rows["key"].to_pylist()]


def answer_by_hand(tokens: list[int]) -> tuple[int, int, int, int]:
    """Of a prompt of the language that ends with `r`: the bit, where it stands, and pairs since the write and the last w or r."""
    pairs = [tokens[i : i + 2] for i in range(0, len(tokens) - 1, 2)]
    write = max(i for i, pair in enumerate(pairs) if pair[0] == 0)
    event = max(i for i, pair in enumerate(pairs) if pair[0] != 2)
    return pairs[write][1], 2 * write + 1, len(pairs) - write, len(pairs) - event


@pytest.mark.parametrize("condition", ["transformer", "lstm"])
@pytest.mark.parametrize("name", ["sparse", "dense"])
def test_every_committed_error_is_found_where_a_reader_of_the_prompt_finds_it(store: Store, condition: str, name: str) -> None:
    key, *sisters = keys(store, condition)
    _, told = record([store], key[:12], name, device="cpu")
    found = files.read(store, key, name)
    assert found is not None
    about, table = found
    assert about == told
    rows = table.to_pylist()
    evaluations = read(store, "evaluations", filter=(pc.field("key") == key) & (pc.field("set") == name))
    (counts,) = [row for row in evaluations.to_pylist() if row["metric"] == "read"]
    assert len(rows) == counts["errors"] == about.errors > 0
    assert len({row["string"] for row in rows}) == counts["sequences_wrong"]
    assert [each["key"] for each in about.sisters] == sisters
    assert about.steps == [2, 6]
    models = [module(store, each, step) for each, step in ((key, 2), (key, 6), (sisters[0], 6), (sisters[1], 6))]
    for row in rows:
        right, write, since_write, since_event = answer_by_hand(row["prompt"])
        assert (row["right"], row["write"], row["since_write"], row["since_event"]) == (right, write, since_write, since_event)
        assert row["position"] == len(row["prompt"]) - 1
        logits = [model(torch.tensor([[row["prompt"]]]))[0, 0, -1].tolist() for model in models]
        given = [each[7 - right] - each[right] for each in logits]
        assert row["margins"] == pytest.approx(given[:2], abs=1e-5)
        assert row["margin"] == pytest.approx(given[1], abs=1e-5)
        assert row["sister_margins"] == pytest.approx(given[2:], abs=1e-5)
        assert row["answer"] == max(range(5), key=lambda token: logits[1][token]) != right
        assert row["sister_wrong"] == [max(each) > each[right] for each in logits[2:]]


@torch.no_grad()
def test_the_heads_of_a_glitch_are_those_of_attention_in_loops() -> None:
    task = FlipFlop(length=10, p_ignore=0.2)
    model = build_decoder(task, 3, layers=2, heads=2, bias=True).double()
    found = glitches(model, ScoredSet("own", task, 20, None, "0123456789abcdef"), 5, torch.device("cpu"), "fp32")
    assert len(found.string) == 5
    for n, seen in enumerate(attended(model, found, kept=4)):
        for layer, members in enumerate(heads_in_loops(model, found.tokens[n])):
            for head, (weights, norms) in enumerate(members):
                row, read_ = weights[found.position[n]], weights[found.position[n]] * norms
                large = [max(float(row[j]), float(read_[j] / read_.sum())) for j in range(10)]
                large[int(found.write[n])] = 2
                order = sorted(range(10), key=lambda j: -large[j])[:4]
                assert [j for j in seen["keys"][layer, head].tolist() if row[j]] == [j for j in order if row[j]]
                torch.testing.assert_close(seen["weights"][layer, head], row[order])
                torch.testing.assert_close(seen["norms"][layer, head], read_[order])
                torch.testing.assert_close(seen["totals"][layer, head], read_.sum())


def test_the_construction_has_no_glitch_and_one_head_with_the_ideal_pattern() -> None:
    """Proposition 3 with its sharpness; with a hundredth of it attention is diluted, and the same places fail."""
    task, on = FlipFlop(length=128, p_ignore=0.5), torch.device("cpu")
    scored = ScoredSet("own", task, 20, None, "0123456789abcdef")
    good, bad = flip_flop_construction(128), flip_flop_construction(128, 128 * math.log(32 * 128) / 100)
    assert len(glitches(good, scored, 1000, on, "fp32").string) == 0
    found = glitches(bad, scored, 1000, on, "fp32")
    assert len(found.string) > 20
    tokens, index = found.tokens, torch.arange(len(found.string))
    assert float(look(good, tokens).weights[1][index, 0, found.position, found.write].min()) > 0.99
    assert float(look(bad, tokens).weights[1][index, 0, found.position, found.write].max()) < 0.9


def test_a_limit_stops_at_the_first_glitches_and_counts_the_strings_before() -> None:
    task, on = FlipFlop(length=16, p_ignore=0.1), torch.device("cpu")
    scored = ScoredSet("own", task, 3000, None, "0123456789abcdef")  # several batches
    model = build_decoder(task, 5)
    every = glitches(model, scored, 10**9, on, "fp32")
    assert every.looked == 3000
    some = glitches(model, scored, 1500, on, "fp32")
    assert some.looked == int(every.string[1499]) + 1
    for name in ("string", "position", "margin", "write", "tokens"):
        torch.testing.assert_close(getattr(some, name), getattr(every, name)[:1500])


def test_a_margin_is_of_bits_alone() -> None:
    logits = torch.tensor([[9.0, 8.0, 7.0, 1.0, 3.0, 2.5]])
    assert margin(FlipFlop(length=4, symbols=3), logits, torch.tensor([3])).item() == 2.0
    assert margin(FlipFlop(length=4, symbols=3), logits, torch.tensor([4])).item() == -0.5
    assert margin(Simulation(length=4), logits[:, 3:5], torch.tensor([1])).item() == -2.0


def test_the_simulation_has_the_whole_string_where_the_model_sees_it(store: Store) -> None:
    key = keys(store, "simulation")[0]
    store_, about = record([store], key, device="cpu")
    found = files.read(store_, key, about.set)
    assert found is not None
    for row in found[1].to_pylist():
        assert len(row["prompt"]) == 16
        assert max(i for i in range(row["position"] + 1) if row["prompt"][i]) == row["write"]
        assert row["right"] == row["prompt"][row["write"]] - 1 == 1 - row["answer"]
        assert len(row["keys"]) == about.layers * about.heads * about.kept == 32
        assert sum(row["weights"]) == rounded_single(2)


def test_the_command_lists_and_draws_them_and_does_nothing_twice(store: Store, tmp_path: Path, capsys: Any) -> None:
    key = keys(store, "transformer")[2]
    words = ["glitches", store.root, key, "--set", "dense", "--limit", "3", "--sisters", "1", "--out", str(tmp_path)]
    main(words)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f"glitchy: 3 glitches of {key[:12]} (transformer, seeds 2, 2) in ")
    assert len(printed) == 6
    assert Path(printed[-1]) == tmp_path / f"glitches-{key[:12]}-dense.html"
    file = Path(store.path("glitches", f"{key}-dense.parquet"))
    before = file.stat().st_mtime_ns
    main(words)
    assert capsys.readouterr().out.splitlines() == printed
    assert file.stat().st_mtime_ns == before
    main([*words[:6], "5", *words[7:]])
    assert file.stat().st_mtime_ns != before
    assert capsys.readouterr().out.startswith("glitchy: 5 glitches")


def test_a_smaller_call_prints_less_and_removes_nothing(store: Store, tmp_path: Path, capsys: Any) -> None:
    key = keys(store, "transformer")[1]
    words = ["glitches", store.root, key, "--set", "dense", "--out", str(tmp_path)]
    main(words)
    every = capsys.readouterr().out.splitlines()
    file = Path(store.path("glitches", f"{key}-dense.parquet"))
    stored = file.read_bytes()
    main([*words, "--limit", "5", "--sisters", "1"])
    few = capsys.readouterr().out.splitlines()
    assert file.read_bytes() == stored
    assert few[:2] == every[:2]
    assert [line.split()[:7] for line in few[2:7]] == [line.split()[:7] for line in every[2:7]]
    assert all(" of 1 " in line for line in few[2:7])
    assert all(" of 2 " in line for line in every[2:-1])
    assert few[7:] == [f"  {len(every) - 8} more are in {file}", every[-1]]


def test_a_page_that_can_not_be_written_is_said_before_the_list(store: Store, capsys: Any) -> None:
    words = ["glitches", store.root, keys(store, "transformer")[2], "--limit", "3", "--out", "/proc/pages"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert "can't be written" in shown.err
    assert not shown.out


def module(store: Store, key: str, step: int) -> torch.nn.Module:
    """The model of a kept step, scoring alone."""
    from harness.study.config import from_dict

    kept = find(store, key, step)
    condition = from_dict({"name": "any", "config": kept.config})
    return single(condition.model, 5, 16, kept.tensors).requires_grad_(False)


def test_what_can_not_be_looked_into_is_one_sentence(store: Store, tmp_path: Path) -> None:
    one = keys(store, "transformer")[0]
    parity = open_store(store.root, "parity")
    with pytest.raises(ValueError, match=r"flipflop and flipflop_simulation.* sparse_parity"):
        record([store, parity], keys(parity, "parity")[0], device="cpu")
    cases = {
        keys(store, "diverged")[0]: "of glitchy has diverged, so it has no answers to look into",
        "zz": "no key of the 12 replicates of the study glitchy begins with 'zz'",
    }
    for key, sentence in cases.items():
        with pytest.raises(ValueError, match=sentence):
            record([store], key, device="cpu")
    with pytest.raises(ValueError, match=r"set nothing: .*--set .*sparse, dense"):
        record([store], one, "nothing", device="cpu")
    with pytest.raises(ValueError, match=r"--limit 0 .*1 .*--sisters 2 .*0"):
        record([store], one, limit=0, sisters=2)
    last = keys(store, "lstm")[2]
    for step in artifacts.steps_of(store, last, 0):
        Path(artifacts.path(store, last, 0, step)).unlink()
    with pytest.raises(ValueError, match=rf"weights of {last} .*: manyseeds rerun \S+ {last[:8]} --keep"):
        record([store], last, device="cpu")
