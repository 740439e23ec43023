"""What settles a claim before its test: shares at their edge, seeds that are not shared, conditions that nothing tells apart."""

import pytest

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Settled
from results.claims.evidence import Condition
from results.claims.requirements import by_place, common_seeds, gate, only, require_all, require_each


def settled(call, *arguments):
    with pytest.raises(Settled) as raised:
        call(*arguments)
    return raised.value.finding.verdict, raised.value.finding.reason


def test_a_share_that_is_reached_exactly_is_enough():
    gate(14, 25, 0.56, "runs end")  # 0.56 * 25 is more than 14 in floating point
    assert settled(gate, 13, 25, 0.56, "runs end", "must") == (PRECONDITION, "13 of 25 runs end; 56% must")


def test_of_nothing_there_is_no_share():
    assert settled(gate, 0, 0, 0.0, "runs end")[0] == PRECONDITION


def test_all_that_there_are_and_at_least_as_many_as_the_claim_needs():
    require_all(10, 10, 10, "runs are probed")
    for count, total, needs in ((9, 10, 5), (9, 9, 10)):
        verdict, reason = settled(require_all, count, total, needs, "runs are probed")
        assert (verdict, f"{count} of {total} runs are probed" in reason) == (TOO_FEW, True)
    require_each(5, 6, 5, "are there")
    assert settled(require_each, 6, 4, 5, "are there")[0] == TOO_FEW


def test_seeds_are_shared_by_all_rows_and_in_order():
    rows = [{(2, 2): 0.0, (1, 1): 0.0}, {(1, 1): 0.0, (2, 2): 0.0, (3, 3): 0.0}]
    assert common_seeds(rows, 2, "are there") == [(1, 1), (2, 2)]
    assert settled(common_seeds, rows, 3, "are there") == (TOO_FEW, "2 seeds are there; the claim needs 3")


def test_conditions_that_nothing_tells_apart_are_named():
    one, twin, other = (Condition(name, {"width": width}, ()) for name, width in (("one", 1), ("twin", 1), ("other", 2)))
    assert by_place([one, other], lambda each: each.settings["width"], "have one width") == {1: one, 2: other}
    verdict, reason = settled(by_place, [one, twin], lambda each: each.settings["width"], "have one width")
    assert (verdict, reason.startswith("one and twin have one width")) == (NOT_RUN, True)
    assert only([one], "narrow") is one
    assert settled(only, [one, twin], "narrow")[0] == NOT_RUN
