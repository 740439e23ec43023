"""`executor=local`: the packs one after the other in this process. Needs torch and pyarrow; no ray, wandb or omegaconf.

On a bare GPU machine, from a manifest that `manyseeds plan --write` made elsewhere:

    python -m harness.local MANIFEST.yaml STORE [--device auto] [--allow-import MODULE]
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import harness.machine.device
from harness.executing.dispatch import Dispatch
from harness.executing.leases import Leases
from harness.executing.missing_mount import run_there
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome, attempts, halves
from harness.machine.interrupt import Interrupt
from harness.planning.manifest import plan_of, read, read_all
from harness.planning.pack import Pack, resolve
from harness.planning.plan import remaining
from harness.planning.stage_order import by_stage, ready, refuse_lost
from harness.planning.throughput import Rate, measure, room, too_large
from harness.study.experiment import ALLOW_COMMANDS
from harness.study.slot_kinds import Kind
from models.custom.custom import allow
from results.cores import cores
from results.errors import DamagedFile, StudyError, tell
from results.store.filesystem import reason
from results.store.manifest import decompressed, write_manifest
from results.store.tables import Store, open_store, refuse_folder_of_study, scored
from results.terminal import say

_WAIT_S = 0.2  # seconds between looks at packs that another driver runs


class Local:
    """This process as the only slot."""

    def __init__(self, device: str, leases: bool = True, slots: int | None = 1):
        """slots: how many share this machine, for a plan; None: one for each core or GPU."""
        self.leases = leases
        self.asked: Callable[[], bool] = lambda: False
        self.torch_device = harness.machine.device.resolve(device)
        self.device = self.torch_device.type
        harness.machine.device.prepare(self.torch_device)
        everything = torch.cuda.device_count() if self.device == "cuda" else cores()
        self.slots = everything if slots is None else slots

    def measure(self, pack: Pack, kind: Kind | None = None) -> Rate:
        return measure(pack, self.torch_device)

    def machine(self, kind: Kind | None = None) -> str:
        return harness.machine.device.machine(self.torch_device)

    def room(self, kind: Kind | None = None) -> int:
        """Bytes that tensors may take in a slot."""
        return room(self.torch_device, self.slots if self.device == "cpu" else 1)

    def check_store(self, store: Store, uri: str) -> None:
        """Nothing to check: the driver is the worker."""

    def run(self, packs: list[Pack], store: Store, uri: str, progress: Progress, interrupt: Interrupt) -> list[Outcome]:
        return run_packs(packs, store, self.torch_device, progress, interrupt, self.leases)

    def close(self) -> None:
        """Nothing was started."""


def run_packs(
    packs: list[Pack], store: Store, device: torch.device, progress: Progress, interrupt: Interrupt, leases: bool = True
) -> list[Outcome]:
    """Run the packs in order; one that runs out of memory is split and finished. leases: whether other drivers' are heeded."""
    dispatch = Dispatch(packs, store, progress, Leases(store, leases), interrupt.requested)
    try:
        with dispatch.leases.renewing():
            while dispatch.packs_left() and not interrupt.requested():
                pack = dispatch.next()
                if pack is None:
                    time.sleep(_WAIT_S)
                    continue
                report = partial(progress.step, pack.id)
                dispatch.ended(pack, run_there(pack, store, device, report, interrupt.requested, progress.say, dispatch.begun))
    finally:
        dispatch.close()
    return dispatch.outcomes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.local", description="Run the packs of a resolved manifest here.")
    parser.add_argument("manifest", help="a file that `manyseeds plan --write` made")
    parser.add_argument("store", help="path or URI of the store")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument(
        "--allow-import", action="append", default=[], metavar="MODULE", help="let it name models and tasks of MODULE"
    )
    parser.add_argument("--allow-command", action="store_true", help="let it start the commands of its experiments")
    options = parser.parse_args(arguments)
    allow(*options.allow_import, *([ALLOW_COMMANDS] if options.allow_command else []))
    try:
        return run_manifest(Path(options.manifest), options.store, options.device)
    except Exception as error:
        return tell(error)


def run_manifest(path: Path, uri: str, device: str) -> int:
    """Run what a manifest plans and the store does not hold yet. Returns the exit status: 0 when every pack is committed.

    Raises StudyError or StoreError, before anything is written, where the manifest can't be run in this store: one sentence on why.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StudyError(f"the manifest {path} can't be read ({reason(error)})") from error
    try:
        data = decompressed(data, str(path))
        manifest = read(data, str(path))
    except DamagedFile as error:
        wrong = str(error).partition(";")[0]
        raise StudyError(f"{wrong}: give the file that `manyseeds plan STUDY --write FILE` made") from error
    refuse_folder_of_study(uri)
    store = open_store(uri, manifest["study"])
    store.check_writable()
    plan = remaining(plan_of(manifest), scored(store), manifest["numerics"], read_all(store))
    refuse_lost(plan, store)
    write_manifest(store, data)  # so that the folder that comes back is a study, as one that `run` made
    local = Local(device)
    packs = resolve(plan, manifest["numerics"], attempts(store))
    total = len(plan.replicates)
    missing = sum(len(pack.replicates) for pack in packs)
    say(f"{manifest['study']}: {missing} of {total} replicates in {len(packs)} packs on {local.device}")
    rates: dict[tuple[str, int], Rate] = {}
    seconds = {}
    for pack in packs:
        shape = (pack.signature, len(pack.replicates))
        if shape not in rates:
            rates[shape] = _measured(pack, local)
        whole = rates[shape].pack_seconds(pack.replicates[0].condition.steps)
        seconds[pack.id] = whole * len(pack.replicates) / rates[shape].size
    progress = Progress(packs, seconds, total - missing, total)
    with Interrupt() as interrupt:
        outcomes: list[Outcome] = []
        for stage in by_stage(packs):
            if not interrupt.requested():
                outcomes += local.run(ready(stage, store, progress), store, uri, progress, interrupt)
    progress.close()
    return 0 if len(outcomes) >= len(packs) and all(outcome.status == "committed" for outcome in outcomes) else 1


def _measured(pack: Pack, local: Local) -> Rate:
    """The rate of a pack, or of as much of it as the device holds: it may have been planned for a larger one.

    StudyError where the device does not hold one replicate.
    """
    part = pack
    while True:
        try:
            return local.measure(part)
        except torch.OutOfMemoryError as error:
            parts = halves(part)
            if not parts:
                raise too_large(part) from error
        if part is pack:
            name = pack.replicates[0].condition.label
            say(f"a pack of {len(pack.replicates)} of {name} does not fit on this device: it goes on as smaller ones")
        part = parts[0]


if __name__ == "__main__":
    sys.exit(main())
