"""The figures of experiments, from imported runs to what their captions say."""

from harness.exchange.finished_runs import Columns, import_runs
from results.report.values_report import draw_values
from results.rows.measures import measures_of
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store


def test_the_median_by_step_is_of_the_finite_values_and_its_caption_says_so(tmp_path):
    """The third run is diverged from its second step on, so at step 2 the median is that of 1 and 3."""
    rows = [(0, 1, 1.0), (0, 2, 1.0), (1, 1, 2.0), (1, 2, 3.0), (2, 1, 9.0), (2, 2, "nan")]
    (tmp_path / "runs.csv").write_text("lr,seed,step,score\n" + "".join(f"1,{','.join(map(str, row))}\n" for row in rows))
    store = open_store(tmp_path / "runs", "own")
    import_runs(store, tmp_path / "runs.csv", Columns("seed", ("lr",), {"score": "lower"}, "step"), "q", lambda text: None)
    manifest = manifest_of(store)
    study = read_study(store, manifest)
    by_name = {
        each.name: each for each in draw_values(study.replicates, measures_of(manifest, study.evaluations), study.evaluations)
    }
    drawing = by_name["curves-score"]
    (panel,) = drawing.made().axes
    median = max(panel.lines, key=lambda line: line.get_linewidth())
    assert [list(each) for each in median.get_data()] == [[1, 2], [2.0, 2.0]]
    assert drawing.caption.endswith("; bold: the median of those with a finite value there.")
