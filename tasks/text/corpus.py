"""Windows of a user's own text, as token ids: masked prediction as with BERT, or the next token as with GPT-2.

Used for section 4.2.10 of the thesis (Panigrahi et al., ICLR 2025), on Wikipedia and books; the masking is that of grammars
(`tasks/text/masking.py`). The files are described in `tasks/text/token_files.py`.

    Corpus("data/wiki", vocabulary=30522, mask=103, begin=101, special=(0, 100, 101, 102, 103))      101 2023 103 1037 …
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.draws import Draw
from tasks.quantile import quantile
from tasks.task import Task, refuse_below
from tasks.text.masking import masked, mean_weights, refuse_rate
from tasks.text.token_files import Ids, content, pieces

_WINDOW_SITE = 0


@dataclass(frozen=True)
class Corpus(Task):
    """Windows of consecutive ids of one file, all equally probable.

    folder: of the corpus. part: the folder in it that windows are drawn from. content: hash of the corpus's files, filled in where left
    out; where given, the files must have it. A key hashes content, and not folder.
    vocabulary: ids are below it. length: tokens of a window, `begin` included. begin: the id in front of every window, or None. special:
    ids that are never predicted. objective: masked | next.
    For `masked` alone: mask_rate, the probability that a token is predicted; mask, the id that hides it (random tokens are uniform over
    the vocabulary); hide_selected_from_attention, whether no token attends to a predicted position.
    """

    metrics: ClassVar[tuple[str, ...]] = ("read",)
    error: ClassVar[str] = "a predicted position where the most probable token of the whole vocabulary is not the text's own"

    folder: str = ""
    part: str = "train"
    content: str = ""
    vocabulary: int = 30522
    length: int = 128
    objective: str = "masked"
    mask_rate: float = 0.15
    mask: int | None = None
    begin: int | None = None
    special: tuple[int, ...] = ()
    hide_selected_from_attention: bool = False

    def __post_init__(self) -> None:
        refuse_below(self, vocabulary=2)
        if self.length < 2 + (self.begin is not None):
            raise ValueError(f"task.length = {self.length} must hold at least two tokens of the text")
        if self.objective not in ("masked", "next"):
            raise ValueError(f"task.objective = {self.objective!r} must be masked or next")
        if self.objective == "masked" and self.mask is None:
            raise ValueError("task.mask is missing: the id of the mask token, or write task.objective = next")
        if self.objective == "next" and (self.mask is not None or self.mask_rate != 0.15 or self.hide_selected_from_attention):
            raise ValueError(
                "task.mask, mask_rate and hide_selected_from_attention apply only to objective: masked, and task.objective is next: "
                "leave them out"
            )
        if self.objective == "masked":
            refuse_rate(self.mask_rate, self.vocabulary)
        for name, given in (("mask", (self.mask,)), ("begin", (self.begin,)), ("special", self.special)):
            for token in given:
                if token is not None and not 0 <= token < self.vocabulary:
                    raise ValueError(f"task.{name} = {token} must be an id of 0 … {self.vocabulary - 1}, task.vocabulary - 1")
        digest = content(self.folder)
        if self.content not in ("", digest):
            raise ValueError(
                f"the files in {self.folder} are not those of task.content = {self.content}, their hash is {digest}: "
                "use the files of that study, or leave content out for a new one"
            )
        object.__setattr__(self, "content", digest)
        self._runs()

    @property
    def answers_ahead(self) -> bool:
        """Whether an answer is the next token."""
        return self.objective == "next"

    @property
    def read(self) -> int:
        """The number of tokens of the text in a window."""
        return self.length - (self.begin is not None)

    def evaluation(self) -> "Corpus":
        """The task that an evaluation set of this one holds: itself; give the set another `part`."""
        return self

    def scored_positions(self) -> int | None:
        """Positions a window that the loss needs, K: the 0.999 quantile of their number, rounded up to 8; None = all."""
        if self.objective == "next":
            return None
        return min(self.length, -(-max(1, quantile(_binomial(self.read, self.mask_rate), 0.999)) // 8) * 8)

    def windows(self, draw: Draw, batch: int) -> Tensor:
        """Tokens of `batch` windows a replicate, int64 [R, B, T]."""
        runs = self._runs()
        ends = np.cumsum([len(run) - self.read + 1 for run in runs])
        words = draw.words((batch, 2), _WINDOW_SITE).cpu()
        places = ((words[..., 0] << 30 | words[..., 1] >> 2) % int(ends[-1])).numpy()  # 62 bits: the remainder is even enough
        which = np.searchsorted(ends, places, side="right")
        front = int(self.begin is not None)
        tokens = np.full((*places.shape, self.length), self.begin if front else 0, dtype=np.int64)
        for index in np.ndindex(places.shape):
            run = int(which[index])
            first = int(places[index]) - (int(ends[run - 1]) if run else 0)
            tokens[index][front:] = runs[run][first : first + self.read]
        return torch.from_numpy(tokens).to(draw.seeds.device)

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` windows a replicate: inputs, targets [R, B, T] int64, weights [R, B, T], the mean over a window's predicted tokens."""
        tokens = self.windows(draw, batch)
        plain = torch.ones_like(tokens, dtype=torch.bool)
        if self.begin is not None:
            plain[..., 0] = False
        if self.special:
            plain &= ~torch.isin(tokens, torch.tensor(self.special, device=tokens.device))
        if self.mask is not None:
            inputs, selected = masked(tokens, plain, self.mask_rate, self.mask, self.vocabulary, draw)
            return Batch(inputs, tokens, mean_weights(selected), {}, selected if self.hide_selected_from_attention else None)
        following = torch.roll(plain, -1, -1)
        following[..., -1] = False
        return Batch(tokens, torch.roll(tokens, -1, -1), mean_weights(following), {})

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """read: the argmax over the whole vocabulary is another token; 1 - its rate is the top-1 accuracy."""
        return {"read": logits.argmax(-1) != targets}

    def _runs(self) -> list[Ids]:
        """The runs of ids that are long enough for a window. Raises ValueError where none is."""
        runs = [run for run in pieces(self.folder, self.part, self.vocabulary) if len(run) >= self.read]
        if not runs:
            raise ValueError(
                f"no file of {self.folder}/{self.part} holds {self.read} tokens in a row, a window of task.length = {self.length}: "
                "write a smaller length, or join the texts into longer files"
            )
        return runs


def _binomial(n: int, p: float) -> np.ndarray:
    """The law of the number of heads of n coins, [n + 1]; by logarithms, since C(n, k) leaves the floats from n = 1030 on."""
    if p == 1:
        return np.eye(n + 1)[n]
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
        for k in range(n + 1)
    ]
    return np.exp(logs)
