"""Which studies there are: launch/studies/<family>/<name>.yaml, and the lines of work that a script runs.

study = load(find_study("flipflop", "baseline"), ["replicates=25", "model.layers=2"])
"""

from pathlib import Path

from results.errors import StudyError, nearest

STUDIES = Path(__file__).resolve().parent / "studies"
LINES = {  # what a paper's script and its `source.paper` call it → the families of its studies
    "fflm": ("flipflop",),
    "length_generalization": ("automata", "lego"),
    "progressive_distillation": ("distillation",),
    "in_context_ngrams": ("ngrams",),
    "dyck": ("dyck",),
    "verified_generation": ("generation",),
}


def find_family(name: str) -> list[Path]:
    """The study files of a family, or of all families of a line of work, by name. StudyError listing both where there is no such one."""
    families = sorted(path.name for path in STUDIES.iterdir() if path.is_dir())
    known = list(dict.fromkeys([*families, *LINES]))
    if name not in known:
        raise StudyError(f"there is no family of studies {name!r}; families: {', '.join(known)}{nearest(name, known)}")
    return sorted(
        (path for family in LINES.get(name, (name,)) for path in (STUDIES / family).glob("*.yaml")), key=lambda p: p.stem
    )


def named_studies() -> dict[str, Path]:
    """{family/name: file} of every study, in alphabetical order."""
    return {f"{path.parent.name}/{path.stem}": path for path in sorted(STUDIES.glob("*/*.yaml"))}


def find_study(family: str, name: str) -> Path:
    """The file of a study, as `find_family` takes the family. StudyError listing its studies where there is none of that name."""
    paths = {path.stem: path for path in find_family(family)}
    if name not in paths:
        raise StudyError(f"there is no study {name!r} of {family}; studies: {', '.join(paths)}{nearest(name, list(paths))}")
    return paths[name]


def named(name: str) -> Path:
    """The file of the one study that has this name in any family. StudyError where there is none, or several."""
    everything = sorted(STUDIES.glob("*/*.yaml"))
    paths = [path for path in everything if path.stem == name]
    if len(paths) > 1:
        full = " or ".join(f"{path.parent.name}/{name}" for path in paths)
        raise StudyError(f"there are several studies {name!r}: write {full}")
    if not paths:
        known = sorted({path.stem for path in everything})
        raise StudyError(f"there is no file and no study {name!r}{nearest(name, known)}; `manyseeds studies` lists them")
    return paths[0]
