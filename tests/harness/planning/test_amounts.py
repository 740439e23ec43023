import pytest

from harness.planning.amounts import device_time, duration, size

DURATIONS = [
    (0.0312, "0.031 s"),
    (4.25, "4.2 s"),
    (12, "12 s"),
    (600, "10 min"),
    (9000, "2.5 h"),
    (400_000, "4.6 days"),
    (5e8, "16 years"),
]
SIZES = [(0, "0 bytes"), (340, "340 bytes"), (58_400, "58 KB"), (5_830_000, "5.8 MB"), (999_700, "1.0 MB"), (120e9, "120 GB")]
TIMES = [(0.00058, "2.1 core-seconds"), (0.02, "72 core-seconds"), (0.5, "0.5 core-hours"), (1234.5, "1,234 core-hours")]
TIMES += [(1.0, "1 core-hour"), (0.96, "0.96 core-hours"), (1 / 3600, "1 core-second")]


@pytest.mark.parametrize(("seconds", "text"), DURATIONS)
def test_durations_are_said_as_people_do(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), SIZES)
def test_bytes_have_a_unit_that_fits(count, text):
    assert size(count) == text


@pytest.mark.parametrize(("hours", "text"), TIMES)
def test_small_costs_are_seconds_of_a_device(hours, text):
    assert device_time(hours, "core") == text
