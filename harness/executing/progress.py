"""How far a study is: steps taken, replicates committed, an end time. A bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from harness.executing.run_pack import Outcome
from harness.planning.amounts import duration
from harness.planning.pack import Pack
from results.terminal import printable, say

_LINE_S = 15.0  # between plain lines
_FIRST_LINES_S = 5.0  # between those of the first minute


class Progress:
    """Counts work in expected seconds, so that packs of unlike cost make one honest end time.

    seconds: expected seconds a pack, by pack id.
    """

    def __init__(self, packs: list[Pack], seconds: Mapping[str, float], committed: int, total: int):
        self._size = {pack.id: len(pack.replicates) for pack in packs}
        self._steps = {pack.id: pack.steps for pack in packs}
        self._shows_steps = all(pack.experiment is None for pack in packs)  # replicates say it all of experiments
        self._all_steps = sum(self._steps[pack] * size for pack, size in self._size.items())
        self._ended_steps = 0
        self._at: dict[str, int] = {}  # the step of each running pack
        self._seconds = dict(seconds)
        self._running: dict[str, float] = {}
        self._work = sum(seconds.values()) or 1.0
        self._done = self._resumed = 0.0
        self._seen: set[str] = set()
        self.committed, self.total = committed, total
        self.failed = self.diverged = 0
        self._here = 0
        self._started = time.monotonic()
        self._last = -math.inf
        self._bar = _bar() if sys.stdout.isatty() else None
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._work)
        self._show(force=True)

    def step(self, pack: str, step: int) -> None:
        """A running pack is at `step`; what it had done before it was first seen is no work of this run."""
        if not step:
            return  # not begun: a resumed pack shows its step only after its first one
        done = self._seconds[pack] * step / self._steps[pack]
        if pack not in self._seen:
            self._seen.add(pack)
            self._resumed += done - self._seconds[pack] / self._steps[pack]
        self._running[pack], self._at[pack] = done, step
        self._show()

    def step_seconds(self, pack: str) -> float:
        """Expected seconds of a step, with its share of the evaluations."""
        return self._seconds[pack] / self._steps[pack]

    def split(self, pack: str, parts: list[Pack]) -> None:
        """A pack goes on as smaller ones."""
        self._forget(pack)
        self._all_steps -= self._size[pack] * self._steps[pack]
        for part in parts:
            self._size[part.id], self._steps[part.id] = len(part.replicates), part.steps
            self._all_steps += self._size[part.id] * self._steps[part.id]
            self._seconds[part.id] = self._seconds[pack] / len(parts)

    def end(self, outcome: Outcome) -> None:
        self._forget(outcome.pack)
        if outcome.status == "committed":
            self._done += self._seconds[outcome.pack]
            self.committed += outcome.replicates
            self._here += outcome.replicates
            self.diverged += outcome.diverged
            self._ended_steps += self._size[outcome.pack] * self._steps[outcome.pack]
        elif outcome.status in ("failed", "unstored"):
            self._work -= self._seconds[outcome.pack]  # no work of the kind that the rate is of
            self.failed += outcome.replicates
            self.say(f"pack {outcome.pack} {outcome.status} at step {outcome.step}: {outcome.message}")
            self._all_steps -= self._size[outcome.pack] * self._steps[outcome.pack]
        self._show(force=True)

    def _forget(self, pack: str) -> None:
        self._running.pop(pack, None)
        self._at.pop(pack, None)

    def say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False, highlight=False)
        else:
            say(text)

    def close(self) -> None:
        if self._bar is not None:
            self._show(force=True)
            self._bar.stop()

    def line(self) -> str:
        """ "18,000/48,000 steps · 12/24 replicates · 3.1 a minute · ends 14:32 (4 min left)": a step of a pack is one of each replicate."""
        elapsed = time.monotonic() - self._started
        done = self._done + sum(self._running.values())
        here = done - self._resumed
        steps = self._ended_steps + sum(step * self._size[pack] for pack, step in self._at.items())
        parts = [f"{steps:,}/{self._all_steps:,} steps"] if self._shows_steps else []
        parts.append(f"{self.committed}/{self.total} replicates")
        if self._here:
            parts.append(f"{self._here / elapsed * 60:.3g} a minute")
        stepped = done > self._work * (1 - 1e-9)
        if here > 0.01 * self._work and not stepped:
            left = elapsed * (self._work - done) / here
            parts.append(f"ends {datetime.now() + timedelta(seconds=left):%H:%M} ({duration(left)} left)")
        elif stepped and self._running:
            parts.append("every step is done, the last evaluations run")
        if self.diverged:
            parts.append(f"{self.diverged} diverged")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return " · ".join(parts)

    def _show(self, force: bool = False) -> None:
        now = time.monotonic()
        if self._bar is not None:
            if force or now - self._last > 0.2:
                self._last = now
                self._bar.update(self._task, completed=self._done + sum(self._running.values()), description=self.line())
        elif now - self._last > self._pause(now) or (force and self.committed == self.total):
            self._last = now
            say(self.line())

    def _pause(self, now: float) -> float:
        return _FIRST_LINES_S if now - self._started < 60 else _LINE_S


def _bar():
    try:
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:  # a bare GPU machine: plain lines
        return None
    return Progress(BarColumn(bar_width=24), TextColumn("{task.description}"), transient=False)
