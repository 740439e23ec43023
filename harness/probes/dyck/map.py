"""What a model attends to on the fixed string of `variation`, for the attention maps of reports (Li's thesis, figures 2.11 and 2.12).

Items "3,1": the weight that the token at place 3 gives to that at place 1, from 0, the start.
"""

from typing import Any

from harness.probes.dyck.variation import fixed_string
from harness.probes.probe import Nothing, Probe, Rows
from harness.probes.strings import weights_on_string
from tasks.dyck.copying import DyckCopy
from tasks.dyck.dyck import Dyck


def attention_map(model: Any, task: Dyck | DyckCopy, count: int, settings: Nothing) -> Rows:
    """The weights of each layer and head on keys up to the query, and on all of a model that is not causal; R = 1."""
    return weights_on_string(model, fixed_string(task.strings), model.config.causal)


MAP = Probe(
    attention_map,
    lambda model, task: isinstance(task, Dyck | DyckCopy) and model.attends,
    "replicates of dyck or dyck_copy with a model that attends",
    strings=1,
)
