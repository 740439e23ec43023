"""Ports of this machine for servers that are about to start."""

import atexit
import socket


def held_port() -> int:
    """A port that is given to nobody else while this process lives, but that a server with SO_REUSEADDR can listen on.

    A port that was only looked up is free for everyone until the server has it: the system gives it to any outgoing connection,
    or to the next that asks. Servers of Ray, gRPC, Go and Python's http.server have SO_REUSEADDR. Nothing answers until then.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    atexit.register(holder.close)
    return int(holder.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
