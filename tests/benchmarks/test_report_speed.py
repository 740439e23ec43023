from pathlib import Path

import pytest

from benchmarks.report_speed import BOUNDS, LAYOUTS, measure_layouts, text


@pytest.mark.slow
def test_a_report_of_many_conditions_stays_within_the_bounds_of_its_page_in_either_layout(tmp_path: Path) -> None:
    rows, found = measure_layouts(str(tmp_path), 110)
    assert rows == 110 * (3 + 100)
    assert sorted(found) == sorted(LAYOUTS)
    for measured in found.values():
        assert measured["page_bytes"] < BOUNDS["page_bytes"]
        assert 0 < measured["curves"] <= BOUNDS["curves"]
    page = text(110, rows, found, "")
    assert "110 replicates, 11,330 evaluation rows" in page
