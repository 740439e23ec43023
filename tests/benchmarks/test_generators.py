"""The benchmark of the generators runs and writes what it measured."""

import pyarrow.parquet as pq

from benchmarks import generators


def test_every_case_is_measured(tmp_path, capsys):
    small = ["--length", "10", "--words", "8", "--rounds", "2"]
    generators.main([*small, "--cases", "C2", "Dyck_4_2", "--out", str(tmp_path)])
    rows = pq.read_table(tmp_path / "generators.parquet").to_pylist()
    assert [(row["automaton"], row["states"], row["tokens"], row["elements"]) for row in rows] == [
        ("C2", 2, 2, 2),
        ("Dyck_4_2", 31, 4, None),
    ]
    assert all(rate > 0 and len(row["rates"]) == 2 for row in rows for rate in row["rates"])
    assert (tmp_path / "generators.md").read_text() in capsys.readouterr().out + "\n"
