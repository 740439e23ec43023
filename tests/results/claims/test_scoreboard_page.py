"""The committed page of all claims is what the committed tables give."""

from pathlib import Path

from click.testing import CliRunner

from launch.cli.read import claims
from results.claims import FAMILIES, REGISTRY

ROOT = Path(__file__).parents[3]


def test_the_scoreboard_is_current(monkeypatch):
    monkeypatch.chdir(ROOT)
    made = CliRunner().invoke(claims, ["docs/studies", "--markdown"], catch_exceptions=False)
    page = (ROOT / "docs/studies/README.md").read_text(encoding="utf-8")
    assert made.output == page, "run manyseeds claims docs/studies --markdown > docs/studies/README.md"
    for claim in REGISTRY.values():
        assert f"| **{claim.id}** " in page
    prose = [line for line in page.split("\n") if not line.startswith(("|", "#"))]
    assert max(map(len, prose)) <= 110
    for family in FAMILIES:
        folder = ROOT / "docs/studies" / family.__name__.rpartition(".")[2]
        assert folder.exists() == (folder / "README.md").exists()
