"""Markdown tables hold what they are given, whatever the names of conditions are."""

from results.markdown_table import markdown_table


def test_a_bar_in_a_name_is_no_border_of_a_cell():
    assert markdown_table(("a|b", "n"), [("x|y", None)]) == "| a\\|b | n |\n|---|---|\n| x\\|y | – |"
