"""`manyseeds init`: a study file of one's own, every part of it explained."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from harness.study.tree import read_tree
from results.errors import StudyError
from results.store.tables import KEPT

TEMPLATE = Path(__file__).with_name("new_study.yaml")


def write_new_study(path: Path, say: Callable[[str], None]) -> None:
    """Write the template under the name of the file. StudyError where the file exists or can't name a study."""
    if path.suffix not in (".yaml", ".yml"):
        raise StudyError(f"{path} is no name of a study file: end it in .yaml")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", path.stem):
        raise StudyError(f"{path.name} can't name a study: use letters, digits, '.', '_' and '-', a letter or digit first")
    if path.stem == KEPT:
        raise StudyError(
            f"{path.name} can't name a study: a store has its kept weights in a folder of that name; choose another"
        )
    read_as_text = read_tree(f"name: {path.stem}".encode(), path.name)["name"] == path.stem
    words = {"NAME": path.stem if read_as_text else f'"{path.stem}"', "FILE": shlex.quote(str(path))}
    text = re.sub("NAME|FILE", lambda found: words[found[0]], TEMPLATE.read_text(encoding="utf-8"))
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise StudyError(f"{path} exists and is left as it is: name another file, or remove it first") from error
    except OSError as error:
        raise StudyError(f"{path} can't be written ({error.strerror}): name another file") from error
    say(f"{path} is written: change it, then run it with `manyseeds run {words['FILE']}`")
