"""Which running packs have stopped getting on: a function of when they were last heard of.

A pack says that it lives between its steps and between the batches of an evaluation, and while it waits for the store. It hangs when
it has been silent for `MULTIPLE` times the longest it is known or expected to be silent, and for at least `QUIET_S`; before its first
step `START_S` more, in which a worker imports torch, a model is compiled and a checkpoint is read.
"""

from dataclasses import dataclass, field

QUIET_S = 600.0
START_S = 600.0
MULTIPLE = 50


@dataclass
class _Heard:
    at: float  # of the clock, seconds
    longest: float  # silence so far, or the expected seconds of a step
    stepped: bool = False


@dataclass
class Watch:
    """The running packs by id. Times are seconds of a clock that never goes back; limits as above."""

    quiet_s: float = QUIET_S
    start_s: float = START_S
    multiple: float = MULTIPLE
    _packs: dict[str, _Heard] = field(default_factory=dict)

    def begin(self, pack: str, now: float, step_s: float) -> None:
        """A pack begins on a worker that is up; step_s: expected seconds of one of its steps."""
        self._packs[pack] = _Heard(now, step_s)

    def heard(self, pack: str, now: float, step: int) -> None:
        entry = self._packs.get(pack)
        if entry is None:
            return  # ended meanwhile
        if entry.stepped:
            entry.longest = max(entry.longest, now - entry.at)
        entry.at, entry.stepped = now, entry.stepped or step > 0

    def end(self, pack: str) -> None:
        self._packs.pop(pack, None)

    def allowed(self, pack: str) -> float:
        """Seconds that the pack may be silent."""
        entry = self._packs[pack]
        return max(self.quiet_s, self.multiple * entry.longest) + (0.0 if entry.stepped else self.start_s)

    def silent(self, now: float) -> list[str]:
        """The packs that hang."""
        return [pack for pack, entry in self._packs.items() if now - entry.at > self.allowed(pack)]
