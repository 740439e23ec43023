"""Lemmas A.2 and A.3 and theorem A.4 of Sun et al. 2025: weights written by hand against reading every string from left to right."""

import itertools

import pytest
import torch

from benchmarks.subsequence_theory import apart, detected, directions, driven_out, every, planted, readout
from benchmarks.theory.subsequence_constructions import detector, halves, last, latest_start, layers


def contained(piece, strings):
    """By definition: some choice of positions, in order, spells the piece."""
    return torch.tensor([piece in itertools.combinations(string, len(piece)) for string in strings.tolist()])


@pytest.mark.parametrize(("sharpness", "mean"), [(5.0, 0.87), (10.0, 0.999), (20.0, 1.0), (40.0, 1.0)])
def test_a_pair_is_detected_where_the_second_head_copies(sharpness, mean):
    # the means of the reference's own check, with other random vectors
    found, least, greatest = detected(sharpness, None, draws=2)
    assert found == pytest.approx(mean, abs=0.02)
    assert least > 0.5 > greatest


@pytest.mark.parametrize("sharpness", [10.0, 40.0])
def test_a_pair_is_not_detected_with_the_printed_second_head(sharpness):
    found, least, _ = detected(sharpness, 1.0, draws=2)
    assert found == pytest.approx(0.24, abs=0.03)
    assert least < 0.5


def test_without_the_pair_the_indicator_does_not_fall_with_the_sharpness():
    assert [detected(each, None, draws=2)[2] > 0.05 for each in (10.0, 20.0, 40.0)] == [True, True, True]


def test_a_pair_of_one_token_twice_is_found_in_a_single_one():
    vectors = torch.eye(3, dtype=torch.float64)
    found = detector(vectors[torch.tensor([[0, 1, 2]])], vectors[0], vectors[0], 40.0)
    assert float(found) == pytest.approx(1)
    assert readout(torch.tensor([[0, 1, 2]]), [(0, 0)], last, printed=False)[0, 0] < 1e-9


def test_the_weights_of_pairs_are_shares_of_counts():
    # e^(count · sharpness), as printed, would make them 1 and 0
    string, wanted = torch.tensor([[0, 0, 2, 3, 1]]), [(0, 1), (2, 1), (3, 2)]
    assert readout(string, wanted, halves, printed=True)[0].tolist() == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-9)


def test_all_pairs_are_embedded_in_one_layer():
    strings, wanted = every(4, 5), list(itertools.permutations(range(4), 2))
    found = readout(strings, wanted, halves, printed=True) > 0.1
    assert torch.equal(found, torch.stack([contained(piece, strings) for piece in wanted], dim=-1))
    wanted = list(itertools.product(range(4), repeat=2))
    found = readout(strings, wanted, halves, printed=False) > 0.5
    assert torch.equal(found, torch.stack([contained(piece, strings) for piece in wanted], dim=-1))


CASES = [(4, 6, (0, 1, 2)), (4, 6, (0, 0, 1)), (4, 6, (0, 1, 2, 3)), (2, 10, (0, 1, 1, 0, 1, 0, 0, 1))]


@pytest.mark.parametrize(("alphabet", "length", "piece"), CASES)
def test_corrected_constructions_find_a_piece_in_exactly_the_strings_that_have_it(alphabet, length, piece):
    strings = every(alphabet, length)
    there = contained(piece, strings)
    assert torch.equal(readout(strings, [piece], last, printed=False)[:, 0] > 0.5, there)
    assert torch.equal(latest_start(strings, piece)[:, -1] > 0, there)


@pytest.mark.parametrize(("alphabet", "length", "piece"), CASES)
def test_the_printed_construction_finds_halves_that_interleave(alphabet, length, piece):
    strings = every(alphabet, length)
    there, found = contained(piece, strings), readout(strings, [piece], halves, printed=True)[:, 0] > 0.5
    assert torch.equal(found, apart(piece, strings))
    assert bool((found & ~there).any()) == (piece != (0, 1, 2))


def test_acbd_is_taken_for_abcd():
    string = torch.tensor([[0, 2, 1, 3]])
    for printed in (True, False):
        assert float(readout(string, [(0, 1, 2, 3)], halves, printed)[0, 0]) == pytest.approx(1)
    assert float(readout(string, [(0, 1, 2, 3)], last, printed=False)[0, 0]) < 1e-9


def test_one_head_for_all_drives_pieces_out():
    assert [driven_out(each, printed=True) < 0.01 for each in (10.0, 20.0, 40.0)] == [True, True, True]
    assert driven_out(40.0, printed=True) < 1e-6
    assert driven_out(40.0, printed=False) == pytest.approx(1)


def test_depths():
    assert [len(layers([tuple(range(length))], halves)) for length in (2, 3, 4, 5, 8, 9, 16)] == [1, 2, 2, 3, 3, 4, 4]
    assert [len(layers([tuple(range(length))], last)) for length in (2, 3, 4, 8)] == [1, 2, 3, 7]


@pytest.mark.parametrize("length", [3, 4, 8])
def test_random_vectors_do_too(length):
    generator = torch.Generator().manual_seed(1)
    piece = tuple(range(length))
    strings = planted(piece, 10, 16, 120, generator)
    found = readout(strings, [piece], last, printed=False, rows=directions(40, 1024, generator))[:, 0]
    there = latest_start(strings, piece)[:, -1] > 0
    assert 60 <= int(there.sum()) < 100
    assert found[there].min() > 0.5 > found[~there].max()


def test_the_latest_start_is_the_latest_one():
    strings = every(3, 5)
    for piece in ((0, 1), (0, 1, 0), (2,)):
        for string, start in zip(strings.tolist(), latest_start(strings, piece)[:, -1].tolist(), strict=True):
            places = [
                each[0] + 1 for each in itertools.combinations(range(5), len(piece)) if tuple(string[i] for i in each) == piece
            ]
            assert start == max(places, default=0)
