"""The pages' templates and what they share: escaping, the head of a page, and how values are written."""

import json
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

FOLDER = Path(__file__).parent


def render(path: Path, **values: Any) -> str:
    """The template at `path` with these values; it may include those of its folder and of this one.

    Values are escaped unless they are Markup; a name without a value is an error.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([path.parent, FOLDER]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"rate": format_rate, "share": format_share, "plain": plain, "number": _number}
    return environment.get_template(path.name).render(**values)


def script_json(value: Any) -> Markup:
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
        return f"{rate:.3g}"
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{mantissa}×10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def format_share(share: float) -> str:
    """A proportion in per cent, with one decimal."""
    return f"{100 * share:.1f} %"


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def plain(value: Any) -> str:
    """A configuration's value as one would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
