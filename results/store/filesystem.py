"""Where files lie: paths and URIs as pyarrow filesystems, and writes that are seen whole or not at all."""

import errno
import os
import re
import shlex
import stat
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import BinaryIO
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs

from results.errors import DamagedFile, MissingFile, StoreError, StudyError, store_errors

# One call to an object store: short enough that Ctrl-C is answered, long enough that a single failure is no news.
# Longer outages are waited for where the work is (harness.machine.store_retry).
SILENCE_S = 10.0  # of a server that has the request; 3 s by default, which busy servers exceed
CONNECT_S = 5.0
RETRIES = 8  # after 25 ms, 50 ms, … 3.2 s: some 6 s in all
_IN_ONE = 4 * 2**20  # bytes that one request to S3 uploads (pyarrow: below 10 MiB): nothing of it can be left over
ANONYMOUS = "anonymous@"  # before the bucket of a gs:// URI
_WITH_BUCKET = ("s3", "gs", "gcs")
_SCHEMES = ("file", *_WITH_BUCKET)
_WHERE = ("endpoint_override", "scheme", "region")  # options of a URI without which its store is not found
_MOST_URI = 1000  # characters
_GCS_S = 15  # that a call to Google Cloud Storage is repeated; 15 minutes by default
_TRIES = 5  # to make a file in a folder that others may remove while it is empty
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF)  # of a file system that has no sync of folders
_LASTING_KINDS = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError, DamagedFile)
# as the SDKs of S3 and of Google Cloud Storage word it
_DENIED = re.compile(
    r"AWS Error (ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH) |Status\((PERMISSION_DENIED|UNAUTHENTICATED):"
)
_NO_BUCKET = "AWS Error NO_SUCH_BUCKET "


def resolve(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The filesystem of a path (made absolute) or URI, and the path inside it. A StudyError never repeats credentials."""
    check_uri(uri)
    if "://" not in uri:
        return pyarrow.fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(uri))
    try:
        filesystem, root = pyarrow.fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError, OSError) as error:
        if option := re.search(r"Unexpected query parameter in \w+ URI: '([a-z_]{1,40})'", str(error)):
            raise StudyError(
                f"the store {public(uri)} has an option {option[1]!r} that is unknown: leave it out, or write another, such as "
                "endpoint_override"
            ) from None
        detail = "" if re.search("[@?]", uri) else f" ({reason(error)})"
        raise StudyError(f"{public(uri)} can't be opened as a store{detail}: write a path, file://, s3:// or gs://") from None
    if not root.isprintable():
        raise StudyError(
            f"the store {public(uri)} stands for {root[:100]!r}, which is no path: write a folder or a URI without %-codes"
        )
    return _limited(filesystem), root.rstrip("/")


def check_uri(uri: str) -> None:
    """Raise StudyError for a path or URI of a store that names no place, whatever is there."""
    scheme, separator, rest = uri.partition("://")
    if not uri.strip() or not uri.isprintable():
        raise StudyError(
            f"the store {uri[:100]!r} is no path: write a folder, such as runs, or a URI, such as s3://bucket/runs"
        )
    if len(uri) > _MOST_URI:
        raise StudyError(
            f"the store {uri[:60]}… has {len(uri):,} characters, and at most {_MOST_URI:,} can name one: write less"
        )
    if not separator and (slip := re.match(f"({'|'.join(_SCHEMES)}):", uri)):
        raise StudyError(
            f"a store that begins with {slip[0]} needs two slashes after it: write {slip[0]}//…, or ./{slip[0]}… for a folder "
            "of that name"
        )
    if separator and scheme not in _SCHEMES:
        raise StudyError(f"{public(uri)} can't be opened as a store: write a path, file://, s3:// or gs://")
    if separator and scheme in _WITH_BUCKET and not re.match("[^/?]", rest.rpartition("@")[2]):
        raise StudyError(f"the store {public(uri)} names no bucket: write {scheme}://<bucket>/<folder>")
    if not separator and os.path.expanduser(uri).startswith("~"):
        raise StudyError(
            f"the store {uri} begins with the home folder of a user that is not here: write the whole path, or ./{uri}"
        )


def _limited(filesystem: pyarrow.fs.FileSystem, in_one: bool = True) -> pyarrow.fs.FileSystem:
    """The same object store, with the limits above. in_one: S3 gets a small file in one request, instead of three."""
    if filesystem.type_name not in ("s3", "gcs"):
        return filesystem
    options = filesystem.__reduce__()[1][0]  # what it was made with; no URI can hold these limits
    if filesystem.type_name == "gcs":
        limit = options["retry_time_limit"] or timedelta(seconds=_GCS_S)
        return pyarrow.fs.GcsFileSystem(**options | {"retry_time_limit": limit})
    # the standard strategy has a quota that an outage uses up: for a long time afterwards it repeats nothing
    strategy = pyarrow.fs.AwsDefaultS3RetryStrategy(max_attempts=RETRIES)
    limits = {"request_timeout": SILENCE_S, "connect_timeout": CONNECT_S, "retry_strategy": strategy}
    if "allow_delayed_open" in options:  # pyarrow 21 and later
        limits["allow_delayed_open"] = in_one
    if options["endpoint_override"]:
        # else the SDK sends uploads in chunks, without a length, which servers other than Amazon's refuse (411); a user's choice stays
        for name in ("AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION"):
            os.environ.setdefault(name, "when_required")
    return pyarrow.fs.S3FileSystem(**options | limits)


def public(uri: str) -> str:
    """A URI without user, password and options; the user `anonymous` of gs:// stays, which says that there are no credentials."""
    scheme, _, rest = uri.partition("://")
    try:
        parts = urlsplit(uri)
    except ValueError:
        return f"{scheme}://…"
    who = ANONYMOUS if scheme in ("gs", "gcs") and parts.netloc.rpartition("@")[0] == ANONYMOUS[:-1] else ""
    return f"{scheme}://{who}{parts.netloc.rpartition('@')[2]}{parts.path}" if rest else uri


def is_anonymous(filesystem: pyarrow.fs.FileSystem) -> bool:
    """Whether it is Google Cloud Storage without credentials, as gs://anonymous@bucket asks for."""
    return filesystem.type_name == "gcs" and bool(filesystem.__reduce__()[1][0]["anonymous"])


def public_options(uri: str) -> str:
    """The options of a URI that say where a store is, such as `?endpoint_override=…`, or "". The others may hold credentials."""
    query = uri.partition("?")[2] if "://" in uri else ""
    kept = [option for option in query.split("&") if option.partition("=")[0] in _WHERE and "@" not in option]
    return f"?{'&'.join(kept)}" if kept else ""


def shell_word(uri: str) -> str:
    """A path or URI as a word of a command that can be pasted into a shell: without credentials, with the options of its place."""
    return shlex.quote(public(uri) + public_options(uri))


def public_override(word: str) -> str:
    """A word of the command line such as store=s3://… without credentials."""
    key, _, value = word.partition("=")
    return f"{key}={public(value)}" if "://" in value else word


def listing(filesystem: pyarrow.fs.FileSystem, folder: str, recursive: bool = False) -> list[pyarrow.fs.FileInfo]:
    """What is in a folder; [] when it is missing. StoreError where an S3 bucket is missing, or what answers is no S3 server."""
    kind = filesystem.type_name
    # allow_not_found would make an empty folder of any answer 404, such as a gateway's whose server is down
    selector = pyarrow.fs.FileSelector(folder, allow_not_found=kind != "s3", recursive=recursive or kind == "gcs")
    try:
        with store_errors(folder):
            infos = filesystem.get_file_info(selector)
    except MissingFile:
        return []
    return infos if recursive or kind != "gcs" else _first_level(folder, infos)


def _first_level(folder: str, below: list[pyarrow.fs.FileInfo]) -> list[pyarrow.fs.FileInfo]:
    """What is directly in a folder, from all below it: of Google's folders pyarrow lists those alone that an object `folder/` marks."""
    directory = pyarrow.fs.FileType.Directory
    infos: dict[str, pyarrow.fs.FileInfo] = {}
    for info in below:
        name, _, rest = info.path[len(folder) + 1 :].partition("/")
        infos[name] = pyarrow.fs.FileInfo(f"{folder}/{name}", directory) if rest else infos.get(name, info)
    return list(infos.values())


def names(filesystem: pyarrow.fs.FileSystem, folder: str) -> list[str]:
    """Sorted names of what is in a folder, hidden ones left out; [] when it is missing."""
    return sorted(info.base_name for info in listing(filesystem, folder) if not info.base_name.startswith("."))


def folders(filesystem: pyarrow.fs.FileSystem, folder: str) -> list[str]:
    """Sorted names of the folders in a folder, hidden ones left out; [] when it is missing."""
    kind = pyarrow.fs.FileType.Directory
    infos = listing(filesystem, folder)
    return sorted(info.base_name for info in infos if info.type == kind and not info.base_name.startswith("."))


def join(root: str, *parts: str) -> str:
    """A path below `root`. DamagedFile where a part would leave it: names in a store may be anyone's."""
    pieces = [piece for part in parts for piece in part.split("/")]
    for piece in pieces:
        if piece in ("", ".", "..") or "\0" in piece or len(piece.encode(errors="replace")) > 255:
            raise DamagedFile(f"{'/'.join(parts)[:100]!r} can't name a file of a store: it is empty, has '..', or is too long")
    return "/".join([root.rstrip("/"), *pieces])


def refuse_links_out(root: str, target: str) -> None:
    """Raise DamagedFile where a link below `root`, a local folder, leads the way to `target` out of it."""
    inside, folder = os.path.realpath(root), os.path.realpath(os.path.dirname(target))
    if os.path.commonpath([inside, folder]) != inside:
        raise DamagedFile(f"a symbolic link on its way leads out of the store, to {folder}")


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
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
    try:
        with _new_file(temporary) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    for changed in {folder, *(os.path.dirname(made_folder) for made_folder in made)}:
        _sync_folder(changed)


def below(uri: str, name: str) -> str:
    """The path or URI of a folder inside another one. The options of a URI stay at its end.

    >>> below("s3://bucket/runs?region=us-east-1", "a")
    's3://bucket/runs/a?region=us-east-1'
    """
    path, mark, options = uri.partition("?") if "://" in uri else (uri, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{options}"


def _new_file(path: str) -> BinaryIO:
    """A file that was not there, open, with its folders. Another driver may remove an empty folder before the file is in it."""
    for left in reversed(range(_TRIES)):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return open(path, "xb")
        except FileNotFoundError:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


def _sync_folder(folder: str) -> None:
    """Make a rename in the folder last. Some file systems can't sync a folder, and the file is in its place all the same."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def upload(filesystem: pyarrow.fs.FileSystem, target: str, data: bytes) -> None:
    """Put an object in its place. In a thread, or Ctrl-C between two calls would leave an empty one: closing a stream commits it."""

    if filesystem.type_name == "s3" and len(data) > _IN_ONE:
        # with a delayed open, a large file whose upload could not be begun is replaced by an empty one when it is closed
        filesystem = _limited(filesystem, in_one=False)

    def put() -> None:
        with filesystem.open_output_stream(target) as stream:
            stream.write(data)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(int).result()  # the thread runs: one that Ctrl-C meets while it starts is not waited for
        thread.submit(put).result()


def refuse_special(filesystem: pyarrow.fs.FileSystem, path: str) -> None:
    """Raise DamagedFile where a local path is no file but a folder, or a pipe or device, whose end may never come."""
    if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
        return
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # opening it says what is wrong
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise DamagedFile(f"{path} is {kind}, and a store has a file there; move it out of the store")


def content(filesystem: pyarrow.fs.FileSystem, path: str) -> bytes:
    """Read all of a file. Raises MissingFile where there is none, DamagedFile where it is no file, else StoreError with one sentence."""
    refuse_special(filesystem, path)
    try:
        with filesystem.open_input_stream(path, compression=None) as stream:
            data: bytes = stream.read()
    except FileNotFoundError as error:
        raise MissingFile(f"{path} is not there") from error
    except OSError as error:
        raise StoreError(f"{path} can't be read ({reason(error)})") from error
    return data


def info_of(filesystem: pyarrow.fs.FileSystem, path: str) -> pyarrow.fs.FileInfo:
    """The kind and size of what is at a path. Raises StoreError where the store does not say."""
    with store_errors(path):
        return filesystem.get_file_info(path)


def lasts(error: BaseException) -> bool:
    """Whether an error of a store stays until a person acts: missing permission, wrong credentials, no such bucket, a file in the place of
    a folder."""
    causes = [error] if error.__cause__ is None else [error, error.__cause__]
    return denied(error) or any(isinstance(cause, _LASTING_KINDS) or _NO_BUCKET in str(cause) for cause in causes)


def denied(error: BaseException) -> bool:
    """Whether an object store refuses the credentials of this process, or that it has none."""
    return any(_DENIED.search(str(cause)) for cause in (error, error.__cause__))


def reason(error: BaseException) -> str:
    """The message of an error in one line, without the path."""
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
