from tasks.dyck.dyck import Dyck
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"dyck": Dyck}
