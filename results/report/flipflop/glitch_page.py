"""The glitches of one replicate as a page: a list of them, and for the chosen one its prompt, every head and its history.

The page holds compact arrays and a script of this project's own (glitches.js) that draws what is asked for; nothing is fetched.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from results.errors import StudyError
from results.names import slug
from results.output import report_folder
from results.plain_values import Tree
from results.report.flipflop import glitches
from results.report.flipflop.glitch_theory import Dilution, Margins, dilution, dilution_figure, margin_figure, margins
from results.report.flipflop.glitches import About
from results.report.page_template import render, script_json
from results.report.plots.figure_files import inline_svg, svg
from results.rows.plural import counted
from results.store.tables import Store

MOST = 1000  # most glitches of a page
_BYTES = 2_400_000  # most bytes of keys, weights and norms: a third more in base64
_STEPS = 40  # most steps of the curve of margins


def write_glitch_page(store: Store, key: str, set_name: str, out: str | os.PathLike[str] | None = None) -> Path:
    """Write glitches-<beginning of the key>-<set>.html into `out` (default: the study's report folder); returns the path.

    Raises ValueError where the store has no glitches of that replicate and set.
    """
    about, rows = _read(store, key, set_name)
    text = page(about, rows, dilution(store, about, rows), margins(store, about))
    return report_folder(store, out).write(page_name(key, set_name), text.encode())


def page_name(key: str, set_name: str) -> str:
    """The file name of the page."""
    return f"glitches-{slug(key[:12])}-{slug(set_name)}.html"


def page(about: About, rows: pa.Table, bounds: Dilution | None = None, drift: Margins | None = None) -> str:
    """The page as one string of HTML; bounds and drift: what theory says of it, where probes left rows."""
    folder = Path(__file__).parent
    return render(
        folder / "glitches.html",
        about=about,
        found=rows.num_rows,
        shown=min(MOST, rows.num_rows),
        bounds=None if bounds is None else bounds.rows(about.length),
        drift=drift,
        figures={
            name: Markup(inline_svg(svg(figure), name, title))
            for name, title, figure in (
                ("dilution", "Bounds and largest weights by length", bounds and dilution_figure(bounds)),
                ("drift", "Wrong positions by the margin of positions", drift and margin_figure(drift)),
            )
            if figure
        },
        data=script_json(_data(about, rows.slice(0, MOST))),
    )


def lines(store: Store, key: str, set_name: str, limit: int, sisters: int) -> Iterator[str]:
    """The first `limit` glitches as text, a line each, with the answers of the first `sisters`; then how many more are stored."""
    about, rows = _read(store, key, set_name)
    sisters = min(sisters, len(about.sisters))
    yield (
        f"{about.study}: {counted(rows.num_rows, 'glitch')} of {about.key[:12]} "
        f"({about.condition}, seeds {about.init_seed}, {about.data_seed}) in the first "
        f"{about.looked:,} of {about.sequences:,} strings of {about.set}; committed: {about.errors:,} errors in {about.reads:,} reads"
    )
    if rows.num_rows:
        yield "  string position  margin  since write  since event  said right  sisters wrong  prompt ends with"
    for row in rows.slice(0, limit).to_pylist():
        said, right = about.answers[row["answer"]], about.answers[row["right"]]
        end = " ".join(about.tokens[token] for token in row["prompt"][: row["position"] + 1][-16:])
        failing = f"{sum(row['sister_wrong'][:sisters])} of {sisters}"
        yield (
            f"  {row['string']:6} {row['position']:8} {row['margin']:7.3g} {row['since_write']:12} {row['since_event']:12} "
            f"{said:>5} {right:>5} {failing:>14}  {end}"
        )
    if rows.num_rows > limit:
        yield f"  {rows.num_rows - limit:,} more are in {store.path(glitches.FOLDER, glitches.name_of(key, set_name))}"


def _read(store: Store, key: str, set_name: str) -> tuple[About, pa.Table]:
    rows = glitches.read(store, key, set_name)
    if rows is None:
        raise StudyError(f"{store.study} has no glitches of {key[:12]} on {set_name}: run manyseeds glitches first")
    return rows


def _data(about: About, rows: pa.Table) -> Tree:
    """The data that the script reads: columns of the rows, and each string's prompt as text, one character per token, counted from "0"."""
    prompts: dict[str, str] = {}
    for string, prompt in zip(rows["string"].to_pylist(), rows["prompt"].to_pylist(), strict=True):
        text = "".join(chr(48 + token) for token in prompt)
        prompts[str(string)] = max(text, prompts.get(str(string), ""), key=len)
    chosen = np.unique(np.linspace(0, len(about.steps) - 1, min(_STEPS, len(about.steps))).round().astype(int)).tolist()
    columns = ("string", "position", "answer", "right", "write", "since_write", "since_event", "sister_wrong")
    return {
        **{name: getattr(about, name) for name in ("tokens", "answers", "layers", "heads", "causal", "unit", "length")},
        **{name: rows[name].to_pylist() for name in columns},
        "steps": [about.steps[i] for i in chosen],
        "sisters": [f"{each['init']}, {each['data']}" for each in about.sisters],
        "margin": [_short(value) for value in rows["margin"].to_pylist()],
        "margins": [[_short(each[i]) for i in chosen] for each in rows["margins"].to_pylist()],
        "sister_margins": [[_short(value) for value in each] for each in rows["sister_margins"].to_pylist()],
        "prompts": prompts,
        **_attention(about, rows),
    }


def _attention(about: About, rows: pa.Table) -> Tree:
    """uint16 [N, layers · heads, kept, 3]: key, weight and share of the row's norms × 65535; float32 totals [N, layers · heads]."""
    heads = about.layers * about.heads
    if not heads or not rows.num_rows:
        return {"kept": 0, "attention": "", "totals": ""}
    shape = (rows.num_rows, heads, about.kept)
    keys, weights, norms = (_flat(rows, name).reshape(shape) for name in ("keys", "weights", "norms"))
    totals = _flat(rows, "totals").reshape(shape[:2])
    kept = max(1, min(about.kept, _BYTES // (rows.num_rows * heads * 6)))
    share = np.divide(norms, totals[..., None], out=np.zeros(shape), where=totals[..., None] > 0)
    scaled = [np.rint(np.clip(values, 0, 1) * 65535) for values in (weights, share)]
    packed = np.stack([keys, *scaled], axis=-1)[:, :, :kept].astype("<u2")
    text = [base64.b64encode(values.tobytes()).decode() for values in (packed, totals.astype("<f4"))]
    return {"kept": kept, "attention": text[0], "totals": text[1]}


def _flat(rows: pa.Table, name: str) -> np.ndarray:
    return rows[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)


def _short(value: float | None) -> float | None:
    """Round to four digits; None where the value is not finite."""
    return float(f"{value:.4g}") if value is not None and np.isfinite(value) else None
