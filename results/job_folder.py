"""The folder of a Ray job: Ray unpacks the working folder there, and removes it with all that the job has written."""

import contextlib
import os

_UNPACKED = "runtime_resources/working_dir_files"  # where Ray puts the working folder of a job


def in_ray_job() -> bool:
    """Whether this process is the entry point of a Ray job, or runs in the folder of one."""
    if "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:  # of the entry point
        return True
    with contextlib.suppress(FileNotFoundError):  # the folder may be gone
        return _UNPACKED in os.getcwd()
    return False
