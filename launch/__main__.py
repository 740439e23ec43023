"""python -m launch …: the command `manyseeds`, where its script is not in PATH."""

from launch.cli import main

main()
