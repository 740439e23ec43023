from harness.deaths import Deaths


def test_a_pack_is_retried_while_its_checkpoint_advances():
    deaths = Deaths()
    assert [deaths.verdict("a", 4, step, False) for step in (0, 0, 10, 10, 20, 30)] == ["retry"] * 6


def test_three_deaths_at_one_step_halve_a_pack_and_end_a_single_replicate():
    deaths = Deaths()
    assert [deaths.verdict("a", 4, 5, False) for _ in range(3)] == ["retry", "retry", "halve"]
    assert [deaths.verdict("b", 1, 5, False) for _ in range(3)] == ["retry", "retry", "died"]


def test_a_lost_node_is_no_fault_of_the_pack():
    deaths = Deaths()
    assert [deaths.verdict("a", 1, 0, True) for _ in range(9)] == ["retry"] * 9
