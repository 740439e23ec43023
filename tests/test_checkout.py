"""What a clone gets stays small, and its workflows are valid."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from results.store.manifest import COMPRESSED

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "docs" / "studies"
LIMIT = 25 * 2**20  # bytes of docs/studies; a GPU machine that is lent a checkout takes 64 MiB in all


def _committed():
    """Files under docs/studies, without the reports that a person has made there."""
    return [path for path in STUDIES.rglob("*") if path.is_file() and "report" not in path.relative_to(STUDIES).parts]


def test_committed_studies_stay_small():
    assert 0 < sum(path.stat().st_size for path in _committed()) < LIMIT


def test_git_tracks_no_report():
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    tracked = subprocess.run(["git", "ls-files", "docs/studies"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert tracked.stdout
    assert not [name for name in tracked.stdout.splitlines() if "/report/" in name]


def test_a_committed_study_keeps_its_newest_manifest_alone():
    for newest in STUDIES.rglob("newest_manifest"):
        (manifest,) = (newest.parent / "manifests").iterdir()
        assert manifest.name == f"{newest.read_text().strip()}{COMPRESSED}"


def test_every_committed_figure_is_shown_by_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    linked = {(page.parent / target).resolve() for page in pages for target in re.findall(r"\]\(([^)#\s]+)", page.read_text())}
    figures = [path for path in _committed() if path.suffix in {".svg", ".png"}]
    assert figures
    assert [str(path.relative_to(ROOT)) for path in figures if path.resolve() not in linked] == []


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_is_valid(workflow):
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    checked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
