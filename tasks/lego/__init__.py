from tasks.lego.lego import Lego
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"lego": Lego}
