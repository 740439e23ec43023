"""Commands that belong to one family, by section of the help: one line per family that has some."""

import click

from launch.cli.flipflop import EXPLAIN as FLIPFLOP

EXPLAIN: tuple[click.Command, ...] = FLIPFLOP
