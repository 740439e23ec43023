"""Whether every node of a cluster sees the store that the driver writes. Nodes answer at once and without torch: each starts a process."""

import secrets

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from results.errors import StoreError, StudyError
from results.store.filesystem import info_of
from results.store.tables import Store, delete, open_store, write_bytes


def check_seen(store: Store, uri: str) -> None:
    """StudyError where a node does not see what the driver writes: a local folder on a cluster of several nodes."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if len(nodes) < 2 or not store.is_local:
        return
    name = f".seen-{secrets.token_hex(8)}"
    write_bytes(store, name, b"manyseeds")
    try:
        asked = [(node, _ask(node["NodeID"], uri, store.study, name)) for node in nodes]
        for node, answer in asked:
            try:
                sees = ray.get(answer)
            except RayTaskError as error:
                raise own_error(error) from error
            except RayError:
                continue  # the node is being lost, which Ray has not noticed yet
            if not sees:
                raise StudyError(
                    f"the store {uri} is a folder that node {node['NodeManagerHostname']} does not share with this one: "
                    "pass store=s3://… or a folder on a file system that every node mounts"
                )
    finally:
        delete(store, name)


def own_error(error: RayTaskError) -> Exception:
    """The StudyError or StoreError that a worker raised, without the traceback that Ray makes its text; else Ray's own."""
    cause = error.cause
    return cause if isinstance(cause, StudyError | StoreError) else error


def _ask(node: str, uri: str, study: str, name: str) -> ray.ObjectRef:
    pinned = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(_sees).options(num_cpus=0, scheduling_strategy=pinned).remote(uri, study, name)


def _sees(uri: str, study: str, name: str) -> bool:
    store = open_store(uri, study)
    return info_of(store.filesystem, store.path(name)).is_file
