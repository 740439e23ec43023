"""The options of a training: `train` of a condition.

Defaults here NEVER change: a field equal to its default is not hashed.
"""

from dataclasses import dataclass

from results.errors import StudyError

SCHEDULES = ("linear", "constant", "cosine", "plateau")
PRECISIONS = ("fp32", "tf32", "bf16")
OPTIMIZERS = ("adamw", "adam", "sgd")
PENALTIES = ("entropy", "l2", "linf")
PENALTY_SCHEDULES = ("constant", "linear", "oscillating")


@dataclass(frozen=True)
class Sharpen:
    """An attention-sharpening penalty: λ(t) times the mean of entropy, -‖α‖₂ (l2) or -‖α‖_∞ (linf) of attention rows.

    weight: λ; schedule: constant, linear from `start` to the end, or oscillating with `period` steps; layers: from 0, null for all.
    """

    kind: str = "entropy"
    weight: float = 0.0
    schedule: str = "linear"
    start: int = 0
    period: int = 1000
    layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _refuse_other("sharpen.kind", self.kind, PENALTIES)
        _refuse_other("sharpen.schedule", self.schedule, PENALTY_SCHEDULES)
        for name, least in (("weight", 0), ("start", 0), ("period", 1)):
            if getattr(self, name) < least:
                raise StudyError(f"train.sharpen.{name} = {getattr(self, name)} must be at least {least}")
        if self.layers is not None and (not self.layers or min(self.layers) < 0):
            raise StudyError(f"train.sharpen.layers = {list(self.layers)} must be numbers of layers from 0, or null for all")


@dataclass(frozen=True)
class Consistency:
    """A penalty on answers that depend on how a string is shown: λ times the mean squared difference between the logits of a string and of
    the task's `view` of it, over the positions compared and all classes. weight: λ."""

    weight: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise StudyError(f"train.consistency.weight = {self.weight} must be a number of at least 0")


@dataclass(frozen=True)
class Monitor:
    """What a training may look at: `sequences` strings of its own task, drawn by its data seed, every `every` steps. Never reported."""

    sequences: int = 512
    every: int = 100

    def __post_init__(self) -> None:
        for name in ("sequences", "every"):
            if getattr(self, name) < 1:
                raise StudyError(f"train.monitor.{name} = {getattr(self, name)} must be at least 1")


@dataclass(frozen=True)
class Train:
    """How a replicate is trained: `batch` fresh strings a step, `warmup` linear steps, then the schedule.

    pool: strings of a fixed data set, passed over in shuffled epochs; 0 for fresh data. positions: the loss covers all `scored` positions
    of a string, or the `last` one. clip: largest gradient norm of a replicate, 0 for none. ema: decay of an average of the weights, which
    is scored beside them, 0 for none. final_lr: where the cosine ends, as a fraction of lr. decay_steps: steps after which `linear` and
    `cosine` would end, 0 for `steps`. patience, factor: of the plateau schedule, which needs `monitor`. eps: of Adam and AdamW; momentum:
    of SGD.
    """

    steps: int = 10000
    batch: int = 16
    optimizer: str = "adamw"
    lr: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.1
    warmup: int = 50
    schedule: str = "linear"
    precision: str = "fp32"
    eps: float = 1e-8
    momentum: float = 0.0
    final_lr: float = 0.0
    decay_steps: int = 0
    patience: int = 10
    factor: float = 0.1
    clip: float = 0.0
    ema: float = 0.0
    pool: int = 0
    positions: str = "scored"
    sharpen: Sharpen | None = None
    consistency: Consistency | None = None
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch"):
            if getattr(self, name) < 1:
                raise StudyError(f"train.{name} = {getattr(self, name)} must be at least 1")
        if self.steps >= 2**31:
            raise StudyError(f"train.steps = {self.steps} must be below 2^31, where the steps of the keyed draws end")
        if not self.lr > 0:
            raise StudyError(f"train.lr = {self.lr} must be above 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise StudyError(f"train.betas = {list(self.betas)} must be two numbers in [0, 1)")
        for name in ("weight_decay", "warmup", "patience", "clip", "pool", "decay_steps"):
            if getattr(self, name) < 0:
                raise StudyError(f"train.{name} = {getattr(self, name)} must be 0 or more")
        if self.decay_steps and self.decay_steps < self.steps:
            raise StudyError(
                f"train.decay_steps = {self.decay_steps} must be at least train.steps = {self.steps}, or 0: the learning rate would "
                "reach its end before the training does"
            )
        for name in ("momentum", "ema", "final_lr"):
            if not 0 <= getattr(self, name) < 1:
                raise StudyError(f"train.{name} = {getattr(self, name)} must be in [0, 1)")
        if not self.eps > 0:
            raise StudyError(f"train.eps = {self.eps} must be above 0")
        if not 0 < self.factor < 1:
            raise StudyError(
                f"train.factor = {self.factor} must be between 0 and 1: a plateau multiplies the learning rate by it"
            )
        _refuse_other("optimizer", self.optimizer, OPTIMIZERS)
        _refuse_other("schedule", self.schedule, SCHEDULES)
        _refuse_other("precision", self.precision, PRECISIONS)
        _refuse_other("positions", self.positions, ("scored", "last"))
        if self.schedule == "plateau" and self.monitor is None:
            raise StudyError(
                "train.schedule = plateau needs train.monitor, such as {sequences: 512, every: 100}: no reported set is looked at"
            )
        if self.momentum and self.optimizer != "sgd":
            raise StudyError(
                f"train.momentum = {self.momentum} applies only to optimizer: sgd, and train.optimizer is {self.optimizer}: leave it out"
            )
        if self.sharpen is not None and self.sharpen.start >= self.steps:
            raise StudyError(f"train.sharpen.start = {self.sharpen.start} must be below train.steps = {self.steps}")
        if self.sharpen is not None and self.consistency is not None:
            raise StudyError("train.sharpen and train.consistency are both penalties: leave one out")

    @property
    def rev(self) -> int:
        """Revision of what the training means. It is hashed into every key unless it is 1."""
        # before, a replicate in a pack took the plateaus of a neighbour
        return 2 if self.schedule == "plateau" else 1


def _refuse_other(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise StudyError(f"train.{option} = {value!r} must be {' or '.join(choices)}")
