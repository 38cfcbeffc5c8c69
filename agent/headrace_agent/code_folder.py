"""Brings the job's code into the work folder, from an archive or a folder in S3, and lets nothing out of it."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import obstore

from headrace_agent.reach import OpenBucket
from headrace_agent.s3 import S3_ERRORS, S3Address, check_key, open_bucket, parse_address
from headrace_agent.safe_paths import SafeRoot, UnsafePath
from headrace_agent.text import first_line

if TYPE_CHECKING:
    from obstore.store import S3Store

TAR_ENDINGS = (".tar.gz", ".tgz", ".tar")
PIECE_BYTES = 1024 * 1024


class CodeUnusable(Exception):
    """The job's code cannot be brought into the work folder; the text says why and what to change."""


def fetch_code(address_text: str, work: Path, open_store: OpenBucket = open_bucket) -> None:
    """Put the code at `s3://bucket/key.tar.gz`, `.zip` or `s3://bucket/prefix/` into `work`. Raises CodeUnusable."""
    try:
        address = parse_address(address_text)
        store = open_store(address.bucket)
        if address.key == "" or address.key.endswith("/"):
            _fetch_folder(store, address, work)
        else:
            _fetch_archive(store, address, work)
    except FileNotFoundError as error:
        raise CodeUnusable(f"the job's code {address_text} is not there") from error
    except (ValueError, UnsafePath, tarfile.TarError, zipfile.BadZipFile, EOFError, *S3_ERRORS) as error:
        raise CodeUnusable(f"the job's code {address_text} cannot be used: {first_line(error)}") from error


def _fetch_folder(store: S3Store, address: S3Address, work: Path) -> None:
    root = SafeRoot(work)
    sizes = {item["path"]: item["size"] for batch in obstore.list(store, address.key or None) for item in batch}
    above = {str(parent) for path in sizes for parent in PurePosixPath(path).parents}
    found = 0
    for path, size_bytes in sizes.items():
        is_marker = size_bytes == 0 and (path in above or f"{path}/" == address.key or not _exists(store, path))
        if not is_marker:
            _save(store, path, root.place(path.removeprefix(address.key)))
            found += 1
    if not found:
        raise ValueError("the folder is empty")


def _exists(store: S3Store, key: str) -> bool:
    """Tell whether the key is an object; the listing shows the marker `folder/` of an empty folder as `folder`."""
    try:
        obstore.head(store, key)
    except FileNotFoundError:
        return False
    return True


def _fetch_archive(store: S3Store, address: S3Address, work: Path) -> None:
    archive = work.with_name(f"code-{work.name}.archive")
    try:
        check_key(address.key)
        _save(store, address.key, archive)
        if address.key.endswith(".zip"):
            _unpack_zip(archive, work)
        elif address.key.endswith(TAR_ENDINGS):
            _unpack_tar(archive, work)
        else:
            raise ValueError("name a .tar.gz, .tgz, .tar or .zip file, or a folder ending in /")
    finally:
        archive.unlink(missing_ok=True)


def _save(store: S3Store, key: str, target: Path) -> None:
    with target.open("wb") as stream:
        for piece in obstore.get(store, key).stream(PIECE_BYTES):
            stream.write(piece)


def _unpack_tar(archive: Path, work: Path) -> None:
    with tarfile.open(archive) as members:
        if hasattr(tarfile, "data_filter"):
            members.extractall(work, filter="data")
        else:
            _unpack_plain(members, SafeRoot(work))


def _unpack_plain(members: tarfile.TarFile, root: SafeRoot) -> None:
    """Unpack files only, where Python is older than 3.11.4 (Debian 12 has 3.11.2) and knows no filters (PEP 706)."""
    for member in members:
        if member.isdir():
            continue
        source = members.extractfile(member) if member.isreg() else None
        if source is None:
            raise UnsafePath(
                f"{member.name!r} is a link or a device, which Python before 3.11.4 does not unpack safely"
            )
        target = root.place(member.name.removeprefix("./"))
        with source, target.open("wb") as stream:
            shutil.copyfileobj(source, stream)
        if member.mode & stat.S_IXUSR:
            target.chmod(0o755)


def _unpack_zip(archive: Path, work: Path) -> None:
    root = SafeRoot(work)
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            if member.is_dir():
                continue
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                raise UnsafePath(f"{member.filename!r} is a symbolic link; a .tar.gz may hold links, a .zip may not")
            target = root.place(member.filename)
            with members.open(member) as source, target.open("wb") as stream:
                shutil.copyfileobj(source, stream)
            if mode & stat.S_IXUSR:
                target.chmod(0o755)
