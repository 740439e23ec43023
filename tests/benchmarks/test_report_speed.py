from pathlib import Path

from benchmarks.report_speed import BOUNDS, measure, text, write_store


def test_a_report_of_many_conditions_stays_within_the_bounds_of_its_page(tmp_path: Path) -> None:
    rows = write_store(str(tmp_path), 230)
    assert rows == 230 * (3 + 100)
    found = measure(str(tmp_path), str(tmp_path / "report"))
    assert found["page_bytes"] < BOUNDS["page_bytes"]
    assert 0 < found["curves"] <= BOUNDS["curves"]
    page = text(230, rows, found, "")
    assert "230 replicates, 23,690 evaluation rows" in page
