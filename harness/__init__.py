"""How a study runs.

`models`, `tasks` and `results` are plain names: a job's own working folder may hold packages called so, and comes first on the path of
its workers. Ours must win there.
"""

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parent.parent)
if sys.path[:1] != [_ROOT]:
    sys.path.insert(0, _ROOT)
