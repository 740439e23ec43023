"""The exact law of bracket strings of bounded depth: probabilities, completions and samples, by dynamic programming in float64.

Li, "Mathematical foundations of data-training-inference interaction in language modeling" (CMU-ML-25-120), Definitions 2.2.1 and 3.2.1.
The state of a string is (brackets written, depth), since how it goes on depends on nothing else; a table has shape [length + 1, depth + 1].
With k types, bracket 2t opens type t, 2t + 1 closes it, and 2k stands behind the end of a string:

    Law(types=(0.5, 0.5), depth=2, length=4)          ( [ ] ) → 0 2 3 1
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from tasks.draws import WORD

ENDINGS = ("any", "stop", "forced", "closed")


@dataclass(frozen=True)
class Steps:
    """Probabilities of the next step in each state, float64 [length + 1, depth + 1]; all are 0 where no string of the law comes."""

    opens: np.ndarray
    closes: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True)
class Law:
    """A law of bracket strings. types: the probability of each bracket type. depth: of the deepest bracket. length: brackets of a string.

    At depth 0 a bracket opens, at the deepest it closes, elsewhere it opens with probability q. ending:
      any     the first `length` brackets, whatever is open (Definition 2.2.1)
      stop    whole strings: at depth 0 a string ends with probability `stop`; those above `length` brackets are left out
      forced  whole strings of `length` brackets: a bracket closes where the string could not be completed otherwise (Definition 3.2.1)
      closed  whole strings of `length` brackets: the law `any`, given that nothing is open at the end
    """

    types: tuple[float, ...]
    depth: int
    length: int
    q: float = 0.5
    ending: str = "any"
    stop: float = 0.5

    def __post_init__(self) -> None:
        if not self.types or min(self.types) < 0 or abs(sum(self.types) - 1) > 1e-12:
            raise ValueError(f"types = {self.types} must be probabilities that sum to 1, one for each bracket type")
        if self.depth < 1 or len(self.types) ** self.depth > 2**62:
            raise ValueError(f"depth = {self.depth} must be at least 1, and types^depth at most 2^62")
        if not 0 < self.q < 1:
            raise ValueError(f"q = {self.q:g} must be a probability above 0 and below 1")
        if not 0 < self.stop <= 1:
            raise ValueError(f"stop = {self.stop:g} must be a probability above 0")
        if self.ending not in ENDINGS:
            raise ValueError(f"ending = {self.ending!r} must be {' or '.join(ENDINGS)}")
        if self.length < (1 if self.ending == "any" else 2):
            raise ValueError(f"length = {self.length} must be at least {1 if self.ending == 'any' else 2}")
        if self.ending in ("forced", "closed") and self.length % 2:
            raise ValueError(f"length = {self.length} must be even: every bracket of a whole string is closed")

    @property
    def kinds(self) -> int:
        """Number of bracket types, k."""
        return len(self.types)

    @property
    def end(self) -> int:
        """The token behind a string's last bracket."""
        return 2 * self.kinds

    @functools.cached_property
    def steps(self) -> Steps:
        """The law of the next step, given that the string is one of the law: the process's step times the success probability after it."""
        raw, success = self._process, self.success
        after = np.vstack([success[1:], np.zeros((1, self.depth + 1))])
        opens = raw.opens * np.pad(after[:, 1:], ((0, 0), (0, 1)))
        closes = raw.closes * np.pad(after[:, :-1], ((0, 0), (1, 0)))
        total = np.where(success > 0, success, 1.0)
        return Steps(opens / total, closes / total, raw.ends / total)

    @functools.cached_property
    def success(self) -> np.ndarray:
        """Probability that the process goes on from a state to a string of the law, [length + 1, depth + 1]; 1 everywhere with `any`."""
        raw = self._process
        success = np.zeros((self.length + 1, self.depth + 1))
        success[-1] = raw.ends[-1]
        for written in range(self.length - 1, -1, -1):
            after = success[written + 1]
            opened, closed = np.append(after[1:], 0.0), np.append(0.0, after[:-1])
            success[written] = raw.opens[written] * opened + raw.closes[written] * closed + raw.ends[written]
        return success

    @functools.cached_property
    def completions(self) -> np.ndarray:
        """The number of ways to complete a string of the law from each state: exact integers (dtype object), over all bracket types."""
        raw = self._process
        counts = np.zeros((self.length + 1, self.depth + 1), dtype=object)
        for written in range(self.length, -1, -1):
            for depth in range(self.depth + 1):
                total = int(raw.ends[written, depth] > 0)
                if raw.opens[written, depth] > 0:
                    total += self.kinds * counts[written + 1, depth + 1]
                if raw.closes[written, depth] > 0:
                    total += counts[written + 1, depth - 1]
                counts[written, depth] = total
        return counts

    @functools.cached_property
    def occupation(self) -> np.ndarray:
        """Probability that a string of the law passes through each state, [length + 1, depth + 1], its last one included."""
        steps = self.steps
        occupied = np.zeros((self.length + 1, self.depth + 1))
        occupied[0, 0] = 1.0
        for written in range(self.length):
            now = occupied[written]
            occupied[written + 1, 1:] += (now * steps.opens[written])[:-1]
            occupied[written + 1, :-1] += (now * steps.closes[written])[1:]
        return occupied

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """P(a string has n brackets), n = 0 … length."""
        return (self.occupation * self.steps.ends).sum(-1)

    @functools.cached_property
    def entropy(self) -> float:
        """Entropy of a string in nats: the least sum of next-token losses over its brackets and its end."""
        steps = self.steps
        kind = -sum(p * math.log(p) for p in self.types if p > 0)
        surprise = sum(
            -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0) for p in (steps.opens, steps.closes, steps.ends)
        )
        return float((self.occupation * (surprise + steps.opens * kind)).sum())

    def sample(self, words: np.ndarray) -> np.ndarray:
        """Strings from uint32 words [..., length], int64 [..., length], filled up with the end; bracket i is decided by word i."""
        uniform = words.astype(np.float64) / WORD
        depth = np.zeros(words.shape[:-1], dtype=np.int64)
        stack = np.zeros_like(depth)  # types of the open brackets as the digits of a number, the innermost the last digit
        running = np.ones(depth.shape, dtype=bool)
        tokens = np.full(words.shape, self.end, dtype=np.int64)
        bounds = np.cumsum(self.types)[:-1]
        for place in range(self.length):
            chance = uniform[..., place]
            opens, closes = self.steps.opens[place, depth], self.steps.closes[place, depth]
            opening = running & (chance < opens)
            closing = running & ~opening & (chance < opens + closes)
            kind = (chance[..., None] >= opens[..., None] * bounds).sum(-1)
            tokens[..., place] = np.where(opening, 2 * kind, np.where(closing, 2 * (stack % self.kinds) + 1, self.end))
            stack = np.where(opening, stack * self.kinds + kind, np.where(closing, stack // self.kinds, stack))
            depth += opening.astype(np.int64) - closing
            running = opening | closing
        return tokens

    @functools.cached_property
    def _process(self) -> Steps:
        """The steps of the process in each state, before strings outside the law are left out."""
        opens = np.full((self.length + 1, self.depth + 1), self.q)
        opens[:, 0], opens[:, -1] = 1.0, 0.0
        ends = np.zeros_like(opens)
        written, depth = np.indices(opens.shape)
        if self.ending == "forced":
            opens[(depth >= self.length - written) & (depth > 0)] = 0.0
        if self.ending == "stop":
            ends[1:, 0] = self.stop
            opens[1:, 0] = 1 - self.stop
        closes = 1 - opens - ends
        closes[:, 0] = 0.0
        opens[-1] = closes[-1] = 0.0
        if self.ending == "any":
            ends[-1] = 1.0
        elif self.ending != "stop":
            ends[-1, 0] = 1.0
        return Steps(opens, closes, ends)


def depths(brackets: np.ndarray, kinds: int) -> np.ndarray:
    """Depth after each token, int64 [..., T]; a token that is no bracket leaves it as it is."""
    inside = (brackets >= 0) & (brackets < 2 * kinds)
    return np.cumsum(np.where(inside, 1 - 2 * (brackets % 2), 0), axis=-1)
