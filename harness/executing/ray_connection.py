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

ANSWER_S = 10.0  # for a cluster to answer
_OBJECT_STORE = 100 * 2**20  # bytes; packs and outcomes are small


def connect(say: Callable[[str], None]) -> None:
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS")
    # Workers look for our packages where this driver has them: nothing needs to be installed on a machine that sees the folder. Ray itself
    # adds the current folder only, and a runtime_env would conflict with that of a job.
    refuse_hidden_from_workers(os.getcwd())
    options: Tree = {"log_to_driver": False, "logging_level": logging.WARNING}
    options["job_config"] = ray.job_config.JobConfig(_py_driver_sys_path=[str(ROOT)])
    if address:
        host, _, port = address.rpartition(":")
        try:
            if "://" not in address and port.isdigit():
                socket.create_connection((host, int(port)), timeout=ANSWER_S).close()  # Ray itself tries for minutes
            ray.init(address=address, **options)
        except (OSError, RuntimeError) as error:
            raise StudyError(
                f"no Ray cluster answers at RAY_ADDRESS={address} ({' '.join(str(error).split())}): start it, or unset RAY_ADDRESS "
                "(where the cluster wants a token, set RAY_AUTH_MODE=token and the token it was started with)"
            ) from error
        return
    # a token of this cluster's own: otherwise Ray writes ~/.ray/auth_token, and clusters started later turn authentication on
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    # it warns that tokens are on and says how to turn them off, and this cluster wants its own
    logging.getLogger("ray._private.authentication.authentication_token_setup").setLevel(logging.ERROR)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    count = cores()
    say(f"starting Ray on this machine ({count} core{'s'[: count > 1]})")
    ray.init(address="local", num_cpus=count, include_dashboard=False, object_store_memory=_OBJECT_STORE, **options)
