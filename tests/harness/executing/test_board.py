"""What packs say on the board of a run, and what their driver hears of it."""

from types import SimpleNamespace

import pytest

from harness.executing import board
from harness.executing.board import Board, Link
from harness.planning.plan import shape
from harness.planning.throughput import Rate
from harness.study.slot_kinds import Kind
from results.store.tables import open_store
from tests.harness.executing.ray_double import STEPS, Life, Node, RayDouble, run_packs
from tests.harness.packs import condition, pack

SLOT = Kind("cpu")


@pytest.mark.parametrize("seconds", [0.3, 7.6])
def test_what_a_pack_says_at_its_end_is_told(seconds, tmp_path, monkeypatch, capsys):
    packs = [pack(condition("lstm", steps=STEPS), [seed]) for seed in range(3)]
    ray = RayDouble([Node("only", {"CPU": 1.0})], lambda ran, node: Life(seconds, says="the last word"))
    run_packs(packs, open_store(tmp_path, "tiny"), ray, [SLOT], {shape(packs[0].signature, ""): Rate(1, 1.0, 0.0)}, monkeypatch)
    said = capsys.readouterr().out
    assert [f"pack {ended.id}: the last word" in said for ended in packs] == [True] * 3


def test_a_link_hands_over_what_was_said_since_its_last_note(monkeypatch):
    there = Board()
    monkeypatch.setattr(
        board, "ray", SimpleNamespace(wait=lambda references, timeout: (references, []), get=lambda answer: answer)
    )
    link = Link(SimpleNamespace(note=SimpleNamespace(remote=there.note)), 7)
    link.report(3)
    link.say("too late for a note")
    link.close()
    assert there.take() == ({7: 3}, [(7, "too late for a note")])
