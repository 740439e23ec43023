"""A headless browser for pages, and a name that breaks a page which does not escape it."""

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

EVIL = "</script><script>alert(1)</script>\u2028\"'&"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--enable-logging=stderr"]


def browser() -> str:
    """A headless Chromium. Without one the test is skipped, except where everything must run."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("CI=true, and no chromium or google-chrome is on the PATH")
    pytest.skip("no chromium or google-chrome is on the PATH")


def with_script(page: str, script: str) -> str:
    """The page with a test's own script at its end, and therefore without the policy that allows only the page's scripts."""
    free, policies = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert policies == 1
    return free.replace("</body>", f"{script}</body>")


def asked(page: str, script: str, folder: Path, width: int) -> dict[str, Any]:
    """What a script, which may await, writes into its object `told` in a window of this width; it may not write to the console."""
    answer = """<script type="module">const told = {{}};
    {}
    const answer = document.createElement("pre");
    answer.id = "answers"; answer.textContent = btoa(encodeURIComponent(JSON.stringify(told)));
    document.body.replaceChildren(answer);</script>"""
    path, profile = folder / "asked.html", folder / "profile"
    path.write_text(with_script(page, answer.format(script)), encoding="utf-8")
    flags = [*FLAGS, f"--window-size={width},1000", "--virtual-time-budget=5000", f"--user-data-dir={profile}"]
    done = subprocess.run(
        [browser(), *flags, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    shutil.rmtree(profile, ignore_errors=True)
    assert "CONSOLE" not in done.stderr
    found = re.search(r'<pre id="answers">([A-Za-z0-9+/=]+)</pre>', done.stdout)
    assert found is not None
    return dict(json.loads(unquote(base64.b64decode(found[1]).decode())))
