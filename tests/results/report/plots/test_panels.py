"""What all figures share: ticks at whole numbers, and room for a legend."""

import numpy as np
import pytest
from matplotlib.lines import Line2D

from results.report.plots.figure_files import svg
from results.report.plots.panels import legend, titled_panels


@pytest.mark.parametrize(("places", "whole"), [([1, 2, 3], True), ([1.0, 1.5, 3.0], False), ([0, 5000, 10000], True)])
def test_ticks_over_whole_numbers_are_whole(places, whole):
    with titled_panels(["a"], 4, 3, "step") as (_, (panel,)):
        panel.plot(places, np.ones(len(places)))
    ticks = panel.get_xticks()
    assert (ticks == np.round(ticks)).all() == whole


@pytest.mark.parametrize(("count", "length"), [(2, 4), (13, 24), (13, 60)])
def test_a_long_legend_leaves_the_panels_their_height(count, length):
    """The room that a caller leaves is for two names a row; long names stand in one column."""
    with titled_panels(["a"], 4, 3, above=0.2 + 0.1 * count) as (figure, (panel,)):
        panel.plot([0, 1], [0, 1])
        legend(figure, {f"{number:>{length}}": Line2D([], []) for number in range(count)})
    svg(figure)
    height = panel.get_position().height * figure.get_figheight()
    assert 2.0 < height < 3.2
