"""A trained model of bracket strings as a generator that samplers ask."""

import torch
from torch import Tensor

from models.transformer.transformer import Decoder
from tasks.generation.bracket_strings import END, START, BracketStrings

_TOGETHER = 1024  # prefixes of a forward pass


class TrainedGenerator:
    """The model's next token. What it says of a prefix is remembered, so asking again costs nothing; samplers count it as a query."""

    end = END

    def __init__(self, model: Decoder, task: BracketStrings):
        self.model, self.task = model, task
        self.tokens, self.horizon = task.outputs, task.length + 1
        self._places: dict[bytes, int] = {}
        self._laws = torch.empty(0, self.tokens, dtype=torch.float64)
        self._features = torch.empty(0, model.config.width)

    def law(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        places = self._asked(strings, lengths)
        return self._laws[places]

    def features(self, strings: Tensor, lengths: Tensor) -> Tensor:
        """What the head reads at the last token of each prefix, float32 [N, D]."""
        places = self._asked(strings, lengths)
        return self._features[places]

    def _asked(self, strings: Tensor, lengths: Tensor) -> Tensor:
        """Places of these prefixes in the tables, which are filled where they lack one."""
        counted = torch.arange(strings.shape[1]) < lengths[:, None]
        names = [prefix.tobytes() for prefix in torch.where(counted, strings, -1).to(torch.int8).numpy()]
        fresh = {name: row for row, name in reversed(list(enumerate(names))) if name not in self._places}
        rows = torch.tensor(sorted(fresh.values()), dtype=torch.int64)
        for part in rows.split(_TOGETHER) if len(rows) else ():
            laws, features = self._said(strings[part], lengths[part])
            for row in part.tolist():
                self._places[names[row]] = len(self._places)
            self._laws, self._features = torch.cat([self._laws, laws]), torch.cat([self._features, features])
        return torch.tensor([self._places[name] for name in names], dtype=torch.int64)

    @torch.no_grad()
    def _said(self, strings: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        longest = int(lengths.max())
        read = torch.cat([torch.full((len(strings), 1), START), strings[:, :longest]], dim=1)
        read = torch.where(torch.arange(longest + 1) <= lengths[:, None], read, START)  # what comes later is not seen
        states = self.model.states(read[None])[0][torch.arange(len(read)), lengths]
        logits = states @ self.model.head_weight()[0]
        if self.model.head is not None and self.model.head.bias is not None:
            logits = logits + self.model.head.bias[0]
        return logits.double().softmax(-1), states
