from tasks.generation.bracket_strings import BracketStrings
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"bracket_strings": BracketStrings}
