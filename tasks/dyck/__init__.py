from tasks.dyck.copying import DyckCopy
from tasks.dyck.dyck import Dyck
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"dyck": Dyck, "dyck_copy": DyckCopy}
