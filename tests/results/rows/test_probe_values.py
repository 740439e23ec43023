"""Values of probes in a foreign store: what a reader needs and is not there is a fault of the store, in one sentence."""

import pyarrow as pa
import pytest

from results.claims.distillation.tree import _peaks
from results.claims.lego.sentences import items_by_length
from results.errors import DamagedFile
from results.rows.probe_values import by_key, by_pair, by_step
from results.store.schema import SCHEMAS

ROW = {"key": "a", "stage": 0, "pack": "p", "step": 1, "probe": "balance", "layer": 7, "head": 0, "item": "other", "value": 1.0}
ROWS = pa.Table.from_pylist([ROW, ROW | {"other_key": "b"}], SCHEMAS["probes"])


@pytest.mark.parametrize(
    "find",
    [
        lambda: by_key(ROWS)["a"]["balance", 0, 0, "beta_mean"],
        lambda: by_pair(ROWS, "balance")[frozenset("ab")][0, 0, "beta_mean"],
        lambda: by_step(ROWS, "balance")["a"][1]["beta_mean"],
        lambda: items_by_length(by_key(ROWS)["a"], "epsilon")[5],
    ],
)
def test_an_item_that_is_not_there_is_a_fault_of_the_store(find):
    with pytest.raises(DamagedFile, match=r"the rows of a probe lack the item .*run the probe again"):
        find()


def test_items_of_another_form_name_no_node():
    sets = {f"node={node} degree=2 {word}": value for node in (2, 4) for word, value in (("inside", 3.0), ("outside", 1.0))}
    assert _peaks({1: sets | {"nodes": 9.0, "": 9.0}}) == {2: (1, 3.0), 4: (1, 3.0)}
