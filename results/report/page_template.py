"""The pages' templates and what they share: escaping, scripts, the head of a page, and how values are written.

A page runs the scripts of these folders alone: its Content-Security-Policy lists their digests and allows nothing else.
"""

import base64
import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from results.plain_values import Value
from results.rows.plural import distinct

FOLDER = Path(__file__).parent
SCRIPTS = FOLDER / "scripts"
SHARED = ("uplot.js", "page_tools.js")  # scripts that define global names for the modules


_POLICY = "<!-- content security policy -->"  # in head.html, before anything that comes from a store


def render(path: Path, **values: Any) -> str:
    """The template at `path` with these values; it may include those of its folder and of this one.

    Values are escaped unless they are Markup; a name without a value is an error. `{{ script("name.js") }}` puts a file of the template's
    folder, or of scripts/, into the page.
    """
    page = _environment(path.parent).get_template(path.name).render(**values)
    return page.replace(_POLICY, _policy(page), 1) if _POLICY in page else page


@cache
def _environment(folder: Path) -> jinja2.Environment:
    """The templates of a folder and of this one, each compiled once in a process."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader((folder, FOLDER)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "rate": format_rate,
        "real": format_real,
        "share": format_share,
        "least_share": format_least_share,
        "plain": plain,
        "number": _number,
        "time": _time,
        "text": _text,
    }
    environment.globals["script"] = lambda name: _script(
        next(script for script in (folder / name, SCRIPTS / name) if script.is_file())
    )
    return environment


@cache
def _script(path: Path) -> Markup:
    """A script of this project, as an element of a page."""
    text = f"\n{path.read_text(encoding='utf-8')}\n"
    if "</script" in text:
        raise ValueError(f"{path} holds </script, which would end it in a page: write <\\/script")
    _DIGESTS[text] = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    kind = "text/javascript" if path.name in SHARED else "module"
    return Markup(f'<script type="{kind}">{text}</script>')


_DIGESTS: dict[str, str] = {}  # by the text of a script of this project


def _policy(page: str) -> str:
    scripts = " ".join(f"'sha256-{digest}'" for text, digest in _DIGESTS.items() if text in page) or "'none'"
    rules = f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def script_json(value: Value) -> Markup:
    """Compact JSON that can stand in a `<script>` element whatever its strings hold: no <, >, & or line separator is left in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))  # U+2028 and U+2029 become \u escapes
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def format_rate(rate: float | None) -> str:
    """0.0123, 4.2×10⁻⁵, 0, or diverged for infinity; – for none."""
    if rate is None or np.isnan(rate):
        return "–"
    if np.isinf(rate):
        return "diverged"
    if rate == 0 or rate >= 0.001:
        return distinct(rate, 3, "g", 1)
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{mantissa}×10{superscript(exponent)}"


def format_real(value: float | None) -> str:
    """A value of any size and sign with four digits, thousands with all of theirs, or "no bound" for infinity; – for none."""
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "no bound"
    if 1000 <= abs(value) < 10_000_000:
        return f"{value:,.0f}".replace("-", "−")
    text = distinct(value, 4, "g", 1, 100)
    mantissa, _, exponent = text.partition("e")
    power = f"×10{superscript(exponent)}" if exponent else ""
    return mantissa.replace("-", "−") + power


def superscript(exponent: str) -> str:
    """A whole number, such as -05, as a Unicode exponent, which looks the same in any font."""
    return str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def format_share(share: float) -> str:
    """A proportion in per cent, with one decimal, and with more where only they tell it from 0 or 100 %."""
    return f"{distinct(100 * share, 1, 'f', 0, 100)} %"


def format_least_share(share: float) -> str:
    """A proportion that holds at least, in per cent: rounded down to one decimal."""
    return f"{math.floor(1000 * share) / 10:.1f} %"


def format_shares(low: float, high: float) -> str:
    """An interval of proportions, such as 3.2 to 65.1 %."""
    return f"{format_share(low).removesuffix(' %')} to {format_share(high)}"


def _text(sentences: str) -> str:
    """Sentences in which a number and its per cent sign stay on one line."""
    return sentences.replace(" %", "\u00a0%")


def _time(seconds: float) -> str:
    """A time in the unit that suits it, such as 1.2 hours, 12 minutes or 3.5 seconds."""
    size, unit = next((each for each in ((3600, "hour"), (60, "minute")) if seconds >= each[0]), (1, "second"))
    return f"{seconds / size:,.3g} {unit}s"


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def plain(value: Value) -> str:
    """A configuration's value as a person would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
