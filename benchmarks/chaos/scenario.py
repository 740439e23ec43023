"""What happens to a study and when, from a seed alone."""

import random
from dataclasses import asdict, dataclass

from results.plain_values import Row


@dataclass(frozen=True)
class Event:
    """Of a kind: worker, raylet, driver (SIGKILL), notice (SIGTERM to a worker), interrupt (Ctrl-C to a driver), memory, outage.

    At `at` seconds after the first manifest, for `seconds` where it ends again; `pick` in [0, 1) chooses the victim."""

    at: float
    kind: str
    pick: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """Two drivers on one store: the second on a Ray cluster of its own, `second_at` seconds after the first (None: never)."""

    seed: int
    sizes: tuple[int, int]  # pack.size of the two drivers: unlike ones make packs overlap
    second_at: float | None
    leases: bool
    events: tuple[Event, ...]

    def words(self) -> Row:
        """As plain data, for the log."""
        return asdict(self)


def scenario(seed: int, window: float) -> Scenario:
    """Within `window` seconds: 2 to 4 worker kills, 1 or 2 driver kills, and up to 2 notices and one of each other kind."""
    draw = random.Random(f"chaos-{seed}")
    counts = {
        "worker": draw.randint(2, 4),
        "raylet": draw.randint(0, 1),
        "driver": draw.randint(1, 2),
        "notice": draw.randint(0, 2),
        "interrupt": draw.randint(0, 1),
        "memory": draw.randint(0, 1),
        "outage": draw.randint(0, 1),
    }
    lasting = {"raylet": (0.1, 2.0), "memory": (2.0, window / 2), "outage": (0.3, 2.0)}
    events = []
    for kind, count in counts.items():
        for _ in range(count):
            seconds = draw.uniform(*lasting[kind]) if kind in lasting else 0.0
            events.append(Event(round(draw.uniform(0, window), 2), kind, draw.random(), round(seconds, 2)))
    sizes = (draw.choice((2, 2, 3)), draw.choice((1, 3, 4)))
    second_at = round(draw.uniform(0, window / 2), 2) if draw.random() < 0.7 else None
    return Scenario(seed, sizes, second_at, draw.random() < 0.5, tuple(sorted(events, key=lambda event: event.at)))
