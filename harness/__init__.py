"""How a study runs."""

from harness.own_packages import put_first

put_first()
