"""A headless browser for pages, and a name that breaks a page which does not escape it."""

import os
import re
import shutil

import pytest

EVIL = "</script><script>alert(1)</script>\u2028\"'&"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--enable-logging=stderr"]


def browser() -> str:
    """A headless Chromium; the test is left out without one, but not where everything must run."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("CI=true, and no chromium or google-chrome is on the PATH")
    pytest.skip("no chromium or google-chrome is on the PATH")


def with_script(page: str, script: str) -> str:
    """The page with a test's own script at its end, and so without the policy that refuses every script but the page's."""
    free, policies = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert policies == 1
    return free.replace("</body>", f"{script}</body>")
