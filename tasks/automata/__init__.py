from tasks.automata.automata import Automaton
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"automaton": Automaton}
