"""Signals by which a person or a scheduler asks a study to end."""

import signal

import pytest

from harness.machine.interrupt import Interrupt


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_a_ctrl_c_after_it_ends_at_once(first):
    with Interrupt() as interrupt:
        assert not interrupt.requested()
        signal.raise_signal(first)
        assert interrupt.requested()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_sigterm_that_comes_twice_leaves_the_time_to_save(capsys):
    """As where a scheduler sends it to all processes of a job, and the job's script sends it on."""
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.requested()
    assert capsys.readouterr().err == "stopping: what runs is saved first (Ctrl-C to stop at once)\n"
