"""The Ray cluster that a driver works on: that of RAY_ADDRESS, or one of this machine that ends with the process."""

import logging
import os
import secrets
import socket
from collections.abc import Callable

import ray
import ray.job_config
import ray.util.client

from harness.own_packages import ROOT, refuse_hidden_from_workers
from results.cores import cores
from results.errors import StudyError
from results.plain_values import Tree
from results.store.filesystem import public

ANSWER_S = 10.0  # for a cluster to answer
_OBJECT_STORE = 100 * 2**20  # bytes; packs and outcomes are small


def connect(say: Callable[[str], None]) -> None:
    """Join the cluster of RAY_ADDRESS, or start one of this machine. Nothing is done where the process has joined one already.

    Raises StudyError where RAY_ADDRESS is a URL, nothing answers there, or what answers refuses.
    """
    address = os.environ.get("RAY_ADDRESS")
    if ray.util.client.ray.is_connected() or (address and "://" in address):
        where = f"RAY_ADDRESS={public(address)}" if address and "://" in address else "ray.init, which was called before,"
        raise StudyError(
            f"{where} leads to a Ray cluster by a URL, and a study can't be run through one: set RAY_ADDRESS to HOST:6379 or auto on a "
            "machine of the cluster, or submit the study with `ray job submit`"
        )
    if ray.is_initialized():
        return
    # Workers look for our packages where this driver has them: nothing needs to be installed on a machine that sees the folder. Ray itself
    # adds the current folder only, and a runtime_env would conflict with that of a job.
    refuse_hidden_from_workers(os.getcwd())
    options: Tree = {"log_to_driver": False, "logging_level": logging.WARNING}
    options["job_config"] = ray.job_config.JobConfig(_py_driver_sys_path=[str(ROOT)])
    if address:
        _join(address, options)
        return
    # a token of this cluster's own: otherwise Ray writes ~/.ray/auth_token, and clusters started later turn authentication on
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    # it warns that tokens are on and says how to turn them off, and this cluster wants its own
    logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    count = cores()
    say(f"starting Ray on this machine ({count} core{'s'[: count > 1]})")
    ray.init(address="local", num_cpus=count, include_dashboard=False, object_store_memory=_OBJECT_STORE, **options)


def _join(address: str, options: Tree) -> None:
    """Join a cluster that runs. StudyError where nothing answers, or what answers refuses."""
    host, _, port = address.rpartition(":")
    known = port.isdigit()
    try:
        if known:
            socket.create_connection((host, int(port)), timeout=ANSWER_S).close()  # Ray itself tries for minutes
    except OSError as error:
        raise StudyError(f"{_silent(address, error)}: start it, or unset RAY_ADDRESS") from error
    try:
        ray.init(address=address, **options)
    except (OSError, RuntimeError) as error:
        what = f"what answers at RAY_ADDRESS={address} can't be joined ({_line(error)})" if known else _silent(address, error)
        raise StudyError(
            f"{what}: if the cluster wants a token, set RAY_AUTH_MODE=token and the token that it was started with; else correct or "
            "unset RAY_ADDRESS"
        ) from error


def _silent(address: str, error: Exception) -> str:
    return f"no Ray cluster answers at RAY_ADDRESS={address} ({_line(error)})"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
