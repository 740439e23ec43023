"""Malformed studies: each is one sentence that names the culprit and the remedy, at once and before anything is built.

`malformed/command_lines.tsv`: overrides of BASE (" && " between several); `malformed/files.tsv`: the study files beside it. Both say what
the sentence must hold. `malformed/valid_keys.tsv`: SHA-256 of the first key of every condition of the studies under launch/studies.
"""

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.study.load import from_tree, load
from harness.study.stages import keys
from harness.study.tree import read_tree
from launch.families import find_study
from results.errors import StudyError

FOLDER = Path(__file__).parent / "malformed"
ROOT = Path(__file__).parents[2]
BASE = """
name: trial
question: Why?
task: {name: flipflop, length: 16}
model: {name: transformer, layers: 1, width: 8, heads: 2}
train: {steps: 20, batch: 4}
evaluate: {sets: {sparse: {p_ignore: 0.98, sequences: 100}}}
replicates: 2
"""
MOST_S = 2.0


def _rows(name):
    lines = (FOLDER / name).read_text().splitlines()[1:]
    return [tuple(line.split("\t")) for line in lines]


def _load(text, overrides=()):
    """A study, or a StudyError of one sentence, in time."""
    began = time.process_time()
    try:
        return from_tree(read_tree(text.encode(errors="surrogatepass"), "FILE"), overrides, "FILE")
    finally:
        assert time.process_time() - began < MOST_S


def _refusal(text, overrides=()):
    with pytest.raises(StudyError) as refused:
        _load(text, overrides)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < 2000
    return sentence


def test_the_corpus_has_at_least_300_inputs():
    inputs = [row[0] for row in (*_rows("command_lines.tsv"), *_rows("files.tsv"))]
    assert len(set(inputs)) == len(inputs) >= 300


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_a_malformed_command_line_is_one_sentence_with_culprit_and_remedy(first):
    for override, culprit, remedy in _rows("command_lines.tsv")[first : first + 50]:
        sentence = _refusal(BASE, override.split(" && "))
        assert culprit in sentence, override
        assert remedy in sentence, override


@pytest.mark.parametrize(("file", "culprit", "remedy"), _rows("files.tsv"))
def test_a_malformed_file_is_one_sentence_with_culprit_and_remedy(file, culprit, remedy):
    sentence = _refusal((FOLDER / f"{file}.yaml").read_text())
    assert culprit in sentence
    assert remedy in sentence


@pytest.mark.parametrize("data", [b"\x00\x01\x02", "name: \xe9\n".encode("latin-1"), b"\xff\xfe\x00"])
def test_bytes_that_are_no_text_are_refused(data):
    with pytest.raises(StudyError, match="FILE is not a readable YAML file"):
        read_tree(data, "FILE")


_LARGE = """
import resource, sys, time
from harness.study.load import from_tree
from harness.study.tree import read_tree
from results.errors import StudyError
BASE = sys.argv[1]
thousand = "[" + ", ".join(f"{index}.0e-9" for index in range(1, 1001)) + "]"
CASES = {
    "replicates: 1000000000": "replicates = 1000000000 makes 1,000,000,000 replicates",
    "seeds: {init: 0..999999999, data: 0..999999999}": "seeds makes 1,000,000,000,000,000,000 replicates",
    "replicates: {min: 2, max: 1000000000, until: {zero_error: {set: sparse, half_width: 0.1}}}": "replicates.max = 1000000000",
    "task: {name: flipflop, length: 1000000000000}": "task.length = 1,000,000,000,000 is too large: write at most 100,000",
    "model: {name: transformer, layers: 1000000}": "model.layers = 1,000,000 is too large",
    "model: {name: transformer, width: 1000000}": "model.width = 1,000,000 is too large",
    "model: {name: transformer, width: 100000, layers: 1000}": "parameters a replicate",
    "model: {name: lstm, width: 100000}": "model.width = 100000 must be at most 20000",
    "train: {batch: 1000000000}": "train.batch = 1,000,000,000 is too large",
    "model: {name: transformer}\\ntrain: {batch: 1000000}": "of activations a step",
    f"grid: {{train.lr: {thousand}, train.weight_decay: {thousand}}}": "make 1,000,000 conditions",
    "source: {" + ", ".join(f"k{index}: 1" for index in range(50_000)) + "}": "it is something else",
    "source: {" + ", ".join(f"k{index}: 1" for index in range(20_000)) + "}": "has more than 5000 values",
    "source: " + "[" * 2000 + "]" * 2000: "nested more than 40 levels",
    "source: " + "{a: " * 2000 + "1" + "}" * 2000: "nested more than 40 levels",
    "train: {steps: " + "9" * 5000 + "}": "5,000 digits",
    "question: " + "why " * 5000: "19,999 characters",
    "source: {" + "k" * 300 + ": 1}": "at most 200",
    "question: " + "${name}" * 30: "30 references",
    "# " + "x" * 2**20: "it is something else",
}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for text, words in CASES.items():
    began = time.process_time()
    over = {line.partition(":")[0] for line in text.split("\\n")}
    kept = [line for line in BASE.splitlines() if line.partition(":")[0] not in over]
    try:
        from_tree(read_tree("\\n".join([*kept, text, ""]).encode(), "FILE"), (), "FILE")
        print("accepted", text[:60])
    except StudyError as error:
        took = time.process_time() - began
        if words not in str(error) or took > 2:
            print(f"{took:.1f} s", text[:60], str(error)[:300])
more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
if more > 500:
    print(f"{more:.0f} MB more")
"""


def test_studies_that_would_eat_the_machine_are_refused_within_two_seconds_and_500_mb():
    words = [sys.executable, "-c", _LARGE, BASE]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr


def test_a_hundred_thousand_replicates_are_a_study():
    study = _load(BASE, ["replicates=100000", "grid={train.lr: [1.0e-3, 1.0e-2, 1.0e-1]}"])
    assert [len(condition.seeds) for condition in study.conditions] == [100_000] * 3


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_the_keys_of_valid_studies_are_as_they_were(every):
    for name, conditions, replicates, digest in _rows("valid_keys.tsv")[::every]:
        study = load(find_study(*name.split("/")))
        first = [key for each in study.conditions for key, _ in keys(replace(each, seeds=each.seeds[:1]))]
        assert len(study.conditions) == int(conditions)
        assert sum(len(each.seeds) for each in study.conditions) == int(replicates)
        assert hashlib.sha256(" ".join(sorted(first)).encode()).hexdigest()[:16] == digest, name


# ---- mutations of valid studies

_VALID = [
    BASE,
    BASE + "conditions: {a: {}, b: {model: {name: lstm, width: 8}, replicates: 3}}\ngrid: {train.lr: [1.0e-3, 1.0e-2]}\n",
    BASE
    + "sweeps: [{zip: {train.lr: [1, 2], train.batch: [2, 4]}}, {each: {model.width: [4, 8]}, seeds: {init: 0..2, data: 1}}]\n",
    BASE + "stages: [{init: previous, train: {steps: 5}}]\nkeep: steps(0, 5)\nscales: {small: {replicates: 1}}\nscale: small\n",
    BASE.replace("replicates: 2", "replicates: {min: 2, max: 4, until: {zero_error: {set: sparse, half_width: 0.2}}}"),
]
_NUMBERS = [None, True, -1, 0, 1, 7, 10**12, 2**64, 10**99, -0.5, 1.5, 1e300]
_WORDS = ["", " ", "a\nb", "~x", "s3://", "0..3", "0..999999999", "lstm", "é", "\x1b[31m"]
_NODES = [
    [],
    {},
    [[]],
    [1],
    ["a", 2],
    {"a": 1},
    {"name": "lstm"},
    {"name": []},
    {"": {}},
    {"a.b": 1, "a": {"b": 2}},
    [{"zip": {}}],
    [None],
]
_ODD = st.sampled_from([*_NUMBERS, *_WORDS, *_NODES])
_SECTIONS = ["task", "model", "train", "grid", "seeds", "evaluate", "only", "store"]
_SIGNS = ["", "{", "]", ":", "\t", "0", "&a ", "*a", "!!set", "${name}", "-", "'", "\n"]


def _paths(node, path=()):
    yield path
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield from _paths(node[key], (*path, key))


@st.composite
def _mutated(draw):
    """The text of a valid study with up to three values replaced, removed, renamed or copied elsewhere, or with characters changed."""
    tree = yaml.safe_load(draw(st.sampled_from(_VALID)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in _paths(tree) if path]))
        node = tree
        for key in path[:-1]:
            node = node[key]
        how = draw(st.sampled_from(["replace", "remove", "rename", "copy"]))
        if how == "replace":
            node[path[-1]] = draw(_ODD)
        elif how == "remove":
            node.pop(path[-1])
        elif how == "rename" and isinstance(node, dict):
            node[draw(st.text(max_size=8)) or "model"] = node.pop(path[-1])
        else:
            tree[draw(st.sampled_from(_SECTIONS))] = node[path[-1]]
        if not tree:
            break
    text = yaml.safe_dump(tree, allow_unicode=True)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(st.sampled_from(["", "{", "]", ":", "\t", "0", "&a ", "*a", "!!set", "${name}", "-", "'", "\n"]))
            + text[at + 1 :]
        )
    return text


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(_mutated())
def test_a_mutated_study_is_a_study_or_one_sentence(text):
    try:
        study = _load(text)
    except StudyError:
        return
    assert study.conditions
    assert all(condition.seeds for condition in study.conditions)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from([row[0].split(" && ")[0] for row in _rows("command_lines.tsv")]), st.integers(0, 60), st.text(max_size=3)
)
def test_a_mutated_override_is_a_study_or_one_sentence(override, place, inserted):
    try:
        study = _load(BASE, [override[:place] + inserted + override[place:]])
    except StudyError:
        return
    assert study.conditions
