"""docs/guides/cloud.md and slurm.md: the output they show is what the command prints, and their commands exist."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from launch.cli import cli

ROOT = Path(__file__).parents[2]
PAGE = "".join((ROOT / "docs" / "guides" / name).read_text() for name in ("cloud.md", "slurm.md"))


def _lines():
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    text = "\n".join(blocks).replace("\\\n", " ")
    inline = re.findall(r"`((?:ray|manyseeds) [^`]*launch/[^`]*)`", PAGE)
    return [line.split("   #")[0].strip() for line in text.splitlines()] + inline


def _of(program):
    return [shlex.split(line.split(" > ")[0], comments=True)[1:] for line in _lines() if line.startswith(f"{program} ")]


def _parse(command, words):
    """Parse a command line down to its last subcommand and run nothing."""
    context = command.make_context(command.name, list(words), resilient_parsing=isinstance(command, click.Group))
    if isinstance(command, click.Group):
        context.resilient_parsing = False  # which would let a name pass that is no command
        _, inner, rest = command.resolve_command(context, list(words))
        _parse(inner, rest)


@pytest.mark.parametrize("words", _of("manyseeds"), ids=" ".join)
def test_a_manyseeds_command_of_the_page_exists(words):
    _parse(cli, words)


@pytest.mark.parametrize("words", _of("sbatch"), ids=" ".join)
def test_what_follows_the_slurm_script_follows_manyseeds_run(words):
    _parse(cli, ["run", *words[words.index("launch/cluster/slurm.sh") + 1 :]])


@pytest.mark.parametrize("words", _of("ray"), ids=" ".join)
def test_a_ray_command_of_the_page_exists(words):
    from ray.scripts.scripts import cli as ray

    _parse(ray, words)


@pytest.mark.parametrize("line", re.findall(r"\b(?:fflm_replicates.py study=|slurm.sh flipflop/)(.*)", PAGE))
def test_a_study_of_the_page_is_valid_with_its_overrides(line):
    from harness.study.load import load
    from launch.families import find_study

    named, *overrides = line.split()
    study = load(find_study("fflm", named), [*overrides, "executor=ray"])
    assert study.device == "cuda"


def test_the_output_that_the_page_shows_is_what_is_printed():
    shown = re.findall(r"<!-- output -->\n```bash\nmanyseeds (.*?)\n```\n```\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    for words, output in shown:
        assert CliRunner().invoke(cli, shlex.split(words)).output == output


def test_the_worked_example_follows_from_the_formula():
    replicates, seconds, gpus, interruptions, lost = 500, 600, 4, 0.1, 0.25
    hours = replicates * seconds / 3600
    more = hours * (1 + interruptions * lost)
    assert f"`H = {replicates} × {seconds} / 3600 = {hours:.1f}`" in PAGE
    assert f"`{hours:.1f} g + {hours / gpus:.1f} h + B d`" in PAGE
    assert f"`{more:.1f} g + {more / gpus:.1f} h + B d`" in PAGE


def test_every_file_that_the_page_names_is_there():
    named = set(re.findall(r"\blaunch/[\w/]+\.\w+", PAGE))
    assert {f"launch/cluster/{path.name}" for path in (ROOT / "launch" / "cluster").iterdir()} <= named
    assert all((ROOT / name).is_file() for name in named)


def test_a_misspelt_command_would_be_found():
    with pytest.raises(click.UsageError):
        _parse(cli, ["reprot", "store"])


def test_the_head_can_pass_on_the_role_of_a_worker_and_no_other():
    """With EC2FullAccess a role that may be passed is a role that the head has."""
    policies = [
        json.loads(text.replace("$account", "1"))
        for text in re.findall(r"^cat > pass.json <<EOF\n(.*?)^EOF", PAGE, re.DOTALL | re.M)
    ]
    (statements,) = [policy["Statement"] for policy in policies]
    allowed = {statement["Action"]: statement["Resource"] for statement in statements}
    assert allowed["iam:PassRole"] == "arn:aws:iam::1:role/manyseeds-worker"
    assert all(resource.endswith("/manyseeds-worker") for resource in allowed.values())
    worker = (ROOT / "launch" / "cluster" / "aws.yaml").read_text()
    assert "IamInstanceProfile: {Name: manyseeds-worker}" in worker
    assert '"Action": "*"' not in PAGE
