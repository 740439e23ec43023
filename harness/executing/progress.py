"""How far a study is: steps taken, replicates committed, an end time. A bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from harness.executing.run_pack import Outcome
from harness.planning.amounts import duration
from harness.planning.pack import Pack
from results.rows.plural import significant
from results.terminal import printable, say

_LINE_S = 15.0  # between plain lines
_FIRST_LINES_S = 5.0  # between those of the first minute
_LATER_LINES_S = 60.0  # after the first ten minutes
Item = TypeVar("Item")


class Progress:
    """Counts work in expected seconds, so that packs of unlike cost make one honest end time.

    seconds: expected seconds a pack, by pack id. watcher: told how the study stands, whenever that may have changed; it must be quick.
    """

    def __init__(
        self,
        packs: list[Pack],
        seconds: Mapping[str, float],
        committed: int,
        total: int,
        watcher: Callable[[Mapping[str, float]], None] = lambda state: None,
    ):
        self._watcher = watcher
        self._size = {pack.id: len(pack.replicates) for pack in packs}
        self._steps = {pack.id: pack.steps for pack in packs}
        self._shows_steps = all(pack.experiment is None for pack in packs)  # replicates say it all of experiments
        self._all_steps = sum(self._steps[pack] * size for pack, size in self._size.items())
        self._ended_steps = 0
        self._at: dict[str, int] = {}  # the step of each running pack
        self._seconds = dict(seconds)
        self._running: dict[str, float] = {}
        self._work = sum(seconds.values()) or 1.0
        self._done = 0.0
        self._resumed: dict[str, float] = {}  # seconds of work, by pack, that were done before the pack was first seen
        self._resumed_seconds = 0.0  # of all that still count
        self.committed, self.total = committed, total
        self.packs = len(packs)
        self.failed = self.diverged = self.packs_ended = 0
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
        if pack not in self._resumed:
            self._resumed[pack] = done - self._seconds[pack] / self._steps[pack]
            self._resumed_seconds += self._resumed[pack]
        self._running[pack], self._at[pack] = done, step
        self._show()

    def step_seconds(self, pack: str) -> float:
        """Expected seconds of a step, with its share of the evaluations."""
        return self._seconds[pack] / self._steps[pack]

    def split(self, pack: str, parts: list[Pack]) -> None:
        """A pack goes on as smaller ones, which begin anew."""
        self._forget(pack)
        self._resumed_seconds -= self._resumed.pop(pack, 0.0)
        self.packs += len(parts) - 1
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
            self.packs_ended += 1
        elif outcome.status in ("failed", "unstored"):
            self._work -= self._seconds[outcome.pack]  # not done at this rate, and not to be done any more
            self._resumed_seconds -= self._resumed.pop(outcome.pack, 0.0)
            self.failed += outcome.replicates
            self.say(f"pack {outcome.pack} {outcome.status} at step {outcome.step}: {outcome.message}")
            self._all_steps -= self._size[outcome.pack] * self._steps[outcome.pack]
            self.packs_ended += 1
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
        """ "18,000/48,000 steps · 3/6 packs · 12/24 replicates · 3.1 a minute · ends 14:32 (4 min left)".

        A step of a pack is one of each replicate.
        """
        steps = self._ended_steps + sum(step * self._size[pack] for pack, step in self._at.items())
        left = self.seconds_left()
        parts = [f"{steps:,}/{self._all_steps:,} steps"] if self._shows_steps else []
        parts += [f"{self.packs_ended}/{self.packs} packs", f"{self.committed}/{self.total} replicates"]
        if self._here:
            parts.append(f"{significant(self._rate())} a minute")
        if left is not None:
            parts.append(_ends(left))
        elif self._shows_steps and self._stepped() and self._running:
            parts.append("every step is done, the last evaluations run")
        if self.diverged:
            parts.append(f"{self.diverged} diverged")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return " · ".join(parts)

    def state(self) -> dict[str, float]:
        """How the study stands, in numbers; the rate and the end once they are known. `ends` is a time in seconds since 1970."""
        left = self.seconds_left()
        return {
            "committed": self.committed,
            "planned": self.total,
            "running": sum(self._size[pack] for pack in self._running),
            "failed": self.failed,
            "diverged": self.diverged,
            "packs_ended": self.packs_ended,
            "packs": self.packs,
            **({"replicates_per_minute": self._rate()} if self._here else {}),
            **({} if left is None else {"minutes_left": left / 60, "ends": time.time() + left}),
        }

    def seconds_left(self) -> float | None:
        """Seconds until the end; None until enough is done to tell, and once every step is done."""
        done = self._done + sum(self._running.values())
        here = done - self._resumed_seconds
        if here <= 0.01 * self._work or self._stepped():
            return None
        return (time.monotonic() - self._started) * (self._work - done) / here

    def _stepped(self) -> bool:
        return self._done + sum(self._running.values()) > self._work * (1 - 1e-9)

    def _rate(self) -> float:
        """Replicates a minute that were committed here."""
        return self._here / (time.monotonic() - self._started) * 60

    def _show(self, force: bool = False) -> None:
        self._watcher(self.state())
        now = time.monotonic()
        if self._bar is not None:
            if force or now - self._last > 0.2:
                self._last = now
                self._bar.update(self._task, completed=self._done + sum(self._running.values()), description=self.line())
        elif now - self._last > _pause(now - self._started) or (force and self.committed == self.total):
            self._last = now
            say(self.line())


def with_progress(items: Sequence[Item], say: Callable[[str], None]) -> Iterator[Item]:
    """Yield the items, one a replicate, and say now and then how many are done: "12/100 replicates · ends 14:32 (4 min left)"."""
    started = last = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and now - last > _pause(now - started):
            last = now
            say(f"{done:,}/{len(items):,} replicates · {_ends((now - started) * (len(items) - done) / done)}")
        yield item


def _ends(left: float) -> str:
    rest = duration(left) if left >= 1 else "under 1 s"
    return f"ends {datetime.now() + timedelta(seconds=left):%H:%M} ({rest} left)"


def _pause(so_far: float) -> float:
    """Seconds between two plain lines, by the seconds since the first."""
    return _FIRST_LINES_S if so_far < 60 else _LINE_S if so_far < 600 else _LATER_LINES_S


def _bar():
    try:
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:  # a bare GPU machine: plain lines
        return None
    return Progress(BarColumn(bar_width=24), TextColumn("{task.description}"), transient=False)
