from tasks.task import Task
from tasks.text.corpus import Corpus

TASKS: dict[str, type[Task]] = {"corpus": Corpus}
