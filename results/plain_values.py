"""Names for values whose kinds are only known when they are read: what YAML, JSON and the rows of tables hold."""

from collections.abc import Mapping
from typing import Any

Value = Any  # null, a flag, a number or text; in YAML and JSON also a list or a mapping of such
Options = Mapping[str, Value]  # of a study, a task, a model or a training, by name, to be read
Tree = dict[str, Value]  # a mapping of YAML or JSON, such as a study file or the values of a page's template
Row = dict[str, Value]  # a row of a table, by column
