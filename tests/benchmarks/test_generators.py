"""The benchmark of the generators runs and writes what it measured."""

import pyarrow.parquet as pq

from benchmarks import generators


def test_every_case_is_measured(tmp_path, capsys):
    small = ["--length", "10", "--words", "8", "--rounds", "2"]
    generators.main([*small, "--cases", "C2", "Dyck_4_2", "--lego", "--grammars", "--out", str(tmp_path)])
    rows = pq.read_table(tmp_path / "generators.parquet").to_pylist()
    assert [(row["automaton"], row["states"], row["tokens"], row["elements"]) for row in rows] == [
        ("C2", 2, 2, 2),
        ("Dyck_4_2", 31, 4, None),
    ]
    assert all(rate > 0 and len(row["rates"]) == 2 for row in rows for rate in row["rates"])
    assert (tmp_path / "generators.md").read_text() in capsys.readouterr().out + "\n"


def test_lego_is_measured(tmp_path, capsys):
    generators.main(
        ["--cases", "--grammars", "--lego", "C6:5", "S3:40", "--clauses", "80", "--rounds", "2", "--out", str(tmp_path)]
    )
    rows = pq.read_table(tmp_path / "generators_lego.parquet").to_pylist()
    assert [(row["group"], row["length"], row["sentences"]) for row in rows] == [("C6", 5, 16), ("S3", 40, 2)]
    assert all(rate > 0 and len(row["rates"]) == 2 for row in rows for rate in row["rates"])
    assert (tmp_path / "generators_lego.md").read_text() in capsys.readouterr().out + "\n"
    assert not (tmp_path / "generators.md").exists()


def test_grammars_and_parities_are_measured(tmp_path, capsys):
    small = ["--strings", "8", "--rounds", "2"]
    generators.main(["--cases", "--lego", "--grammars", "cfg3b", "sparse_parity", *small, "--out", str(tmp_path)])
    rows = pq.read_table(tmp_path / "generators_strings.parquet").to_pylist()
    assert [(row["task"], row["length"], len(row["tree_rates"])) for row in rows] == [
        ("cfg3b", 512, 2),
        ("sparse_parity", 100, 0),
    ]
    assert all(rate > 0 for row in rows for part in ("rates", "small_rates", "tree_rates") for rate in row[part])
    assert (tmp_path / "generators_strings.md").read_text() in capsys.readouterr().out + "\n"
