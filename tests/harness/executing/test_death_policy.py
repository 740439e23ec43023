from harness.executing.death_policy import Deaths


def test_a_pack_is_retried_while_its_checkpoint_advances():
    deaths = Deaths()
    assert [deaths.verdict("a", 4, step, "n", ()) for step in (0, 0, 10, 10, 20, 30)] == ["retry"] * 6


def test_three_deaths_at_one_step_halve_a_pack_and_end_a_single_replicate():
    deaths = Deaths()
    assert [deaths.verdict("a", 4, 5, "n", ()) for _ in range(3)] == ["retry", "retry", "halve"]
    assert [deaths.verdict("b", 1, 5, "", ()) for _ in range(3)] == ["retry", "retry", "died"]


def test_a_lost_node_is_no_fault_of_the_pack():
    deaths = Deaths()
    assert [deaths.verdict("a", 1, 0, "n", {"n"}) for _ in range(9)] == ["retry"] * 9


def test_a_node_that_is_missed_only_after_its_workers_takes_its_deaths_back():
    deaths = Deaths()
    assert [deaths.verdict("a", 2, 0, node, ()) for node in ("n", "m")] == ["retry"] * 2
    assert deaths.verdict("a", 2, 0, "m", {"n"}) == "retry"
    assert deaths.verdict("a", 2, 0, "m", {"n"}) == "halve"


def test_deaths_before_the_first_word_are_waited_out_for_minutes_and_end_a_pack_whole():
    deaths, waits = Deaths(), []
    while deaths.verdict("a", 4, 0, "n", (), heard=False) == "retry":
        waits.append(deaths.wait_s("a"))
    assert waits == [1, 2, 4, 8, 16, 32, *[60] * 9]
    assert sum(waits) >= 600
    assert deaths.verdict("b", 4, 0, "n", (), heard=False) == "retry"
    assert deaths.wait_s("b") == 1


def test_a_word_of_the_pack_ends_the_row_of_deaths_before_it():
    deaths = Deaths()
    for _ in range(3):
        assert [deaths.verdict("a", 1, step, "n", (), heard=False) for step in range(15)] == ["retry"] * 15
        assert deaths.verdict("a", 1, 0, "n", (), heard=True) in ("retry", "died")
        assert deaths.wait_s("a") == 0


def test_a_worker_that_had_not_begun_on_a_node_that_is_lost_is_no_death():
    deaths = Deaths()
    assert [deaths.verdict("a", 1, 0, "n", {"n"}, heard=False) for _ in range(40)] == ["retry"] * 40
    assert deaths.wait_s("a") == 0
