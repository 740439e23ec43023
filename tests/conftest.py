"""Tests use no network, and every process runs one thread: on two cores, two processes of two threads each are many times slower."""

import atexit
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

os.environ |= {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}

# measurements are kept for the tests of one process alone, and none of an earlier day or in the person's own cache
os.environ["MANYSEEDS_CACHE"] = tempfile.mkdtemp()
atexit.register(shutil.rmtree, os.environ["MANYSEEDS_CACHE"], ignore_errors=True)

CLUSTERS = {
    "test_chaos",
    "test_cluster",
    "test_cluster_kinds",
    "test_documented_job",
    "test_experiments_ray",
    "test_faults_ray",
    "test_host_memory",
    "test_metrics",
    "test_stages",
}
# the longest groups after these, in this order: one that began last would leave the others idle
LONGEST = (
    "test_documented_commands",
    "test_types",
    "test_first_gpu",
    "test_accessibility",
    "test_report",
    "test_cli",
    "test_docs",
)
# files that train studies and look at rows alone: a report's figures take longer than these trainings
UNREPORTED = {
    "test_adaptive",
    "test_alignment_probe",
    "test_associations_probe",
    "test_automata",
    "test_boundaries",
    "test_concentration",
    "test_cost",
    "test_distillation_probes",
    "test_distillation_tasks",
    "test_exchange",
    "test_glitches",
    "test_heads",
    "test_lego_page",
    "test_lego_training",
    "test_probes",
    "test_rerun",
    "test_rescore",
    "test_scratchpad",
    "test_simulation",
    "test_tracing_run",
}
# files that look at the PNG files of a report; in the others a figure is drawn as SVG alone, which is most of a report's time still
PICTURED = {"test_automata_page", "test_figure_files", "test_report"}
# files that read a report's text and tables: its figures are made, and not drawn
UNDRAWN = {
    "test_built_in",
    "test_changed_settings",
    "test_cli",
    "test_malicious_store",
    "test_methods",
    "test_methods_of_experiments",
    "test_no_dead_ends",
    "test_renamed",
}
NOTHING_DRAWN = '<svg xmlns="http://www.w3.org/2000/svg" width="1pt" height="1pt"></svg>\n'
# folders whose imports together take half of the time each
HALVES = (("tests/results", "tests/launch"), ("tests/benchmarks", "tests/harness", "tests/models", "tests/tasks"))
# `pytest -m quick`: files of every floor that take seconds
QUICK = {
    "tests/tasks/automata/test_semiautomata.py",
    "tests/tasks/distillation/test_parity.py",
    "tests/tasks/lego/test_group_actions.py",
    "tests/tasks/subsequences/test_associations.py",
    "tests/models/lego/test_clauses.py",
    "tests/models/test_lstm.py",
    "tests/models/transformer/test_positions.py",
    "tests/harness/executing/test_leases.py",
    "tests/harness/planning/test_plan.py",
    "tests/harness/study/test_identity.py",
    "tests/harness/test_draw.py",
    "tests/harness/training/test_optimizer.py",
    "tests/harness/training/test_schedule.py",
    "tests/results/rows/test_summary.py",
    "tests/results/statistics/test_intervals.py",
    "tests/results/statistics/test_transition.py",
    "tests/results/store/test_schema.py",
    "tests/results/store/test_seal.py",
    "tests/launch/cluster/test_cluster_manifests.py",
    "tests/launch/test_errors.py",
    "tests/launch/cluster/test_slurm_script.py",
}


def _path(config, path):
    return path.relative_to(config.rootpath).as_posix()


def pytest_configure(config):
    gone = sorted(path for path in QUICK if not (config.rootpath / path).is_file())
    if gone:
        raise pytest.UsageError(f"QUICK in tests/conftest.py lists files that are not there: {', '.join(gone)}")


def pytest_ignore_collect(collection_path, config):
    """Skip the import of other test files in a quick run: importing all of them takes longer than the quick tests."""
    if config.option.markexpr == "quick" and collection_path.name.startswith("test_"):
        return _path(config, collection_path) not in QUICK
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config):
    """Import all test files once, half of them in each of two processes, if pip left the packages uncompiled.

    Otherwise every process compiles the same modules at the same time.
    """
    torch = importlib.util.find_spec("torch")
    if sys.dont_write_bytecode or Path(torch.cached).exists():
        return
    collect = [sys.executable, "-m", "pytest", "--collect-only"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    quiet = {"cwd": config.rootpath, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for process in [subprocess.Popen([*collect, *paths], **quiet) for paths in HALVES]:
        process.wait()  # what can't be imported is told by the processes that run it


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """With `-n 3 --dist loadgroup`, a file stays in one process, for its fixtures. All files that start Ray share one process.

    They go first, because they are the longest group. Meanwhile the other processes run the rest, beginning with the next longest.
    """
    for item in items:
        name, path = item.path.stem, _path(config, item.path)
        item.add_marker(pytest.mark.xdist_group("clusters" if name in CLUSTERS else path))
        if path in QUICK and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)
    order = {**dict.fromkeys(CLUSTERS, 0), **{name: place for place, name in enumerate(LONGEST, 1)}}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONGEST) + 1))


def pytest_collection_finish():
    """Look for garbage seldom, and never among what was imported: a twelfth of the tests' time went there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def pytest_unconfigure():
    gc.unfreeze()  # at their end, libraries say that what was never looked at leaks


@pytest.fixture(scope="session")
def page_cluster(tmp_path_factory):
    """One cluster for all files that need one, since starting it takes half a minute of both cores."""
    from tests.page_cluster import page_cluster

    with page_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(autouse=True, scope="module")
def _figures_are_drawn_where_they_are_looked_at(request):
    from results.report.plots import figure_files

    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem not in PICTURED:
            patch.setattr(figure_files, "png", lambda figure: b"")
        if request.path.stem in UNDRAWN:
            patch.setattr(figure_files, "svg", lambda figure: NOTHING_DRAWN)
        yield


@pytest.fixture(autouse=True, scope="module")
def _a_study_takes_no_longer_than_its_training(request):
    """Time the steps of a study only for a moment, because tests do not use the prediction; in some files, skip the report too.

    Tests of the timing itself are marked `measures`.
    """
    from tests.harness.killed import untimed, without_report

    if request.node.get_closest_marker("measures") is not None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        (without_report if request.path.stem in UNREPORTED else untimed)(patch)
        yield
