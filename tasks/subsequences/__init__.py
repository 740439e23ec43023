from tasks.subsequences.associations import Associations
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"associations": Associations}
