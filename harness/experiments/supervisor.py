"""Runs one command with everything that it starts, and ends all of it: a program of the standard library alone.

    python -I -S supervisor.py LOG MOST_BYTES SECONDS COMMAND…

It ends the command when its own standard input is closed, as when the process that started it is killed, and after SECONDS (0: never). LOG
gets the first and the last of what the command prints, MOST_BYTES together. The last line on standard output is the account, as JSON.
Where it was told to stop it removes the folder of LOG, which nobody else may be left to do.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.05
_DRAIN_S = 0.5


class Log:
    """The first and the last bytes of a stream, in a file."""

    def __init__(self, path, most):
        self.file, self.half = open(path, "wb"), most // 2  # noqa: SIM115 (closed by `close`)
        self.written, self.size, self.last = 0, 0, b""

    def add(self, data):
        self.size += len(data)
        room = self.half - self.written
        if room > 0:
            self.file.write(data[:room])
            self.written += len(data[:room])
            data = data[room:]
        self.last = (self.last + data)[-self.half :]

    def close(self):
        lost = self.size - self.written - len(self.last)
        if lost:
            self.file.write(f"\n… {lost} bytes are left out …\n".encode())
        self.file.write(self.last)
        self.file.close()


def children():
    """Ids of the processes whose parent this one is, among them those that the command left behind."""
    ids = []
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else []:
        try:
            with open(f"/proc/self/task/{task}/children") as stream:
                ids += [int(word) for word in stream.read().split()]
        except OSError:
            continue
    return ids


def end_all(command):
    """Kill the process group of the command, and whatever it started that left the group."""
    for _ in range(200):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(command.pid, signal.SIGKILL)
        command.poll()
        left = [process for process in children() if process != command.pid]
        for process in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, os.WNOHANG)
        if not left and command.returncode is not None:
            return
        time.sleep(0.01)


def main():
    path, most, seconds, *words = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    log, limit, began, reason = Log(path, int(most)), float(seconds), time.monotonic(), "ended"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    try:
        command = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        log.close()
        _tell("missing", 127, f"{words[0]} can't be started: {error.strerror}")
        return
    assert command.stdout is not None
    output = command.stdout.fileno()
    os.set_blocking(output, False)
    open_streams = [0, output]
    with contextlib.suppress(AttributeError, OSError):  # where there is none, or the kernel refuses it, the poll notices
        open_streams.append(os.pidfd_open(command.pid))  # readable once the command has ended
    while command.poll() is None:
        for stream in select.select(open_streams, [], [], _POLL_S)[0]:
            if stream not in (0, output):
                continue
            data = os.read(stream, 65536)
            if stream == output and data:
                log.add(data)
            elif stream == output:
                open_streams.remove(output)
            elif not data:
                reason = "stopped"
        if limit and time.monotonic() - began > limit:
            reason = "limit"
        if reason != "ended":
            break
    end_all(command)
    until = time.monotonic() + _DRAIN_S
    while output in open_streams and time.monotonic() < until and select.select([output], [], [], _POLL_S)[0]:
        data = os.read(output, 65536)
        if not data:
            break
        log.add(data)
    log.close()
    if reason == "stopped":
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
    _tell(reason, command.returncode)


def _tell(reason, status, text=""):
    """The account of the command, to the process at the other end of our output."""
    os.write(1, (json.dumps({"reason": reason, "status": status, "text": text}) + "\n").encode())


if __name__ == "__main__":
    main()
