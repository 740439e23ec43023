from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.parity import SparseParity
from tasks.distillation.pcfg import PCFG
from tasks.task import Task

TASKS: dict[str, type[Task]] = {"sparse_parity": SparseParity, "hierarchical_parity": HierarchicalParity, "pcfg": PCFG}
