"""Where files lie: paths and URIs as pyarrow filesystems, and local writes that survive a crash."""

import os
import re
import uuid
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs


def resolve(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The filesystem of a path (made absolute) or URI, and the path inside it. A ValueError never repeats credentials."""
    if "://" not in uri:
        return pyarrow.fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(uri))
    try:
        filesystem, root = pyarrow.fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError, OSError) as error:
        detail = "" if re.search("[@?]", uri) else f" ({reason(error)})"
        raise ValueError(f"{public(uri)} can't be opened as a store{detail}: write a path, file://, s3:// or gs://") from None
    return filesystem, root.rstrip("/")


def public(uri: str) -> str:
    """A URI without user, password and options."""
    scheme, _, rest = uri.partition("://")
    try:
        parts = urlsplit(uri)
    except ValueError:
        return f"{scheme}://…"
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if rest else uri


def public_override(word: str) -> str:
    """A word of the command line such as store=s3://… without credentials."""
    key, _, value = word.partition("=")
    return f"{key}={public(value)}" if "://" in value else word


def names(filesystem: pyarrow.fs.FileSystem, folder: str) -> list[str]:
    """Sorted names of what is in a folder, hidden ones left out; [] when it is missing."""
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
    return sorted(info.base_name for info in found if not info.base_name.startswith("."))


def folders(filesystem: pyarrow.fs.FileSystem, folder: str) -> list[str]:
    """As `names`, of folders alone."""
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
    kind = pyarrow.fs.FileType.Directory
    return sorted(info.base_name for info in found if info.type == kind and not info.base_name.startswith("."))


def join(root: str, *parts: str) -> str:
    """A path below `root`. ValueError where a part would leave it: names in a store may be anyone's."""
    pieces = [piece for part in parts for piece in part.split("/")]
    for piece in pieces:
        if piece in ("", ".", "..") or "\0" in piece or len(piece.encode(errors="replace")) > 255:
            raise ValueError(f"{'/'.join(parts)[:100]!r} can't name a file of a store: it is empty, has '..', or is too long")
    return "/".join([root.rstrip("/"), *pieces])


def refuse_links_out(root: str, target: str) -> None:
    """PermissionError where a link below `root`, a local folder, leads the way to `target` out of it."""
    inside, folder = os.path.realpath(root), os.path.realpath(os.path.dirname(target))
    if os.path.commonpath([inside, folder]) != inside:
        raise PermissionError(f"a symbolic link on its way leads out of the store, to {folder}")


def missing_folders(folder: str) -> list[str]:
    """The folders that do not exist on the way to this one, outermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing[::-1]


def write_local(target: str, data: bytes) -> None:
    """A unique hidden name beside the target, fsync, rename, fsync of the folders: seen whole or not at all."""
    folder, name = os.path.split(target)
    made = missing_folders(folder)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    for changed in {folder, *(os.path.dirname(made_folder) for made_folder in made)}:
        descriptor = os.open(changed, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def reason(error: BaseException) -> str:
    """What an error says, in one line and without the path."""
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
