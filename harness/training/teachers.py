"""A teacher in lockstep with its students: at each step its checkpoint of that step answers the strings that they read.

All of it is a function of the teacher's weights in the store and the step, so nothing is saved: a resumed student finds it again.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from safetensors.torch import load
from torch import Tensor, nn
from torch.func import functional_call

import harness.training.checkpoint as checkpoints
from harness.machine.precision import set_matmul
from harness.machine.store_retry import patiently
from harness.planning.pack import Pack, ScoredSet
from harness.study.checkpoint_schedule import SelectionRule, Span, at
from harness.study.config import Condition
from harness.study.identity import digest, placeless
from harness.study.stages import link_of, model_of, parent_of, spans_of
from harness.training import weights as artifacts
from harness.training.evaluate import score
from harness.training.key_mask import hiding
from harness.training.training_strings import Strings
from models.mlp import MLP
from results.errors import DamagedFile
from results.store.tables import Store

Read = Callable[[str, int], Mapping[str, Tensor]]  # the weights of a replicate, by key, after a step

_TOGETHER = 256  # strings that one teacher answers at once at most, where a step has one
_ACTIVATIONS = 2**22  # of one layer of one teacher, at most, as far as a single string allows


@dataclass(frozen=True)
class Schedule:
    """What one teacher teaches: the steps of its checkpoints, resolved, or why there is nothing to learn from it."""

    spans: tuple[Span, ...]
    diverged: bool = False
    without: str = ""  # the rule that no step of the teacher meets, in words

    @property
    def first(self) -> int | None:
        """The first step of the teacher that is learned from; None where it is not resolved."""
        step = self.spans[0].at
        return step if isinstance(step, int) else None

    def step(self, of_student: int) -> int:
        selected = self.spans[at(self.spans, of_student)].at
        if isinstance(selected, SelectionRule):
            raise ValueError("this schedule is not resolved")
        return selected


def is_student(pack: Pack) -> bool:
    """Whether the labels of a pack are a teacher's."""
    link = link_of(pack.replicates[0].condition)
    return link is not None and link.labels == "teacher"


class Teachers:
    """The teachers of a pack. `teachers(strings, step)` are the same strings with their answers; `schedules`: one a replicate."""

    def __init__(self, pack: Pack, device: torch.device, read: Read | None, still: Callable[[], None] = lambda: None):
        """read: None for fresh weights, where only the cost is measured. still(): called between looks at checkpoints, may raise."""
        first = pack.replicates[0].condition
        parent, link = parent_of(first), link_of(first)
        if parent is None or link is None:
            raise ValueError(f"pack {pack.id} has no stage before it")
        self.temperature, self._read, self._precision = link.temperature, read, first.train.precision
        # replicates with one teacher and one sequence of strings are answered once
        names = [(own.parent, own.data_seed, own.condition.task, spans_of(own.condition)) for own in pack.replicates]
        distinct = list(dict.fromkeys(names)) if read is not None else names
        self._keys = [name[0] for name in distinct]
        self._slots = torch.tensor([names.index(name) for name in distinct], device=device)
        self._which = torch.tensor([distinct.index(name) for name in names], device=device)
        self._shared = len(distinct) < len(names)
        self.model = model_of(parent, len(distinct), device)
        length = 1 if isinstance(parent.model, MLP) else parent.task.tokens
        # a power of two of the teacher's own: strings that are answered together are always the same ones
        fitting = max(1, min(_TOGETHER, _ACTIVATIONS // (length * max(1, parent.model.width))))
        self.block = 2 ** (fitting.bit_length() - 1)
        self.products = length * sum(parameter.numel() for parameter in self.model.parameters())
        schedules: dict[tuple[str | None, tuple[Span, ...]], Schedule] = {}
        for slot in self._slots.tolist():
            key, _, _, plan = names[slot]
            if read is not None and (key, plan) not in schedules:
                schedules[key, plan] = resolved(pack.replicates[slot].condition, key or "", read, device, still)
        self._schedules = [schedules.get((key, plan), Schedule(plan)) for key, _, _, plan in distinct]
        self.schedules = [self._schedules[number] for number in self._which.tolist()]
        self._at: list[int | None] = [None] * len(distinct)
        self._begins = sorted({span.begin for schedule in self._schedules for span in schedule.spans})
        self._part = 0  # how many of them have passed

    @torch.no_grad()
    def __call__(self, strings: Strings, step: int) -> Strings:
        """The strings of the students' `step`, answered by its checkpoint: at the positions of `needed` alone, in fp32."""
        self._turn(step)
        wanted, inputs, hidden, blocks = strings.needed, strings.inputs, strings.hidden, strings.needed.blocks
        if self._shared:
            inputs, hidden = inputs[self._slots], None if hidden is None else hidden[self._slots]
            blocks = None if blocks is None else tuple(block[self._slots] for block in blocks)
        set_matmul("fp32")
        logits = self.model(inputs, blocks, **hiding(self.model, hidden))
        set_matmul(self._precision)
        if self._shared:
            logits = logits[self._which]
        if self.temperature == 0:
            return replace(strings, needed=replace(wanted, targets=logits.argmax(-1)))
        return replace(strings, soft=probabilities(logits, self.temperature))

    @torch.no_grad()
    def answers(self, inputs: Tensor, first: int) -> Tensor:
        """What the checkpoints of the students' steps `first`, first + 1, … say at the last position of one string per step, inputs
        [S, R, T] and probabilities [S, R, C].

        A product of another number of strings may be rounded otherwise. So strings are answered `block` at once, those of the steps
        1 … block, then the next: `first` has to begin a block and S to end one. Where a checkpoint comes in between, both answer all.
        """
        if (first - 1) % self.block or len(inputs) % self.block:
            raise ValueError(f"steps {first} … {first + len(inputs) - 1} are no whole blocks of {self.block}")
        parts, own_strings = [], inputs[:, self._slots]
        set_matmul("fp32")
        for begin in range(first, first + len(inputs), self.block):
            end, strings = begin + self.block, own_strings[begin - first : begin - first + self.block].transpose(0, 1)
            turns = [begin, *(step for step in self._begins if begin < step < end), end]
            for step, until in pairwise(turns):
                self._turn(step)
                parts.append(self._said(strings)[step - begin : until - begin])
        set_matmul(self._precision)
        return torch.cat(parts)[:, self._which]

    def _said(self, strings: Tensor) -> Tensor:
        """Probabilities [B, D, C] of every distinct teacher on its own strings [D, B, T], one teacher after the other."""
        last = torch.full((1, strings.shape[1], 1), strings.shape[2] - 1, device=strings.device)
        answers = []
        for place, read in enumerate(strings):
            alone = {name: parameter[place : place + 1] for name, parameter in self.model.named_parameters()}
            answers.append(functional_call(self.model, alone, (read[None], (last,)))[0, :, 0])
        logits = torch.stack(answers, dim=1)
        if self.temperature == 0:
            return nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
        return probabilities(logits, self.temperature)

    def _turn(self, step: int) -> None:
        """Load the checkpoints of the students' `step` where they are others than those of the step before."""
        part = bisect_right(self._begins, step)
        if self._read is None or part == self._part:
            return
        now = [None if schedule.diverged or schedule.without else schedule.step(step) for schedule in self._schedules]
        loaded: dict[tuple[str, int], Mapping[str, Tensor]] = {}
        for place, (key, old, new) in enumerate(zip(self._keys, self._at, now, strict=True)):
            if new is not None and new != old:
                name = (key or "", new)
                if name not in loaded:
                    loaded[name] = self._read(*name)
                _put(self.model, place, loaded[name])
        self._at, self._part = now, part


def teachers_of(
    pack: Pack,
    store: Store,
    device: torch.device,
    should_stop: Callable[[], bool],
    say: Callable[[str], None],
    stopped: Callable[[int], Exception],
) -> Teachers | None:
    """The teachers of a pack out of a store, None where the pack has no teacher; says which replicates have nothing to learn from.

    stopped(step): raised where asked to stop meanwhile. Raises ValueError naming weights that are not there.
    """
    if not is_student(pack):
        return None

    def read(key: str, step: int) -> Mapping[str, Tensor]:
        return load(patiently(lambda: artifacts.data(store, key, pack.stage - 1, step), should_stop, say))

    def still() -> None:
        if should_stop():
            raise stopped(max(checkpoints.steps(store, pack.id), default=0))

    teachers = Teachers(pack, device, read, still)
    for replicate, schedule in zip(pack.replicates, teachers.schedules, strict=True):
        if schedule.without:
            say(
                f"{replicate.condition.name}, stage {pack.stage}, seeds {replicate.init_seed}, {replicate.data_seed}: {schedule.without}, "
                "so this student has nothing to learn from: it is recorded as no_transition"
            )
    return teachers


def probabilities(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / temperature) over the last axis; the largest is taken off before the division, which may be by 1e-20."""
    return ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1)


def resolved(
    student: Condition, key: str, read: Read, device: torch.device, still: Callable[[], None] = lambda: None
) -> Schedule:
    """The schedule of the students of the teacher `key`, each rule replaced by the step that it resolves to."""
    teacher, plan = parent_of(student), spans_of(student)
    if teacher is None:
        raise ValueError(f"{student.name} has no stage before it")
    horizon = teacher.train.steps
    set_matmul("fp32")
    if not all(bool(tensor.isfinite().all()) for tensor in read(key, horizon).values()):
        return Schedule(plan, diverged=True)
    shares: dict[tuple[int, int], float] = {}
    spans = []
    for span in plan:
        step = span.at
        if isinstance(step, SelectionRule):
            rule = step
            found_at = _first_step(teacher, key, rule, read, device, still, shares)
            if found_at is None:
                best = max(shares[step_tried, rule.sequences] for step_tried in rule.grid(horizon))
                about = f"accuracy {rule.accuracy:g} at none of its steps {rule.steps_in_words(horizon)}, at most {best:.3g}"
                return Schedule(plan, without=f"the teacher {key[:12]} has {about}")
            step = found_at + rule.plus
            if step not in rule.grid(horizon):
                about = f"accuracy {rule.accuracy:g} at step {found_at}, and {rule.plus:+d} leads out of its {horizon} steps"
                return Schedule(plan, without=f"the teacher {key[:12]} has {about}")
        spans.append(Span(span.begin, step))
    return Schedule(tuple(spans))


def _first_step(
    teacher: Condition,
    key: str,
    rule: SelectionRule,
    read: Read,
    device: torch.device,
    still: Callable[[], None],
    shares: dict[tuple[int, int], float],
) -> int | None:
    """The first step of the rule's grid with its accuracy; None where there is none. shares: those that are known, by step and strings."""
    model = None
    for step in rule.grid(teacher.train.steps):
        if (step, rule.sequences) not in shares:
            still()
            model = model or model_of(teacher, 1, device)
            _put(model, 0, read(key, step))
            shares[step, rule.sequences] = _accuracy(model, teacher, rule.sequences, device)
        if shares[step, rule.sequences] >= rule.accuracy:
            return step
    return None


def _accuracy(model: nn.Module, condition: Condition, sequences: int, device: torch.device) -> float:
    """The share of scored positions that a model with R = 1 answers right, on strings that belong to this condition and number alone."""
    name = digest({"teacher": placeless(condition.config()), "sequences": sequences}, 16)
    one = ScoredSet("transition", condition.task.evaluation(), sequences, None, name)
    scores = score(model, [one], device, "fp32")
    if scores is None:
        raise AssertionError("nothing asked to stop")
    first = scores[0][0].evaluation_rows(0, False)[0]
    return 1 - first["errors"] / first["count"] if first["count"] else 0.0


@torch.no_grad()
def _put(model: nn.Module, place: int, weights: Mapping[str, Tensor]) -> None:
    """Copy the weights of one replicate into a packed model. ValueError naming the tensor that does not fit."""
    for name, parameter in model.named_parameters():
        given = tuple(weights[name].shape) if name in weights else "missing"
        if given != tuple(parameter.shape[1:]):
            raise DamagedFile(
                f"the teacher's weights do not fit: {name} is {given} and the model's {tuple(parameter.shape[1:])}"
            )
        parameter[place].copy_(weights[name])
