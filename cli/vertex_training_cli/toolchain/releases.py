"""Official archives, compared with the SHA-256 in releases.sha256 before anything is unpacked."""

from __future__ import annotations

import hashlib
import platform
import shutil
import tarfile
import urllib.request
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.console import SubprocessError
from vertex_training_cli.toolchain.layout import Layout

ENGINE_URL: Final = "https://get.pulumi.com/releases/sdk"
#: Seconds without a byte after which a download has failed.
STALL_SECONDS: Final = 30.0
#: Name of the processor in the archives of plugins, and in those of the engine.
PROCESSORS: Final = {
    "x86_64": ("amd64", "x64"),
    "amd64": ("amd64", "x64"),
    "aarch64": ("arm64", "arm64"),
    "arm64": ("arm64", "arm64"),
}


def engine_archive(version: str) -> str:
    """File name of an official release of the engine for this machine."""
    return f"pulumi-v{version}-{platform.system().lower()}-{_processor()[1]}.tar.gz"


def plugin_archive(version: str) -> str:
    """File name of an official release of the gcp plugin for this machine."""
    return f"pulumi-resource-gcp-v{version}-{platform.system().lower()}-{_processor()[0]}.tar.gz"


def _processor() -> tuple[str, str]:
    machine = platform.machine().lower()
    return PROCESSORS.get(machine, (machine, machine))


def pinned_sha256(layout: Layout, archive: str) -> str | None:
    """The pinned SHA-256 of an archive, or None if no file has a line for it."""
    for file in (layout.releases, layout.own_releases):
        for line in file.read_text().splitlines() if file else ():
            digest, _, name = line.partition("  ")
            if name == archive:
                return digest.lower()
    return None


def unpack_engine(archive: str, sha256: str, folder: Path) -> None:
    """Download an engine's archive and unpack its programs into ``folder``/bin.

    Raises:
        SubprocessError: no download, another content than pinned, or not an archive.
    """
    file = folder / archive
    try:
        with (
            urllib.request.urlopen(f"{ENGINE_URL}/{archive}", timeout=STALL_SECONDS) as source,
            file.open("wb") as target,
        ):
            shutil.copyfileobj(source, target)
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != sha256:
            raise SubprocessError(f"{archive}: SHA-256 is {found}, pinned is {sha256}")
        with tarfile.open(file) as opened:
            opened.extractall(folder, filter="data")
        (folder / "pulumi").rename(folder / "bin")
        file.unlink()
    except (OSError, tarfile.TarError) as error:
        raise SubprocessError(f"{type(error).__name__}: {error}") from error
