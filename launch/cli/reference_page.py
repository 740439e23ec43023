"""The page docs/reference/cli.md, from the commands themselves: python -m launch.cli.reference_page > docs/reference/cli.md"""

import sys

import click

from launch.cli import SECTIONS

HEAD = """# Command line

Where the project is not installed, type `python -m launch` in place of `manyseeds`. This page shows the help
of every command; `python -m launch.cli.reference_page > docs/reference/cli.md` writes it anew.

Words in capitals are yours to fill in, and those in brackets may be left out. `KEY=VALUE` overrides a key of
the [study file](study-file.md), such as `train.lr=1e-3`.

| exit status | meaning |
|---|---|
| 0 | all is well |
| 1 | something failed or differs, as the command says |
| 2 | one sentence says what to correct |
| 70 | a defect of manyseeds, with its traceback |
| 130 | stopped by Ctrl-C |
"""


def page() -> str:
    parts = [HEAD]
    for title, commands in SECTIONS.items():
        parts.append(f"## {title}\n")
        for command in commands:
            context = click.Context(command, info_name=f"manyseeds {command.name}", terminal_width=100, max_content_width=100)
            parts.append(f"### manyseeds {command.name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.buffer.write(page().encode())
