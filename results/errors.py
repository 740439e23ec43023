"""The errors that a person can mend. Their text is one sentence, and it is all that a person sees of them.

Any other exception is a defect of this project, or of the machine: the person sees its whole traceback, and `tell` says so.
"""

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from results.terminal import say

STATUS_MENDABLE = 2  # exit status of a command that ends with one of these errors
STATUS_DEFECT = 70  # of one that ends with any other exception: EX_SOFTWARE of sysexits.h
OURS = ("harness", "launch", "models", "results", "tasks")  # a module of these that is missing is a defect

_SYNONYMS = {  # what other libraries call an option
    "steps": "epochs num_epochs iterations iters max_iters max_steps num_steps num_train_steps",
    "batch": "batch_size bs",
    "lr": "learning_rate",
    "warmup": "warmup_steps num_warmup_steps",
    "schedule": "scheduler lr_scheduler lr_scheduler_type",
    "weight_decay": "wd",
    "clip": "grad_clip clip_grad max_grad_norm",
    "precision": "dtype amp fp16 bf16",
    "layers": "n_layer n_layers num_layers num_hidden_layers depth",
    "width": "d_model n_embd hidden_size hidden_dim embed_dim",
    "heads": "n_head n_heads num_heads nhead num_attention_heads",
    "feed_forward": "d_ff dim_feedforward intermediate_size",
    "length": "seq_len seq_length sequence_length max_length block_size context_length n_ctx",
    "sequences": "num_sequences n_sequences num_samples n_samples",
    "replicates": "runs num_runs n_runs num_seeds n_seeds",
    "seeds": "seed random_seed random_state",
}
OTHER_NAMES = {other: ours for ours, others in _SYNONYMS.items() for other in others.split()}


class StudyError(ValueError):
    """A study file, a command line or an installation asks for what cannot be done."""


class StoreError(OSError):
    """A store refuses, is away, or holds what no study wrote."""


class MissingFile(StoreError, FileNotFoundError):
    """A file that was listed in a store, or should be in it, is not there."""


class DamagedFile(StoreError, ValueError):
    """A file of a store is not what a study wrote there. Waiting does not mend it."""


def nearest(word: Any, candidates: Iterable[str], prefix: str = "") -> str:
    """ "; did you mean …?", or "" when no candidate is near. One that other libraries call by this word comes before one spelled alike."""
    if len(str(word)) > 100:  # no typing error, and the search takes the square of its length
        return ""
    names = list(candidates)
    ours = OTHER_NAMES.get(str(word))
    match = [ours] if ours in names else difflib.get_close_matches(str(word), names, n=1)
    return f"; did you mean {prefix}{match[0]}?" if match else ""


@contextmanager
def settings_errors(kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Turn a ValueError of the calls inside, which hand a person's settings to a task or a model, into a StudyError.

    Tasks and models know nothing of this module. kind: only errors of this class, where the calls inside do more than that.
    """
    try:
        yield
    except (StudyError, StoreError):
        raise
    except kind as error:
        raise StudyError(str(error)) from error


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Turn an OSError of the calls inside, which ask a store about `path`, into a StoreError."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        raise MissingFile(f"{path} is not there") from error
    except OSError as error:
        raise StoreError(f"{path} can't be reached ({' '.join((error.strerror or str(error)).split())})") from error


@contextmanager
def output_errors(path: object, in_store: bool = False) -> Iterator[None]:
    """Turn an OSError of the calls inside, which write to `path`, into a StudyError: the person named the place.

    in_store: the place is a store's own folder, so the error is a StoreError.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        sentence = f"{path} can't be written ({' '.join((error.strerror or str(error)).split())})"
        raise (StoreError(sentence) if in_store else StudyError(f"{sentence}: name another place")) from error


def tell(error: Exception) -> int:
    """Print what ends a command: one sentence where the person can mend it, else the traceback of a defect. Returns the exit status."""
    if isinstance(error, ModuleNotFoundError) and "." not in (error.name or ".") and error.name not in OURS:
        error = StudyError(
            f"the package {error.name} is not installed for {sys.executable}: use the Python of the environment that the first "
            "command of README.md makes (.venv/bin/python), or type pip install -c constraints.txt -e . in the checkout"
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        error = StoreError(f"{error.filename or 'the output'} can't be written ({error.strerror}): make room")
    mendable = isinstance(error, (StudyError, StoreError))
    if not mendable or "MANYSEEDS_DEBUG" in os.environ:
        for line in "".join(traceback.format_exception(error)).splitlines():
            say(line, err=True)
    if mendable:
        say(f"error: {error}", err=True)
        return STATUS_MENDABLE
    say("this is a defect of manyseeds, not of your study: please report it, with the lines above and the command", err=True)
    return STATUS_DEFECT
