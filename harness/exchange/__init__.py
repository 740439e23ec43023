"""Export and import of one trained replicate, for tools that know a single model.

    export(store, key, "gpt2", "folder")              # from the weights that a study kept
    to_gpt2(pack, "folder", slot=3)                   # from a model in memory
    model = from_gpt2("folder")                       # back, as a pack with R = 1
    module, task, info = load("folder")               # what `--format safetensors` wrote

Folders of Hugging Face models are written and read by their file format alone: `transformers` is never imported.
"""

from harness.exchange.bert import from_bert, to_bert
from harness.exchange.gpt2 import from_gpt2, to_gpt2
from harness.exchange.replicate import FORMATS, export, load

__all__ = ["FORMATS", "export", "from_bert", "from_gpt2", "load", "to_bert", "to_gpt2"]
