"""Nothing reaches for the network, and every process runs one thread: two of two threads each are many times slower on two cores."""

import atexit
import os
import shutil
import tempfile

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
    "test_faults_ray",
    "test_host_memory",
    "test_metrics",
    "test_stages",
}
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
# `pytest -m quick`: files of every floor that take seconds
QUICK = {
    "tests/tasks/": {"test_associations", "test_group_actions", "test_majority", "test_parity", "test_semiautomata"},
    "tests/models/": {"test_clauses", "test_lstm", "test_positions", "test_transformer_options"},
    "tests/harness/": {"test_draw", "test_identity", "test_plan", "test_schedule", "test_optimizer", "test_train"},
    "tests/results/": {"test_schema", "test_statistics", "test_store", "test_summary", "test_transition"},
    "tests/launch/": {"test_studies"},
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """With `-n 2 --dist loadgroup` a file stays in one process, for its fixtures, and so do all files that start Ray: one at a time.

    These go first: they are the longest group, and the other process has the rest meanwhile.
    """
    for item in items:
        name, path = item.path.stem, item.path.relative_to(config.rootpath).as_posix()
        item.add_marker(pytest.mark.xdist_group("clusters" if name in CLUSTERS else path))
        if name in QUICK.get(path.removesuffix(item.path.name), ()) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)
    items.sort(key=lambda item: item.path.stem not in CLUSTERS)


@pytest.fixture(autouse=True, scope="module")
def _a_study_takes_no_longer_than_its_training(request):
    """Nobody asks a test how long a study would take, so its steps are timed for a moment; nor where its report is, in some files."""
    from tests.harness.killed import untimed, without_report

    with pytest.MonkeyPatch.context() as patch:
        (without_report if request.path.stem in UNREPORTED else untimed)(patch)
        yield
