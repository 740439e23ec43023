"""A `sys.exit` of a person's own code as an error, so that it ends the pack that runs and not its process."""

import contextlib
from collections.abc import Iterator

from results.errors import StudyError


class Exited(StudyError):
    """A person's own code called `sys.exit`."""


@contextlib.contextmanager
def no_exit(what: str) -> Iterator[None]:
    """Raise Exited, with one sentence, where `what` calls `sys.exit`. KeyboardInterrupt stays what it is."""
    try:
        yield
    except SystemExit as error:
        raise Exited(f"{what} called sys.exit({error.code}): raise an error instead") from error
