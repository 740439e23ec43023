"""One seed: start the drivers, carry out the scenario, and compare the tables with those of an undisturbed run."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.chaos.driver import Driver
from benchmarks.chaos.machines import Machines, environment, kill, kill_tree, terminate, wait_for
from benchmarks.chaos.places import PLACES, files
from benchmarks.chaos.scenario import Event, Scenario
from benchmarks.chaos.study import NAME
from results.plain_values import Row
from results.store.tables import committed, list_names, open_store, read
from tests.harness.tiny import tables

_STARTS = 12  # of one driver, at most
_AGAIN_S = 0.2  # until a kill that found nothing to kill looks again


class Attempt:
    """The drivers, the machines and the store of one seed. `log` gets what happened: dicts with `t`, seconds since the start."""

    def __init__(self, plan: Scenario, study: str, folder: Path, cluster: Machines, place: str):
        self.plan, self.cluster = plan, cluster
        self.folder = folder
        self.begun = time.monotonic()
        self.log: list[Row] = []
        folder.mkdir(parents=True)
        self.place = PLACES[place](folder, plan.seed)
        self._memory = Path(study).with_name("memory")
        leases = f"leases={'on' if plan.leases else 'off'}"
        first = Driver(
            "first", study, self.place.uri, folder, cluster.driver_environment, [f"pack.size={plan.sizes[0]}", leases]
        )
        self.drivers = [first]
        if plan.second_at is not None:
            alone = environment(self._memory.parent)
            size = f"pack.size={plan.sizes[1]}"
            self.drivers.append(Driver("second", study, self.place.uri, folder, alone, [size, leases]))

    def run(self, seconds: float) -> None:
        """Until every driver has ended with exit status 0. TimeoutError after `seconds`, RuntimeError after too many starts."""
        until = self.begun + seconds
        first = self.drivers[0]
        store = open_store(self.place.real, NAME)
        wait_for(lambda: self._tended(first).done or list_names(store, "manifests"), "the first manifest", seconds)
        begun = time.monotonic()
        waiting = [(event.at, event.kind, event) for event in self.plan.events]
        if self.plan.second_at is not None:
            waiting.append((self.plan.second_at, "second", Event(self.plan.second_at, "second")))
        while True:
            now = time.monotonic() - begun
            if time.monotonic() > until:
                raise TimeoutError(f"not finished within {seconds:g} s; starts: {[driver.starts for driver in self.drivers]}")
            due = [entry for entry in waiting if entry[0] <= now]
            waiting = [entry for entry in waiting if entry[0] > now]
            for _, what, event in sorted(due, key=lambda entry: entry[0]):
                waiting += self._happen(what, event, now)
            if not any(what == "replacement" for _, what, _ in waiting) and (count := self.cluster.repair()):
                # nobody killed it: a busy machine can be too slow for Ray's own limits
                self.log.append({"t": self._t(), "kind": "node started again", "nodes": count, "done": True})
            started = self.drivers[: 1 if any(what == "second" for _, what, _ in waiting) else 2]
            for driver in started:
                if self._tended(driver).starts > _STARTS:
                    raise RuntimeError(f"the driver {driver.name} was started {driver.starts} times: {driver.endings}")
            if started == self.drivers and all(driver.done for driver in self.drivers):
                break
            time.sleep(0.05)
        for _, what, _ in waiting:
            self.log.append({"t": self._t(), "kind": what, "done": False})  # it came too late

    def close(self) -> None:
        """Leave nothing of this seed behind but its files."""
        for driver in self.drivers:
            driver.close()
        self.place.close()
        self._memory.unlink(missing_ok=True)
        self.cluster.repair()

    def verdict(self, expected: dict[str, list[str]]) -> Row:
        """What the store holds against what it should; `passed` is the conclusion."""
        store = open_store(self.place.real, NAME)
        found = tables(self.place.real, NAME)
        rows = committed(store)
        keys = list(zip(rows["key"].to_pylist(), rows["stage"].to_pylist(), strict=True))
        failures = read(store, "failures", ["kind", "pack", "attempt", "step", "exception"]).to_pylist()
        kinds = [row["kind"] for row in failures]
        killed = sum(entry["kind"] in ("worker", "raylet") and entry["done"] for entry in self.log)
        unequal = [name for name in expected if found[name] != expected[name]]
        # a pack whose worker is killed three times at one step is recorded as died, and trained again by `retry`
        odd = [kind for kind in kinds if kind != "died" or killed < 3]
        return {
            "passed": not unequal and not odd and len(keys) == len(set(keys)),
            "unequal_tables": unequal,
            "replicates": len(keys),
            "packs": len(set(rows["pack"].to_pylist())),
            "pack_files": len(list_names(store, "replicates")),
            "failures": failures,
            "checkpoints_left": len(files(self.place.real, "checkpoints")),
            "faults": self.place.faults(),
            "endings": {driver.name: driver.endings for driver in self.drivers},
        }

    def words(self) -> dict[str, str]:
        """The end of each driver's output."""
        return {driver.name: driver.words() for driver in self.drivers}

    def _tended(self, driver: Driver) -> Driver:
        driver.tend()
        return driver

    def _t(self) -> float:
        return round(time.monotonic() - self.begun, 2)

    def _happen(self, what: str, event: Event, now: float) -> list[tuple[float, str, Event]]:
        """Carry out an event and log it; returns events that follow later, or the event itself if there is no victim yet."""
        later: list[tuple[float, str, Event]] = []
        entry: Row = {"t": self._t(), "kind": what, "done": True}
        if what in ("worker", "notice"):
            workers = sorted([*self.cluster.workers(), *(pid for driver in self.drivers for pid in driver.workers())])
            if not workers:
                return [(now + _AGAIN_S, what, event)]
            entry["done"] = (kill if what == "worker" else terminate)(_chosen(workers, event))
        elif what in ("driver", "interrupt"):
            running = [driver for driver in self.drivers if driver.pid is not None]
            if not running:
                return [(now + _AGAIN_S, what, event)]
            driver = _chosen(running, event)
            entry["driver"] = driver.name
            if what == "driver":
                entry["cluster_ended"] = driver.kill()
            else:
                entry["done"] = driver.interrupt()
        elif what == "raylet":
            entry["processes"] = kill_tree(_chosen(self.cluster.nodes, event))
            later = [(now + event.seconds, "replacement", event)]
        elif what == "replacement":
            self.cluster.repair()
        elif what == "memory":
            self._memory.write_text("1")
            later = [(now + event.seconds, "memory again", event)]
        elif what == "memory again":
            self._memory.unlink()
        elif what == "outage":
            self.place.away()
            later = [(now + event.seconds * self.place.outage_factor, "store again", event)]
        elif what == "store again":
            self.place.back()
        self.log.append(entry)
        return later


def _chosen(among: Sequence[Any], event: Event) -> Any:
    return among[int(event.pick * len(among))]


@contextmanager
def attempt(plan: Scenario, study: str, folder: Path, cluster: Machines, place: str = "folder") -> Iterator[Attempt]:
    """An attempt whose store is of PLACES."""
    one = Attempt(plan, study, folder, cluster, place)
    try:
        yield one
    finally:
        one.close()
