from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"flipflop": FlipFlop, "flipflop_simulation": Simulation}
