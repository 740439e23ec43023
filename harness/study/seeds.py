"""The seeds of a condition's replicates, from `replicates` and `seeds` of a study file."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping

from results.errors import StudyError
from results.plain_values import Options, Value

_MOST = 2**63
_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")


def seeds_of(spec: Value, where: str) -> list[int]:
    """Seeds from a whole number, a range "0..4" with both ends, or a list of these that has no seed twice."""
    if isinstance(spec, list):
        if not spec:
            raise StudyError(f"{where} is an empty list: give at least one seed")
        seeds = [seed for part in spec for seed in seeds_of(part, where)]
        twice = next((seed for seed, times in Counter(seeds).items() if times > 1), None)
        if twice is not None:
            raise StudyError(f"{where} has the seed {twice} twice: list each seed once")
        return seeds
    if type(spec) is int and 0 <= spec < _MOST:
        return [spec]
    ends = _RANGE.fullmatch(spec) if isinstance(spec, str) else None
    if ends and int(ends[1]) <= int(ends[2]):
        return list(range(int(ends[1]), int(ends[2]) + 1))
    raise StudyError(f"{where} = {spec!r} must be a seed of 0 or more, a range such as 0..4 (both ends), or a list of these")


def _most_seeds(spec: Value) -> int:
    """How many seeds a specification names, repeated ones counted each time, before any is listed."""
    if isinstance(spec, list):
        return sum(map(_most_seeds, spec))
    ends = _RANGE.fullmatch(spec) if isinstance(spec, str) else None
    return max(0, int(ends[2]) - int(ends[1]) + 1) if ends else 1


def count_of(study: Options, own: Options) -> tuple[int, str]:
    """(how many replicates `pairs_of` gives at most, the key that says so); (0, "") where it refuses the study."""
    seeds = own.get("seeds", study.get("seeds", {"from": 0}))
    if _is_product(seeds) and not ("replicates" in own and "seeds" not in own):
        return _most_seeds(seeds["init"]) * _most_seeds(seeds["data"]), "seeds"
    replicates = own.get("replicates", study.get("replicates", 1))
    return (replicates, f"replicates = {replicates}") if type(replicates) is int else (0, "")


def pairs_of(study: Options, own: Options, where: str) -> list[tuple[int, int]]:
    """(init, data) pairs of a point: a product {init, data}, or `replicates` pairs of equal seeds from 0 or `seeds: {from: N}`.

    own: what the point sets itself. Its `replicates` replace a product of the study, and begin where the study's begin.
    ValueError, with `where` before the key, for anything else.
    """
    seeds = own.get("seeds", study.get("seeds", {"from": 0}))
    if "replicates" in own and "seeds" not in own and _is_product(seeds):
        seeds = {"from": 0}
    if _is_product(seeds):
        init, data = (seeds_of(seeds[name], f"{where}seeds.{name}") for name in ("init", "data"))
        return list(itertools.product(init, data))
    if not isinstance(seeds, Mapping) or set(seeds) != {"from"}:
        raise StudyError(
            f"{where}seeds = {seeds!r} must give both init and data, such as {{init: 0..4, data: 0..4}}, or the first of "
            "replicates that are paired: {from: 100}"
        )
    replicates = own.get("replicates", study.get("replicates", 1))
    if type(replicates) is not int or replicates < 1:
        raise StudyError(f"{where}replicates = {replicates!r} must be a whole number of at least 1")
    first = seeds["from"]
    if type(first) is not int or not 0 <= first < _MOST - replicates:
        raise StudyError(f"{where}seeds.from = {first!r} must be a seed of 0 or more")
    return [(seed, seed) for seed in range(first, first + replicates)]


def replaces_seeds(earlier: Value, later: Value) -> bool:
    """Whether `seeds` of a later source are of another kind than those of an earlier one, paired or a product."""
    product = {"init", "data"}
    return (
        isinstance(earlier, Mapping)
        and isinstance(later, Mapping)
        and bool(product & set(later)) != bool(product & set(earlier))
    )


def _is_product(seeds: Value) -> bool:
    return isinstance(seeds, Mapping) and set(seeds) == {"init", "data"}
