"""One pass over a queue of packs: which comes next, and what becomes of one that ended. The executors only carry packs back and forth."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace

import pyarrow.compute as pc

import harness.training.checkpoint as checkpoints
from harness.executing.death_policy import UNHEARD, WAITED_S, Deaths
from harness.executing.leases import Leases
from harness.executing.missing_mount import begun
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome, attempts, halves, record_failure
from harness.machine.logs import account, keep_accounts
from harness.machine.store_retry import patiently
from harness.planning.amounts import duration
from harness.planning.pack import Pack
from results.errors import StoreError
from results.plain_values import Row
from results.store.filesystem import info_of
from results.store.parquet import COMPACTED, SUFFIX
from results.store.tables import Store, check_there, read_files, table_files

_LOOK_S = 3.0  # between looks at packs that another driver runs, once nothing else is left
_COUNT_S = 15.0  # between counts of what other drivers have committed, for the progress
_LOST = 3  # packs in a row that the store would not take, after waiting for it each time: it is gone
_ACCOUNTS = 20  # deaths of a pack that its log tells of
_WORDS = {"died": "lost its worker", "hung": "hung", "oom": "ran the host out of memory"}


class Dispatch:
    """A queue of packs, and what became of those that ended.

    outcomes: of packs that ended for good. asked(): whether the person wants to stop, so that nothing waits for the store any longer.
    on_end: called with every outcome that packs have here, not those that other drivers commit. begun: whether the store held a manifest of
    the study at the start; a store that then shows none is away. The caller renews the leases meanwhile: `leases.renewing()`.
    """

    def __init__(
        self,
        packs: list[Pack],
        store: Store,
        progress: Progress,
        leases: Leases,
        asked: Callable[[], bool],
        on_end: Callable[[Outcome], None] = lambda outcome: None,
    ):
        self._on_end = on_end
        self.progress, self.leases, self.asked = progress, leases, asked
        self.outcomes: list[Outcome] = []
        self._queue = list(packs)
        self._elsewhere: list[Pack] = []
        self._others: set[str] = set()  # ids of packs that were seen to run elsewhere
        self._looked = self._counted = 0.0
        self._said = False
        self._deaths = Deaths()
        self._waiting: list[tuple[float, Pack]] = []  # until which second packs wait whose worker died before they began
        self._told: set[tuple[str, str]] = set()  # kinds of such deaths and their nodes
        self._accounts: dict[str, list[str]] = {}  # by pack: what is known of its deaths
        self.begun = patiently(lambda: begun(store), asked, progress.say)
        self.store = leases.store = replace(store, begun=self.begun)
        self._failed = self._attempts()
        self._returned: set[str] = set()  # given back by the store once
        self._refused = 0  # in a row

    def packs_left(self) -> int:
        """Packs that wait here or run elsewhere."""
        return len(self._queue) + len(self._waiting) + len(self._elsewhere)

    def queued(self) -> list[Pack]:
        """The packs that wait here."""
        return [*self._queue, *(pack for _, pack in self._waiting)]

    def next(self, rank: Callable[[Pack], int | None] | None = None) -> Pack | None:
        """The next pack that no other driver runs or has committed; None where there is none now.

        rank: preference of the slot for a pack; 0 is best, None refuses it. The first of the best is returned; without `rank`, any.
        """
        self._end_waits()
        if not self._queue and self._elsewhere and time.monotonic() - self._looked > _LOOK_S:
            self._queue, self._elsewhere = self._elsewhere, []
            self._looked = time.monotonic()
        elif self._elsewhere and time.monotonic() - self._counted > _COUNT_S:
            self._count_elsewhere()
        while (place := 0 if rank is None else self._preferred(rank)) is not None and self._queue:
            pack = self._queue.pop(place)
            done = self._committed(pack)
            if done is not None:
                self._end_elsewhere(done)
            elif self.leases.take(pack.id):
                if (done := self._committed(pack)) is not None:  # by a driver that had the lease until now
                    self.leases.drop(pack.id)
                    self._end_elsewhere(done)
                    continue
                try:
                    return self._as_next_attempt(pack)
                except StoreError as refused:
                    self._unstored(pack, Outcome(pack.id, "unstored", len(pack.replicates), message=str(refused)))
            elif self.leases.halved(pack.id) and (parts := halves(pack)):  # whoever halved it runs these
                self.progress.split(pack.id, parts)
                self._others.update(part.id for part in parts)
                self._queue = parts + self._queue
            else:
                self._elsewhere.append(pack)
                self._others.add(pack.id)
        if self._elsewhere and not self._said:
            self._said = True
            count, them = (f"{len(self._elsewhere)} packs are", "them") if len(self._elsewhere) > 1 else ("one pack is", "it")
            self.progress.say(
                f"{count} run by another driver of this study: waiting until that driver commits {them} or its leases expire"
            )
        return None

    def again(self, pack: Pack, why: str = "") -> None:
        """Queue a pack again that was saved or never begun; why: what the person is told."""
        if why:
            self.progress.say(f"pack {pack.id} goes on elsewhere: {why}")
        self._queue.insert(0, pack)

    def ended(self, pack: Pack, outcome: Outcome) -> None:
        """Settle a pack by its own account of how it ended."""
        if outcome.status in ("oom", "raised"):
            if parts := halves(pack):
                what = "it ran out of memory" if outcome.status == "oom" else f"it raised {outcome.message}"
                self.progress.say(f"pack {pack.id} of {outcome.replicates} replicates goes on as two halves: {what}")
                self._split(pack, parts)
            else:
                self._fail(pack, outcome.status, outcome.step, outcome.message, outcome.message)
        elif outcome.status == "unstored":
            self._unstored(pack, outcome)
        else:
            self._end(pack, outcome)

    def raised(self, pack: Pack, message: str, trace: str) -> None:
        """Fail a pack that its worker could not even begin."""
        self._fail(pack, "raised", 0, message, trace)

    def died(
        self,
        pack: Pack,
        kind: str,
        node: str,
        lost: Collection[str],
        error: str,
        host: str = "",
        heard: bool = True,
        raised: str = "",
    ) -> None:
        """Retry, halve or fail a pack whose worker is gone.

        kind: died | hung | oom (of the host); node, host: where it was; lost: nodes that are gone; heard: whether the pack said a word
        before; raised: the exception with which the worker did not even start.
        """
        try:
            step = max(patiently(lambda: self._steps(pack), self.asked, self.progress.say), default=0)
        except StoreError as refused:
            self._unstored(pack, Outcome(pack.id, "unstored", len(pack.replicates), message=str(refused)))
            return
        told = self._accounts.setdefault(pack.id, [])
        told.append(account(kind, step, node, host, error))
        del told[:-_ACCOUNTS]
        if kind == "oom" and heard and len(pack.replicates) > 1:
            verdict = "halve"
        else:
            verdict = self._deaths.verdict(pack.id, len(pack.replicates), step, node, lost, heard)
        if verdict == "retry" and not heard:
            self._try_later(pack, kind, node, lost, host, raised)
        elif verdict == "retry":
            what = "was on a node that is lost" if node in lost else _WORDS[kind]
            then = "goes on from there" if step else "starts again"
            self.progress.say(f"pack {pack.id} {what} after step {step} and {then}")
            self._queue.insert(0, replace(pack, attempt=pack.attempt + 1))
        elif verdict == "halve":
            often = "" if kind == "oom" else "for the third time "
            self.progress.say(f"pack {pack.id} {_WORDS[kind]} {often}at step {step} and goes on as two halves")
            self._split(pack, halves(pack))
        else:
            self._log(pack, host, told)
            unheard = f"{UNHEARD} workers in a row died before the pack began, though it waited {duration(WAITED_S)} in all"
            self._fail(pack, kind, step, f"{_WORDS[kind]} three times after step {step}" if heard else unheard, error)

    def close(self) -> None:
        self.leases.close()

    def _try_later(self, pack: Pack, kind: str, node: str, lost: Collection[str], host: str, raised: str) -> None:
        """Queue a pack again whose worker died before it began: at once where its node is lost, else after a while.

        That was no attempt, since nothing of the pack ran.
        """
        if node in lost:
            self.progress.say(f"pack {pack.id} was on a node that is lost, and has not begun: it goes on elsewhere")
            self._queue.insert(0, pack)
            return
        self._waiting.append((time.monotonic() + self._deaths.wait_s(pack.id), pack))
        if (kind, node) not in self._told:  # not for every pack: each of them finds the same
            self._told.add((kind, node))
            self.progress.say(_died_early(kind, f"the node {host or node}" if host or node else "a node", raised))

    def _end_waits(self) -> None:
        """Put the packs that have waited long enough in front of the queue."""
        now = time.monotonic()
        self._queue[:0] = [pack for until, pack in self._waiting if until <= now]
        self._waiting = [(until, pack) for until, pack in self._waiting if until > now]

    def _attempts(self) -> dict[str, int]:
        """Failed attempts in the store by now, by pack id. StoreError where it is away."""

        def ask() -> dict[str, int]:
            if self.begun:
                check_there(self.store)
            return attempts(self.store)

        return patiently(ask, self.asked, self.progress.say)

    def _as_next_attempt(self, pack: Pack) -> Pack:
        """The pack as the attempt after those that the store has, so that no failure and no log is written over.

        Parts of a pack come without such a count. StoreError where another driver may have failed the pack and the store is away.
        """
        if pack.id in self._others:
            self._failed = self._attempts()
        return replace(pack, attempt=max(pack.attempt, self._failed.get(pack.id, 0) + 1))

    def _steps(self, pack: Pack) -> list[int]:
        """Steps of the pack's checkpoints. StoreError where the store is away."""
        if self.begun:
            check_there(self.store)
        return checkpoints.steps(self.store, pack.id)

    def _log(self, pack: Pack, host: str, accounts: list[str]) -> None:
        try:
            keep_accounts(self.store, pack, host, accounts)
        except StoreError as error:
            self.progress.say(f"the log of pack {pack.id} is not kept: {error}")

    def _preferred(self, rank: Callable[[Pack], int | None]) -> int | None:
        """The place in the queue of the pack that a slot prefers; None where it refuses all."""
        best, place = None, None
        for index, pack in enumerate(self._queue):
            preference = rank(pack)
            if preference == 0:
                return index
            if preference is not None and (best is None or preference < best):
                best, place = preference, index
        return place

    def _count_elsewhere(self) -> None:
        """Count what other drivers have committed by now; otherwise the end that is shown would be this driver's alone."""
        self._counted = time.monotonic()
        try:
            there = set(table_files(self.store, "replicates"))
        except StoreError:
            return  # they are counted later, at the latest when nothing else is left
        waiting, self._elsewhere = self._elsewhere, []
        for pack in waiting:
            done = self._committed(pack) if f"{pack.id}{SUFFIX}" in there else None
            if done is not None:
                self._end_elsewhere(done)
            else:
                self._elsewhere.append(pack)

    def _end_elsewhere(self, done: Outcome) -> None:
        self.progress.end(done)
        self.outcomes.append(done)

    def _committed(self, pack: Pack) -> Outcome | None:
        """The outcome of a pack that another driver has committed meanwhile, scored on all its sets."""

        def rows_of(table: str, columns: list[str]) -> list[Row]:
            compacted = [name for name in table_files(self.store, table) if name.startswith(COMPACTED)] if not alone else []
            rows = read_files(self.store, table, [own] if alone else compacted, [*columns, "pack"])
            return rows.filter(pc.field("pack") == pack.id).to_pylist()

        own = f"{pack.id}{SUFFIX}"
        try:
            alone = info_of(self.store.filesystem, self.store.path("replicates", own)).is_file
            if not alone and pack.id not in self._others:  # the driver that ran it may have compacted the study since
                return None
            rows = rows_of("replicates", ["key", "stage", "sets", "status"])
            scores = rows_of("evaluations", ["key", "set_hash"]) if pack.replicates[0].sets else []
        except StoreError:
            return None  # so it is trained here
        scored = {(row["key"], row["set_hash"]) for row in scores}
        sets_by_key = {
            row["key"]: {digest for digest in row["sets"] if (row["key"], digest) in scored}
            for row in rows
            if row["stage"] == pack.stage
        }
        if any(
            not {asked.hash for asked in replicate.sets} <= sets_by_key.get(replicate.key, set())
            for replicate in pack.replicates
        ):
            return None
        diverged = sum(row["status"] == "diverged" for row in rows)
        return Outcome(pack.id, "committed", len(pack.replicates), diverged)

    def _unstored(self, pack: Pack, outcome: Outcome) -> None:
        """Queue a pack again, at the end, that the store would not take.

        A pack that was queued so before, or whose store takes nothing any more, is ended.
        """
        self._refused += 1
        if self._refused < _LOST and pack.id not in self._returned and not self.asked():
            self._returned.add(pack.id)
            self.leases.drop(pack.id)
            self.progress.say(f"the store did not take pack {pack.id}, which goes on later: {outcome.message}")
            self._queue.append(pack)
            return
        self._end(pack, outcome)
        if self._refused >= _LOST and self.packs_left():
            self.progress.say(f"the store took none of {self._refused} packs in a row: nothing more is started")
            self._queue, self._waiting, self._elsewhere = [], [], []

    def _split(self, pack: Pack, parts: list[Pack]) -> None:
        try:
            patiently(lambda: checkpoints.clear(self.store, pack.id), self.asked, self.progress.say)
        except StoreError as error:
            self.progress.say(f"checkpoints/{pack.id} could not be removed and can be deleted: {error}")
        self.leases.halve(pack.id)
        self.progress.split(pack.id, parts)
        self._queue = parts + self._queue

    def _fail(self, pack: Pack, kind: str, step: int, message: str, trace: str) -> None:
        try:
            patiently(lambda: record_failure(self.store, pack, kind, step, message, trace), self.asked, self.progress.say)
        except StoreError as error:
            message = f"{message}; this is not recorded ({error}), so the same command tries it again"
        self._end(pack, Outcome(pack.id, "failed", len(pack.replicates), step=step, message=message))

    def _end(self, pack: Pack, outcome: Outcome) -> None:
        if outcome.status == "committed":
            self._refused = 0
        self.leases.drop(pack.id)
        self.progress.end(outcome)
        self._on_end(outcome)
        self.outcomes.append(outcome)


def _died_early(kind: str, place: str, raised: str) -> str:
    """The sentence on a first death on a node before a pack's first word."""
    if kind == "oom":
        why = f"{place} is short of memory, which other processes use: Ray ends workers there before their packs begin"
    elif raised:
        why = f"a worker on {place} could not start ({raised})"
    else:
        why = f"a worker on {place} died before its pack began"
    return f"{why}. Such a pack waits, 1 s at first and up to a minute later, and is given up after {duration(WAITED_S)}"
