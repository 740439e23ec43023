"""In-context n-grams: every string is from a language model of its own, drawn from a Dirichlet law.

Varre, Yüce & Flammarion 2025, "Learning in-context n-grams with transformers" (arXiv 2508.12837), section 2. For each context u of
n - 1 tokens, P(· | u) ~ Dirichlet(α, …, α); the first n - 1 tokens are uniform; x_t ~ P(· | x_{t-1}, …, x_{t-n+1}). The answer at the
end is the whole law of the next token, P(· | x_T, …, x_{T-n+2}).

    InContextNgram(alphabet=3, order=2, length=6, alpha=0.5)      2 0 1 0 1 0 → the law of what follows a 0 in this string's language
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.dirichlet import dirichlet
from tasks.draws import WORD, Draw
from tasks.ngrams import estimators
from tasks.task import Task, refuse_below, refuse_unlisted

# sites of the draws within a step; part of every committed result
_LAW, _FIRST, _TOKEN = range(3)
_NUMBERS = 2**18  # of laws that are made at once: more would leave the cache
_MOST = 2**20  # numbers in the language of one string
_LEAST_STATIONARY = 0.2  # α; at 0.1, one law in a thousand is wrong in float64, since its contexts hardly lead to one another
_FLOOR = 1e-8  # added to a probability before its logarithm, as in the paper's loss


@dataclass(frozen=True)
class InContextNgram(Task):
    """Strings of n-gram languages, each drawn for one string alone.

    alphabet: S. order: n, so that a token depends on the n - 1 before it. alpha: of the Dirichlet law. labels: the positions where the law
    of the next token is wanted, last | every. first: the law of the first n - 1 tokens, uniform (section 5) | stationary (appendix H).
    """

    metrics: ClassVar[tuple[str, ...]] = ("next",)
    error: ClassVar[str] = "a position whose most probable next token is another one in the string's own language"
    soft: ClassVar[bool] = True
    vectors: ClassVar[tuple[str, ...]] = ("alpha", "first")

    alphabet: int = 5
    order: int = 3
    length: int = 32
    alpha: float = 1.0
    labels: str = "last"
    first: str = "uniform"

    def __post_init__(self) -> None:
        refuse_below(self, alphabet=2)
        if self.order < 1:
            raise ValueError(f"task.order = {self.order} must be at least 1: 1 is a law without a context")
        if self.length < max(self.order, 2):
            raise ValueError(
                f"task.length = {self.length} must be at least {max(self.order, 2)} with task.order = {self.order}"
            )
        if self.alphabet**self.order > _MOST:
            raise ValueError(
                f"task.alphabet = {self.alphabet} with task.order = {self.order} makes {self.alphabet**self.order:,} probabilities a "
                f"string: at most {_MOST:,} are drawn"
            )
        if not 1e-3 <= self.alpha <= 1e3:
            raise ValueError(f"task.alpha = {self.alpha:g} must be a number from 0.001 to 1000")
        refuse_unlisted(self, {"labels": ("last", "every"), "first": ("uniform", "stationary")})
        if self.first == "stationary" and self.alpha < _LEAST_STATIONARY:
            raise ValueError(
                f"task.alpha = {self.alpha:g} with task.first = 'stationary' makes languages whose stationary law can't be computed: "
                f"write task.alpha of at least {_LEAST_STATIONARY}, or task.first = 'uniform'"
            )

    @property
    def vocabulary(self) -> int:
        return self.alphabet

    @property
    def contexts(self) -> int:
        return self.alphabet ** (self.order - 1)

    @property
    def answers_ahead(self) -> bool:
        """Whether what follows a scored position tells of its law."""
        return self.labels == "every"

    def scored_positions(self) -> int | None:
        return 1 if self.labels == "last" else None

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs [R, B, T], targets float32 [R, B, 1, S], or [R, B, T, S] with labels = every.

        weights [R, B, T]: 1 at the last position, or with labels = every wherever a whole context has been read.
        """
        size = max(1, _NUMBERS // (batch * self.alphabet * self.contexts))
        slots = torch.arange(draw.replicates, device=draw.seeds.device)
        parts = [self._sampled(draw.of(replicates), batch) for replicates in slots.split(size)]
        inputs, targets = (torch.cat(part).to(draw.seeds.device) for part in zip(*parts, strict=True))
        weights = torch.zeros(inputs.shape, device=inputs.device)
        weights[..., -1 if self.labels == "last" else max(0, self.order - 2) :] = 1
        return Batch(inputs, targets, weights, {})

    def languages(self, draw: Draw, batch: int) -> Tensor:
        """P(s | u) of each string, float64 [R, B, S^(n-1), S] on the CPU; the latest token of u counts 1, the one before it S, …"""
        uniform = draw.quantiles((batch, self.contexts * self.alphabet), _LAW)
        return dirichlet(uniform.view(-1, batch, self.contexts, self.alphabet), self.alpha)

    def _sampled(self, draw: Draw, batch: int) -> tuple[Tensor, Tensor]:
        """Strings and answers on the CPU."""
        laws = self.languages(draw, batch)
        inputs = draw.chains(laws, self._first(draw, laws), self.length, _TOKEN)
        # the context at each place: 0 where none is whole, which is not scored
        places = range(max(0, self.order - 2) if self.labels == "every" else self.length - 1, self.length)
        context = torch.zeros(*inputs.shape[:2], self.length if self.labels == "every" else 1, dtype=torch.int64)
        for lag in range(self.order - 1):
            context[..., -len(places) :] += inputs[..., places.start - lag : self.length - lag] * self.alphabet**lag
        rows = torch.arange(inputs.shape[0] * batch).view(-1, batch, 1) * self.contexts + context
        return inputs, laws.flatten(0, 2)[rows].to(torch.float32)

    def _first(self, draw: Draw, laws: Tensor) -> Tensor:
        """The first n - 1 tokens as one number, int64 [R, B] on the CPU."""
        batch = laws.shape[1]
        if self.first == "uniform":
            return draw.integers(self.contexts, (batch,), _FIRST).cpu()
        bounds = self.stationary(laws).cumsum(-1)[..., :-1] * WORD
        return (draw.words((batch,), _FIRST).cpu().to(torch.float64)[..., None] >= bounds).sum(-1)

    def stationary(self, laws: Tensor) -> Tensor:
        """π of the chain on contexts (appendix H), float64 [..., S^(n-1)]: the law that a step leaves as it is."""
        context = torch.arange(self.contexts)
        following = (context[:, None] * self.alphabet + torch.arange(self.alphabet)) % self.contexts
        step = torch.zeros(*laws.shape[:-1], self.contexts, dtype=torch.float64)
        step.scatter_add_(-1, following.expand(laws.shape), laws)
        system = step.transpose(-1, -2) - torch.eye(self.contexts, dtype=torch.float64)
        system[..., -1, :] = 1  # one equation follows from the others: that the law sums to one takes its place
        wanted = torch.zeros(*laws.shape[:-1], 1, dtype=torch.float64)
        wanted[..., -1, :] = 1
        return torch.linalg.solve(system, wanted)[..., 0].clamp(min=0)

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """next: the model's most probable token is not the language's."""
        return {"next": logits.argmax(-1) != targets.argmax(-1)}

    def references(self, batch: Batch) -> dict[str, Tensor]:
        """The estimators of all sets of lags: "1-gram" … "n-gram" where they are 1 … k - 1, else such as "lags 1,3".

        Variants are smoothed with the prior's α, then with more: a model finds a smoothing of its own (section 5).
        """
        pseudo_counts = [self.alpha, *(pseudo for pseudo in estimators.SMOOTHINGS if pseudo != self.alpha)]
        return {
            estimators.name(lags): torch.stack([estimators.smoothed(counts, pseudo) for pseudo in pseudo_counts])
            for lags in estimators.lag_sets(self.order)
            for counts in [self._counts(batch, lags)]
        }

    def baselines(self, batch: Batch) -> dict[str, Tensor]:
        """Losses: of the law itself ("entropy"), the uniform guess, and each estimator by its pseudo-count ("2-gram a=5")."""
        truth = batch.targets
        losses = {"entropy": _loss(truth, truth), "uniform": _loss(truth, torch.full_like(truth, 1 / self.alphabet))}
        for lags in estimators.lag_sets(self.order):
            counts = self._counts(batch, lags)
            for pseudo in sorted({self.alpha, *estimators.PSEUDO_COUNTS}):
                losses[f"{estimators.name(lags)} a={pseudo:g}"] = _loss(truth, estimators.smoothed(counts, pseudo))
        return losses

    def _counts(self, batch: Batch, lags: tuple[int, ...]) -> Tensor:
        return estimators.counts(batch.inputs, lags, self.alphabet, self.order, last=self.labels == "last")


def _loss(truth: Tensor, guess: Tensor) -> Tensor:
    """-Σ_s y_s log(p_s + 1e-8), [R, B, K]."""
    return -(truth * (guess + _FLOOR).log()).sum(-1)
