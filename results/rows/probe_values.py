"""Rows that probes add to committed replicates: one file for each pack and probe, <study>/probes/<pack>.<probe>.parquet.

A compaction joins these files too. If a step is added again afterwards, readers take its rows from the newer file.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from results.errors import DamagedFile
from results.plain_values import Options
from results.store.parquet import SUFFIX, conform, read_file, serialise
from results.store.schema import SCHEMAS
from results.store.tables import Store, check_name, list_names, read, write_bytes

OfPair = tuple[int | None, int | None, str | None]  # layer, head, item
Name = tuple[str, int | None, int | None, str | None]  # probe, layer, head, item
Place = TypeVar("Place")


class Values(dict[Place, float]):
    """Values of a probe, by item or by place. Looking up one that is missing raises an error of the store."""

    def __missing__(self, place: Place) -> float:
        shown = " ".join(str(part)[:60] for part in (place if isinstance(place, tuple) else (place,)) if part is not None)
        raise DamagedFile(
            f"the rows of a probe lack the item {shown}: move the file of the probe out of probes/, and run the probe again"
        )


class Items(Values[str]):
    """Values of a probe by item."""


def by_item(values: Mapping[Name, float]) -> Items:
    """The values of a probe by item, for probes whose items are unique."""
    return Items({item or "": value for (*_, item), value in values.items()})


def parts(item: str | None, form: str) -> tuple[str, ...]:
    """The parts of an item that fill the gaps of a form; () for an item of another form.

    A gap is {n} for a whole number and {word} for a word.

    >>> parts("pair=2 exact", "pair={n} {word}")
    ('2', 'exact')
    """
    match = _pattern(form).fullmatch(item or "")
    return match.groups() if match else ()


@functools.cache
def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(re.escape(form).replace(r"\{n\}", r"(\d{1,9})").replace(r"\{word\}", r"(\S+)"), re.ASCII)


def add(store: Store, pack: str, probe: str, rows: Sequence[Options]) -> None:
    """Add rows of one probe to those of a pack; a (key, stage, step) that the store has already is replaced.

    Rows are mappings with the columns of the table `probes` but pack and probe. They count for readers as long as the pack does.
    """
    check_name(f"{pack}.{probe}", "a pack with its probe")
    fresh = conform("probes", pa.Table.from_pylist([{**row, "pack": pack, "probe": probe} for row in rows], SCHEMAS["probes"]))
    name = f"{pack}.{probe}{SUFFIX}"
    if name in list_names(store, "probes"):
        before = read_file(store.filesystem, store.path("probes", name), "probes", SCHEMAS["probes"].names)
        kept = before.join(fresh.select(["key", "stage", "step"]), keys=["key", "stage", "step"], join_type="left anti")
        fresh = pa.concat_tables([kept.select(SCHEMAS["probes"].names).cast(SCHEMAS["probes"]), fresh])
    if fresh.num_rows:
        write_bytes(store, f"probes/{name}", serialise(fresh.sort_by([("key", "ascending"), ("step", "ascending")])))


def probed(store: Store, probe: str) -> set[tuple[str, int, int]]:
    """The (key, stage, step) that have rows of a probe."""
    rows = read(store, "probes", ["key", "stage", "step"], pc.field("probe") == probe)
    return {(row["key"], row["stage"], row["step"]) for row in rows.group_by(rows.column_names).aggregate([]).to_pylist()}


def compared(store: Store, probe: str) -> dict[tuple[str, int, int], set[str]]:
    """For each (key, stage, step), the keys of the replicates that a probe of pairs has compared it with."""
    rows = read(store, "probes", ["key", "stage", "step", "other_key"], pc.field("probe") == probe)
    partners: dict[tuple[str, int, int], set[str]] = {}
    for row in rows.group_by(rows.column_names).aggregate([]).to_pylist():
        partners.setdefault((row["key"], row["stage"], row["step"]), set()).add(row["other_key"])
    return partners


def by_key(rows: pa.Table) -> dict[str, Values[Name]]:
    """The values in a table of `probes` by key and name, of the first stage at its last probed step.

    Values that compare two replicates are left out.
    """
    names = ["key", "probe", "layer", "head", "item"]
    own = rows.filter((pc.field("stage") == 0) & pc.field("other_key").is_null()).sort_by("step")
    # the last of each name is found by pyarrow: of many probed steps, most rows never become objects of Python
    last = own.group_by(names, use_threads=False).aggregate([("value", "last")])
    values: dict[str, Values[Name]] = {}
    for key, probe, layer, head, item, value in _each(last, *names, "value_last"):
        values.setdefault(key, Values())[probe, layer, head, item] = value
    return values


def by_pair(rows: pa.Table, probe: str) -> dict[frozenset[str], Values[OfPair]]:
    """The values of a probe that compares two replicates, by their keys and by layer, head and item, at the last probed step."""
    own = rows.filter((pc.field("probe") == probe) & pc.field("other_key").is_valid()).sort_by("step")
    values: dict[frozenset[str], Values[OfPair]] = {}
    for key, other, layer, head, item, value in _each(own, "key", "other_key", "layer", "head", "item", "value"):
        values.setdefault(frozenset((key, other)), Values())[layer, head, item] = value
    return values


def by_step(rows: pa.Table, probe: str) -> dict[str, dict[int, Items]]:
    """Values of a probe by key, step and item. Of runs with different options, which its name shows, the one with most rows is taken."""
    named = rows.filter((pc.field("probe") == probe) | pc.starts_with(pc.field("probe"), f"{probe}-"))
    counts = Counter(named["probe"].to_pylist())
    chosen = max(sorted(counts), key=lambda name: counts[name], default=probe)
    values: dict[str, dict[int, Items]] = {}
    for key, step, item, value in _each(named.filter(pc.field("probe") == chosen), "key", "step", "item", "value"):
        values.setdefault(key, {}).setdefault(step, Items())[item] = value
    return values


def _each(rows: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """These columns row by row. Faster than `to_pylist` of the table, which makes a mapping of every row."""
    return zip(*(rows[column].to_pylist() for column in columns), strict=True)
