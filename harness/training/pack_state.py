"""The state of a pack in training: a step, what is measured after it, and checkpoints from which it goes on bit for bit.

The loss that is back-propagated is the sum over replicates of each one's own mean, so no replicate sees another: not in gradients, not
in norms, not when one diverges (its NaNs stay in its own slice and its rows say `diverged`).
"""

import contextlib
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import harness.training.checkpoint as checkpoints
import harness.training.self_labels as parents
import harness.training.sgd_loop as sequential
import harness.training.weights as artifacts
from harness.draw import Draw
from harness.machine.device import allow_unordered, finish, release
from harness.machine.precision import autocast, set_matmul
from harness.planning.pack import Pack, ScoredSet
from harness.training.attention_penalty import Sharpness
from harness.training.cuda_graph import Replay, agree, copies, cuda_captures
from harness.training.evaluate import Scores, baseline_losses, score
from harness.training.key_mask import hiding
from harness.training.loss_positions import Needed, first_block, twice, two_blocks
from harness.training.losses import mean_losses, summed
from harness.training.measured_rows import Record, rounded
from harness.training.optimizer import Average, FlatParameters, Optimizer
from harness.training.schedule import Plateau, Scalars
from harness.training.teachers import Teachers, is_student
from harness.training.training_strings import Feed, Strings, data_seeds
from harness.training.watch import Watcher
from models.noise import Noise
from results.errors import settings_errors
from results.store.schema import LABELS_RIGHT
from results.store.tables import Store
from tasks.batch import View

_SHAPES = 64  # most that a process compiles a model for; torch would silently stop at 8
WINDOW = 100  # steps that `loss` and the points of the loss curve average over, at most
_STATE = {"step", "recorded", "rows", "train_s", "evaluate_s", "plateau", "asked"}  # of a checkpoint, beside its keys


class Stopped(Exception):
    """Training was asked to stop; its state is in the checkpoint of `step`."""

    def __init__(self, step: int):
        super().__init__(f"stopped at step {step}; the same command goes on from there")
        self.step = step


@dataclass
class Rows:
    """The rows a pack has produced, slot by slot, as plain data: they travel in checkpoints as JSON."""

    evaluations: list[dict] = field(default_factory=list)
    profiles: list[dict] = field(default_factory=list)
    curves: list[dict] = field(default_factory=list)
    averages: list[Record] = field(default_factory=list)  # of evaluation sets, many at each look: columns, not rows
    watched: list[Record] = field(default_factory=list)


class Training:
    """The state of a pack: parameters, moments, the recent losses, the rows so far, and the step they belong to."""

    def __init__(
        self,
        pack: Pack,
        device: torch.device,
        weights: parents.Weights | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        teachers: Teachers | None = None,
    ):
        """weights: of the previous stage, for a later one; teachers: what answers a student's strings.

        None: fresh ones, where only the cost is measured.
        """
        first = pack.replicates[0].condition
        self.pack, self.device = pack, device
        self.task, self.train = first.task, first.train
        self.trains = [replicate.condition.train for replicate in pack.replicates]
        set_matmul(self.train.precision)
        allow_unordered(device, not first.model.ordered)
        seeds = torch.tensor([replicate.init_seed for replicate in pack.replicates], device=device)
        self.init_seeds = parents.seeds_at(seeds, pack.stage, 0)
        self.should_stop = should_stop
        self.model = self._made()
        if weights is not None and parents.begins(pack):
            parents.fill(self.model, weights)
        # where only the cost is measured, a step has the task's own labels; the time of these is measured apart
        annotator = self._annotator(weights) if weights is not None and parents.annotates(pack) else None
        self.feed = Feed(pack, device, annotator)
        self.teachers = Teachers(pack, device, None) if teachers is None and is_student(pack) else teachers
        self.rates = _rates(pack, device)
        self.flat = FlatParameters(self.model)
        self.optimizer = Optimizer(self.flat, self.trains)
        self.scalars = Scalars(self.trains, device)
        self.plateau = Plateau(self.trains)
        self.average = Average(self.flat, self.trains) if self.train.ema else None
        sharpen, consistency, size = self.train.sharpen, self.train.consistency, len(pack.replicates)
        self.sharpen = sharpen if sharpen is not None and sharpen.weight else None
        self.recent = torch.zeros(WINDOW, size, device=device)
        consistent = consistency is not None and consistency.weight > 0
        self.penalties = torch.zeros(WINDOW, size, device=device) if self.sharpen or consistent else None
        self.diverged_at = torch.full((size,), -1, dtype=torch.int64, device=device)
        if weights is not None:
            self.diverged_at[parents.broken(weights, device)] = 0
        self.rows = Rows()
        self.step = self.recorded = 0  # steps taken; the last one whose curves and scores are in `rows`
        self.train_s = self.evaluate_s = 0.0
        self.forward = _compiled(self.model) if pack.numerics.get("compile") else self.model
        self.compiled = self.forward if self.forward is not self.model and device.type == "cuda" else None
        self.watcher = Watcher(self.model, self.flat, self.feed, pack)
        self.replays: list[Replay] = []  # one for each number of blocks that strings fill, from one on
        self.eager_because = ""  # why a GPU has no graph of the step; empty where it has one
        self.loop: sequential.Loop | None = None
        self._speed_up()
        if self.teachers is not None:
            self._end_untaught(self.teachers)

    def _speed_up(self) -> None:
        """Use the compiled loop if it computes this pack's steps, and on a GPU a CUDA graph of the step."""
        if sequential.takes(self.pack, self.device) and not sequential.missing():
            self.loop = sequential.Loop(self.pack, self.feed, self.model, self.flat, self.scalars, self.teachers)
        if self.device.type == "cuda":
            self.fix(cuda_captures())

    def _made(self) -> nn.Module:
        """A fresh packed model."""
        draw, task = Draw(self.init_seeds, "init"), self.task
        with settings_errors():
            return self.pack.replicates[0].condition.model.make(draw, task.vocabulary, task.tokens, task.outputs)

    def _annotator(self, weights: parents.Weights) -> parents.Annotator:
        """What answers the training strings as the models of these weights do."""
        model = self._made()
        parents.fill(model, weights)
        tasks = [replicate.condition.task for replicate in self.pack.replicates]
        # a reference back would be a circle, which only the garbage collector frees: in the midst of a graph's capture, say
        still = partial(Training._still, weakref.proxy(self))
        return parents.Annotator(model, tasks, data_seeds(self.pack, self.device), self.train.pool, still)

    def _end_untaught(self, teachers: Teachers) -> None:
        """Mark the students as diverged at step 0 whose teacher has diverged or has no checkpoint to learn from."""
        untaught = torch.tensor([plan.diverged or bool(plan.without) for plan in teachers.schedules], device=self.device)
        self.diverged_at[untaught] = 0
        with torch.no_grad():
            self.flat.values[untaught] = torch.nan  # whatever the temperature makes of such a teacher's answers

    def _still(self) -> None:
        if self.should_stop():
            raise Stopped(self.step)

    def advance(self) -> None:
        """One step for every replicate; several, up to the next look, where the compiled loop takes them."""
        if self.loop is not None:
            self._took(self.loop.advance(self.step, sequential.until(self.pack, self.step)))
            return
        step = self.step + 1
        strings, scalars = self._answered(self.feed.at(step), step), self.scalars.at(step)
        replay = next((replay for replay in self.replays if replay.fits(strings)), None)
        losses = replay(strings, scalars, step) if replay is not None else self.compute(strings, scalars, self._number(step))
        loss = losses[0]
        self.recent[step % WINDOW] = loss
        if self.penalties is not None:
            self.penalties[step % WINDOW] = losses[1]
        self.diverged_at = torch.where((self.diverged_at < 0) & ~loss.isfinite(), step, self.diverged_at)
        self.step = step

    def _number(self, step: int) -> int | Tensor:
        """The step's number for the model's noise: a tensor where the model is compiled, since each new int would be compiled again."""
        return torch.full_like(self.init_seeds, step) if self.forward is not self.model else step

    def _answered(self, strings: Strings, step: int) -> Strings:
        return strings if self.teachers is None else self.teachers(strings, step)

    def _took(self, losses: Tensor) -> None:
        """Note the losses [S, R] of the steps that the compiled loop has taken."""
        steps = torch.arange(self.step + 1, self.step + 1 + len(losses))
        self.recent[steps[-WINDOW:] % WINDOW] = losses[-WINDOW:]
        broken = ~losses.isfinite()
        first = steps[broken.int().argmax(0)]
        self.diverged_at = torch.where((self.diverged_at < 0) & broken.any(0), first, self.diverged_at)
        self.step += len(losses)

    def compute(self, strings: Strings, scalars: Tensor, step: int | Tensor) -> tuple[Tensor, ...]:
        """Forward, backward and update of one step: the losses [R] and, where there is one, the penalties [R]."""
        noise = Noise(Draw(self.init_seeds, "dropout", step), Draw(self.feed.seeds, "shift", step), self.rates)
        sharpness = None if self.sharpen is None else Sharpness(self.sharpen.kind, self.sharpen.layers)
        logits = self._logits(strings, noise, sharpness)
        loss, penalty = mean_losses(logits, strings), None
        total, means = loss.sum(), [loss.detach()]
        if sharpness is not None:
            penalty = sharpness.mean()
        elif strings.view is not None:
            penalty = self._inconsistency(logits, strings.view, strings.needed, noise)
        if penalty is not None:
            total = total + (scalars[Scalars.PENALTY] * penalty).sum()
            means.append(penalty.detach())
        self.flat.differentiate(total)
        self.optimizer.step(scalars)
        if self.average is not None:
            self.average.update()
        return tuple(means)

    def fix(self, capture: Callable[[Callable[[], Any]], Callable[[], None]]) -> bool:
        """Replay the step from now on instead of launching it, if the replay does what the step does. Only at step 0.

        capture(run) returns the replay of `run` (`cuda_graph.cuda_captures`). Strings that overflow their block of positions have a replay
        of their own. Returns False, and stays eager, where a step can't be captured or its replay has other gradients;
        `eager_because` says which.
        """
        replays = []
        for strings in (self.usual_strings(), self.overflowing_strings()):
            if strings is not None:
                replay = self._replay(strings, capture)
                if replay is None:
                    return False
                replays.append(replay)
        self.replays = replays
        return True

    def _replay(self, strings: Strings, capture: Callable[[Callable[[], Any]], Callable[[], None]]) -> Replay | None:
        """The replay of a step on strings of this shape; None, and `eager_because`, where it can't be used."""
        # the eager step has the replay's own inputs: a compiled model would be compiled again for other strides
        strings, scalars, step = copies(strings), self.scalars.at(1).clone(), torch.ones_like(self.init_seeds)
        # with a learning rate of 0 no weight moves, so that no copy of them is needed
        scalars[Scalars.LR] = 0
        self.compute(strings, scalars, step)
        eager = self.flat.gradient.to("cpu", copy=True)
        self._forget()
        release(self.device)  # a capture warms up on another stream, which does not use what this one keeps
        try:
            replay = Replay(self.compute, strings, scalars, step, capture)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a model does that a graph can't hold, its eager step has worked
            self._forget()
            self.eager_because = f"it can't be captured ({type(error).__name__}: {str(error).partition(chr(10))[0]})"
            return None
        self._forget()
        replay(strings, scalars, 1)
        same = agree(eager, self.flat.gradient, self.train.precision)
        self._forget()
        if not same:
            self.eager_because = "its replay has other gradients than the step itself"
        return replay if same else None

    def usual_strings(self) -> Strings:
        """Strings of the first step in the shape of nearly all steps: the positions that overflow their block are left out."""
        strings = self.feed.at(1)
        if strings.needed.blocks is not None and len(strings.needed.blocks) > 1:
            one = strings.needed.blocks[0].shape[-1]
            view = strings.view
            if view is not None:
                view = View(view.inputs, view.places[..., :one], view.weights[..., :one])
            strings = Strings(strings.inputs, first_block(strings.needed, one), strings.hidden, view=view)
        return self._answered(strings, 1)

    def overflowing_strings(self) -> Strings | None:
        """Strings of the first step in the shape of one that takes a second block of positions; None where no step does."""
        usual = self.usual_strings()
        wanted, tokens = usual.needed, usual.inputs.shape[-1]
        if wanted.order is None or wanted.order.shape[-1] == tokens or bool((wanted.weights > 0).all()):
            return None
        soft, view = usual.soft, usual.view
        if soft is not None:
            soft = twice(soft, tokens)
        if view is not None:
            view = View(view.inputs, twice(view.places, tokens), twice(view.weights, tokens))
        return replace(usual, needed=two_blocks(wanted, tokens), soft=soft, view=view)

    @torch.no_grad()
    def _forget(self) -> None:
        """Zero the gradients and the moments of the optimizer, as before the first step."""
        self.flat.gradient.zero_()
        for tensor in self.optimizer.state().values():
            tensor.zero_()

    def losses(self, strings: Strings, noise: Noise | None = None, attend: Sharpness | None = None) -> Tensor:
        """`mean_losses` of the weights as they are, [R]."""
        return mean_losses(self._logits(strings, noise, attend), strings)

    def _logits(self, strings: Strings, noise: Noise | None, attend: Sharpness | None) -> Tensor:
        blocks = strings.needed.blocks
        # on a GPU the few steps with a second block are not worth half a minute of compiling
        rare = self.device.type == "cuda" and blocks is not None and len(blocks) > 1
        forward = self.model if rare else self.forward
        with autocast(self.device, self.train.precision):
            logits = forward(strings.inputs, blocks, noise, attend, **hiding(self.model, strings.hidden))
        return self._exact(logits)

    def _exact(self, logits: Tensor) -> Tensor:
        """Logits of autocast in the precision of the weights, in which losses are computed: float32."""
        return logits.to(self.flat.values.dtype)

    def _inconsistency(self, logits: Tensor, view: View, wanted: Needed, noise: Noise | None) -> Tensor:
        """Mean squared difference of the logits [R, B, N, V] from those of the view, over the positions compared and all classes, [R]."""
        size = view.places.shape[-1] if wanted.blocks is None else wanted.blocks[0].shape[-1]
        with autocast(self.device, self.train.precision):
            others = self.forward(view.inputs, view.places.split(size, dim=-1), noise, None)
        apart = (logits - self._exact(others)).square().mean(-1) * view.weights
        return summed(apart, wanted) / view.weights.sum((-1, -2)).clamp(min=1)

    @torch.no_grad()
    def monitored(self) -> list[float]:
        """Mean loss of every replicate on its own monitor strings, [R]."""
        monitor = self.train.monitor
        if monitor is None:
            raise ValueError("this training has no train.monitor")
        count, total = 0, torch.zeros(len(self.trains), dtype=torch.float64, device=self.device)
        for strings in self.feed.monitored(monitor.sequences, self.train.batch):
            total += self.losses(self._answered(strings, self.step)).double() * strings.inputs.shape[1]
            count += strings.inputs.shape[1]
        return (total / count).tolist()

    def mean_loss(self) -> Tensor:
        """Mean loss over the last steps, `WINDOW` at most, float64 [R]."""
        return self._mean(self.recent, WINDOW)

    def _mean(self, recent: Tensor, window: int) -> Tensor:
        window = min(window, self.step, WINDOW)
        last = torch.arange(self.step - window + 1, self.step + 1, device=self.device) % WINDOW
        return recent[last].double().mean(0)

    def record(self, should_stop: Callable[[], bool] = lambda: False) -> bool:
        """The curves and evaluation sets that are due at this step; False where asked to stop before all were scored."""
        rows, steps = Rows(), self.train.steps
        due = [sets for sets in self.pack.sets if sets[0].due(self.step, steps)]
        curves = self.step % self.pack.curve_every == 0 or self.step == steps
        monitor, watch = self.train.monitor, self.pack.watch
        if curves or due or any(look is not None and self.step % look.every == 0 for look in (monitor, watch)):
            self._wait()
        if curves:
            for slot, loss in enumerate(self._mean(self.recent, self.pack.curve_every).tolist()):
                lr = self.scalars.lr(slot, self.step)
                rows.curves += [self._row(slot, metric="loss", value=loss), self._row(slot, metric="lr", value=lr)]
            if self.penalties is not None:
                means = self._mean(self.penalties, self.pack.curve_every).tolist()
                rows.curves += [self._row(slot, metric="penalty", value=value) for slot, value in enumerate(means)]
        annotator = self.feed.annotator
        if self.step == steps and annotator is not None and self.train.pool:
            rows.curves += [self._row(slot, metric=LABELS_RIGHT, value=value) for slot, value in enumerate(annotator.right())]
        started = time.perf_counter()
        self._watch()
        if due and not self._score(due, rows, should_stop):
            return False
        # after the scores, which may be broken off and begun again: a look at the monitor counts once
        if monitor is not None and self.step % monitor.every == 0:
            seen = self.monitored()
            rows.curves += [self._row(slot, metric="monitor_loss", value=value) for slot, value in enumerate(seen)]
            self.scalars.rescale(self.plateau.look(seen))
        self.evaluate_s += time.perf_counter() - started
        self.rows.evaluations += rows.evaluations
        self.rows.profiles += rows.profiles
        self.rows.curves += rows.curves
        self.rows.averages += rows.averages
        self.recorded = self.step
        return True

    def _wait(self) -> None:
        """Let a GPU do the steps that it was given, which is time of training: it works on behind, and `advance` returns at once."""
        started = time.perf_counter()
        finish(self.device)
        self.train_s += time.perf_counter() - started

    def _watch(self) -> None:
        """What the pack watches at this step. It is kept at once: where scores are broken off here, no later run has this gradient."""
        watch, watched = self.pack.watch, self.rows.watched
        if watch is None or (self.step % watch.every and self.step < self.train.steps):
            return
        if not watched or watched[-1]["step"] < self.step:
            values = self.watcher.look(self.losses, last_gradient=self.loop is None)
            watched.append({"step": self.step, "names": list(values), "values": rounded(values)})

    def _score(self, due: list[tuple[ScoredSet, ...]], rows: Rows, should_stop: Callable[[], bool]) -> bool:
        last = self.step == self.train.steps
        if last:
            # the last update may have broken weights that its own loss could not show yet
            broken = ~self.flat.values.isfinite().all(-1)
            self.diverged_at = torch.where((self.diverged_at < 0) & broken, self.step, self.diverged_at)
        diverged = (self.diverged_at >= 0).tolist()
        for weights in ("raw",) if self.average is None else ("raw", "ema"):
            with self.average.swapped() if weights == "ema" and self.average is not None else contextlib.nullcontext():
                for sets in due:
                    scores = score(self.model, sets, self.device, self.train.precision, should_stop, self.compiled)
                    if scores is None:
                        return False
                    rows.averages += self._averages(sets, scores, weights, last)
                    for slot, (scores_of_set, number) in enumerate(scores):
                        lost = diverged[slot]
                        rows.evaluations += [
                            self._row(slot, weights=weights, **row) for row in scores_of_set.evaluation_rows(number, lost)
                        ]
                        if last and not lost and weights == "raw":
                            rows.profiles += [self._row(slot, **row) for row in scores_of_set.profile_rows(number)]
        return True

    def _averages(
        self, sets: Sequence[ScoredSet], scores: Sequence[tuple[Scores, int]], weights: str, last: bool
    ) -> list[Record]:
        """The averages over a set, one record for all replicates; none where the task's labels are classes."""
        averages = [scores_of_set.averages(number) for scores_of_set, number in scores]
        if not averages[0]:
            return []
        if last:
            averages = [
                values | baseline_losses(one, self.device) if weights == "raw" else values
                for values, one in zip(averages, sets, strict=True)
            ]
        # a task's baselines go by its options, which may differ within a pack
        names = list(dict.fromkeys(name for values in averages for name in values))
        numbers = rounded({name: torch.tensor([values.get(name, torch.nan) for values in averages]) for name in names})
        values = [
            [number if name in own else None for number, own in zip(row, averages, strict=True)]
            for name, row in zip(names, numbers, strict=True)
        ]
        return [
            {"step": self.step, "weights": weights, "set": self.pack.sets.index(tuple(sets)), "names": names, "values": values}
        ]

    def _row(self, slot: int, **values) -> dict:
        return {
            "key": self.pack.replicates[slot].key,
            "stage": self.pack.stage,
            "pack": self.pack.id,
            "step": self.step,
        } | values

    def _tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds, by name."""
        tensors = {"values": self.flat.values, "recent": self.recent, "diverged_at": self.diverged_at} | self.optimizer.state()
        if self.penalties is not None:
            tensors["penalties"] = self.penalties
        return tensors if self.average is None else tensors | {"average": self.average.values}

    def save(self, store: Store) -> None:
        keys = [replicate.key for replicate in self.pack.replicates]
        state = {"keys": keys, "train_s": self.train_s, "evaluate_s": self.evaluate_s, "rows": vars(self.rows)}
        state["asked"] = self._asked()
        state |= {"plateau": {"best": self.plateau.best, "bad": self.plateau.bad, "scale": self.plateau.scale}}
        checkpoints.write(
            store, self.pack.id, self.step, self._tensors(), {"step": self.step, "recorded": self.recorded} | state
        )

    def _asked(self) -> list[Any]:
        """What the rows of a checkpoint answer; the id of a pack does not follow from it."""
        watch = None if self.pack.watch is None else vars(self.pack.watch)
        return [[[scored.hash for scored in sets] for sets in self.pack.sets], self.pack.curve_every, watch]

    def _lacks(self, store: Store, key: str, step: int) -> bool:
        """Whether weights of an earlier step should have been kept and are missing."""
        wanted = {kept for kept in self.pack.keep_steps if kept < step}
        return bool(wanted) and not wanted.issubset(artifacts.steps_of(store, key, self.pack.stage))

    def _unfit(self, store: Store, checkpoint: checkpoints.Found) -> str:
        """Why this pack can't go on from a checkpoint; an empty string where it can."""
        tensors, state = checkpoint
        if not isinstance(state, dict) or state.get("keys") != [replicate.key for replicate in self.pack.replicates]:
            return "it is of other replicates"
        shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in self._tensors().items()}
        if shapes != {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()} or not state.keys() >= _STATE:
            return "another version of this code wrote it"
        if state["asked"] != self._asked():
            return "the study asked for other evaluation sets or curves when it was written"
        if any(self._lacks(store, replicate.key, state["step"]) for replicate in self.pack.replicates):
            return "weights of steps before it were to be kept and are not there"
        return ""

    def restore(self, store: Store, say: Callable[[str], None] = lambda text: None) -> bool:
        """Go on from the pack's newest checkpoint that is whole and its own; False where there is none."""
        checkpoint = checkpoints.read(store, self.pack.id, lambda candidate: self._unfit(store, candidate), say)
        if checkpoint is None:
            return False
        tensors, state = checkpoint
        for name, tensor in self._tensors().items():
            tensor.copy_(tensors[name])
        self.rows, self.step, self.recorded = Rows(**state["rows"]), state["step"], state["recorded"]
        self.train_s, self.evaluate_s = state["train_s"], state["evaluate_s"]
        vars(self.plateau).update(state["plateau"])
        self.scalars.rescale(self.plateau.scale)
        return True


def _compiled(model: nn.Module) -> Any:
    """The model through torch.compile, once a shape: a training's, and one of each evaluation set."""
    torch._dynamo.config.recompile_limit = _SHAPES
    return torch.compile(model, dynamic=False)


def _rates(pack: Pack, device: torch.device) -> dict[str, Tensor]:
    """The options of the model that may differ within the pack, such as dropout rates, float32 [R] by name."""
    models = [replicate.condition.model for replicate in pack.replicates]
    names = models[0].vectors
    return {name: torch.tensor([float(getattr(model, name)) for model in models], device=device) for name in names}
