"""What a driver tells Prometheus through Ray: names, meanings, and the arithmetic; the classes that send are given by the caller.

    metrics = Metrics(ray.util.metrics.Counter, ray.util.metrics.Gauge, ray.util.metrics.Histogram, "baseline")

Ray exports each as `ray_<name>` (a counter as `ray_<name>_total`) on every node's metrics port: docs/guides/watching.md. No label is a
pack's id: Prometheus keeps a series for every value a label ever had.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.executing.run_pack import Outcome

_WINDOW_S = 10.0  # seconds that the rate is taken over, at least


@dataclass(frozen=True)
class Definition:
    """kind: counter | gauge | histogram. `labels` beside `study`; `boundaries` of a histogram, in its unit."""

    name: str
    kind: str
    description: str
    labels: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


DEFINITIONS = (
    Definition(
        "manyseeds_packs_ended", "counter", "Packs that ended, by how: committed, failed, unstored, stopped", ("status",)
    ),
    Definition("manyseeds_replicates_committed", "counter", "Replicates in committed packs, diverged ones included"),
    Definition("manyseeds_replicates_diverged", "counter", "Diverged replicates in committed packs"),
    Definition("manyseeds_replicate_steps", "counter", "Training steps x replicates of a pack, since the driver first saw it"),
    Definition("manyseeds_replicate_steps_per_second", "gauge", "The same as a rate, of the last 10 seconds or more"),
    Definition("manyseeds_packs_queued", "gauge", "Packs that wait for a slot"),
    Definition("manyseeds_packs_running", "gauge", "Packs that are on a slot"),
    Definition("manyseeds_pack_step", "gauge", "The step of the pack that runs on a slot; 0 while none does", ("slot",)),
    Definition(
        "manyseeds_pack_seconds",
        "histogram",
        "Seconds from giving a pack to a worker to its commit",
        boundaries=(1.0, 10.0, 60.0, 300.0, 1800.0, 7200.0, 36000.0),
    ),
)


class Metrics:
    """A driver's own counts. counter, gauge, histogram: classes with the interface of `ray.util.metrics`."""

    def __init__(
        self,
        counter: Callable[..., Any],
        gauge: Callable[..., Any],
        histogram: Callable[..., Any],
        study: str,
        clock: Callable[[], float] = time.monotonic,
    ):
        kinds = {"counter": counter, "gauge": gauge, "histogram": histogram}
        self._sent: dict[str, Any] = {}
        for definition in DEFINITIONS:
            more = {"boundaries": list(definition.boundaries)} if definition.boundaries else {}
            metric = kinds[definition.kind](
                definition.name, description=definition.description, tag_keys=("study", *definition.labels), **more
            )
            metric.set_default_tags({"study": study})
            self._sent[definition.name.removeprefix("manyseeds_")] = metric
        self._clock = clock
        self._slots: dict[str, int] = {}  # by running pack, as the two below
        self._first: dict[str, float] = {}
        self._last: dict[str, int] = {}  # noted step; a pack that noted none is absent
        self._steps = 0
        self._window = (clock(), 0)

    def started(self, pack: str) -> None:
        """A pack was given to a worker."""
        if pack not in self._slots:
            taken = set(self._slots.values())
            self._slots[pack] = min(set(range(len(taken) + 1)) - taken)
            self._first[pack] = self._clock()

    def poll(self, running: Mapping[str, int], steps: Mapping[str, int], queued: int) -> None:
        """Send how the run stands.

        running: replicates by id of every pack on a slot; steps: the last noted of some packs.
        """
        now = self._clock()
        for pack in self._slots.keys() - running.keys():
            self._leave(pack)
        for pack, size in running.items():
            self.started(pack)
            step = steps.get(pack, 0)
            if step:
                # steps before the first note may be a checkpoint's, and a step back is a checkpoint after a death
                self._count((step - self._last.get(pack, step)) * size)
                self._last[pack] = step
                self._sent["pack_step"].set(step, {"slot": str(self._slots[pack])})
        self._sent["packs_queued"].set(queued)
        self._sent["packs_running"].set(len(running))
        since, before = self._window
        if now - since >= _WINDOW_S:
            self._sent["replicate_steps_per_second"].set((self._steps - before) / (now - since))
            self._window = (now, self._steps)

    def ended(self, outcome: Outcome) -> None:
        """A pack has ended, in any way but being split."""
        self._count((outcome.step - self._last.get(outcome.pack, 0)) * outcome.replicates)
        self._sent["packs_ended"].inc(1.0, {"status": outcome.status})
        if outcome.status == "committed":
            self._sent["replicates_committed"].inc(outcome.replicates)
            if outcome.diverged:
                self._sent["replicates_diverged"].inc(outcome.diverged)
            if outcome.pack in self._first:
                self._sent["pack_seconds"].observe(self._clock() - self._first[outcome.pack])
        self._leave(outcome.pack)

    def _count(self, steps: int) -> None:
        if steps > 0:  # Ray refuses to add 0
            self._steps += steps
            self._sent["replicate_steps"].inc(steps)

    def _leave(self, pack: str) -> None:
        self._first.pop(pack, None)
        self._last.pop(pack, None)
        slot = self._slots.pop(pack, None)
        if slot is not None:
            self._sent["pack_step"].set(0, {"slot": str(slot)})
