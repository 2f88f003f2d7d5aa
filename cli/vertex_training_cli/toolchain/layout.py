"""Paths of the checkout and its virtual environment, and the cache outside of the checkout.

One setup at a time writes the cache, and its entries appear complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.console import SetupError

#: Plugins beside ``pulumi`` that Python programs with dynamic providers need.
PLUGINS: Final = (
    "pulumi-language-python",
    "pulumi-language-python-exec",
    "pulumi-resource-pulumi-python",
)
#: The engine that is downloaded or built; ``tools/offline_engine/go.mod`` requires it, too.
ENGINE_VERSION: Final = "3.259.0"
#: Inputs of a build from source, if their folder exists.
BUILD_SOURCES: Final = ("go.mod", "go.sum", "pulumi-language-python")
#: Prefix of folders that :func:`publish` fills.
UNFINISHED: Final = "unfinished-"


@dataclass(frozen=True)
class Layout:
    """The folders of one installation."""

    root: Path
    """Checkout; for an installed package, the folder that contains it."""
    cache: Path
    deploy: bool = False
    """True to install only what deployments need, and to download only files pinned by SHA-256."""
    environment: Path | None = None
    """Virtual environment that contains the installed package; None for a checkout."""
    own_releases: Path | None = None
    """A repository's file with additional SHA-256 sums of official archives."""

    @classmethod
    def of_this_checkout(cls, *, deploy: bool = False) -> Layout:
        """Return the layout of the checkout that contains this file."""
        return cls(Path(__file__).resolve().parents[3], cache_home(), deploy)

    @classmethod
    def of_this_environment(
        cls, *, deploy: bool = False, own_releases: Path | None = None
    ) -> Layout:
        """Return the layout of the running Python's virtual environment.

        Raises:
            SetupError: it is no virtual environment, or cannot be written; or ``own_releases``
                cannot be read.
        """
        if own_releases and not os.access(own_releases, os.R_OK):
            raise SetupError(
                f"cannot read {own_releases}", hint="pass an existing file, or omit the option"
            )
        if sys.prefix == sys.base_prefix:
            raise SetupError(
                f"{sys.executable} is not in a virtual environment",
                hint="run `python3 -m venv .venv`, install this package there, and run its vt",
            )
        root, prefix = Path(__file__).resolve().parents[2], Path(sys.prefix)
        layout = cls(root, cache_home(), deploy, prefix, own_releases)
        if not os.access(layout.bin, os.W_OK):
            raise SetupError(
                f"cannot write to {layout.bin}",
                hint="use a virtual environment that this user owns",
            )
        return layout

    @property
    def venv(self) -> Path:
        return self.environment or self.root / ".venv"

    @property
    def bin(self) -> Path:
        return self.venv / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    @property
    def stamp(self) -> Path:
        """File that records a finished installation."""
        return self.venv / ("pulumi.json" if self.environment else "setup.json")

    @property
    def toolchain(self) -> Path:
        return self.cache / "toolchain"

    @property
    def requirements(self) -> Path:
        return self.root / "requirements" / ("runtime.txt" if self.deploy else "dev.txt")

    @property
    def policy_venv(self) -> Path:
        """Virtual environment of the policy pack, inside of .venv."""
        return self.venv / "policy"

    @property
    def policy_requirements(self) -> Path:
        return self.package / "policy.txt"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def package(self) -> Path:
        """Folder of this package; it exists also if a test uses another checkout."""
        source_root = self.root if self.environment else self.root / "cli"
        return source_root / "vertex_training_cli" / "toolchain"

    @property
    def plugin_callers(self) -> Path:
        """Program that starts an engine plugin with a guard at its port."""
        source_root = self.root if self.environment else self.root / "infra"
        return source_root / "vertex_training" / "plugin_callers.py"

    @property
    def releases(self) -> Path:
        """File with SHA-256 sums of official archives, in the format of sha256sum."""
        return self.package / "releases.sha256"

    @property
    def offline_engine(self) -> Path:
        """Folder that pins the engine's modules and contains the stand-in language host.

        Only a checkout has it. On a machine that reaches nothing but package registries,
        VT_OFFLINE_ENGINE tells ``vt setup`` of the installed package where it is.
        """
        if self.environment:
            return Path(os.environ.get("VT_OFFLINE_ENGINE") or self.package / "offline_engine")
        return self.root / "tools" / "offline_engine"

    def inputs_digest(self, pulumi_source: str) -> str:
        """Return the digest of all inputs of an installation, to compare with the stamp."""
        files = [self.policy_requirements, self.releases]
        files += sorted(Path(__file__).parent.glob("*.py"))
        build = (self.offline_engine / name for name in BUILD_SOURCES)
        files += [file for file in build if file.is_file()]
        if not self.environment:
            files += [self.requirements, self.root / "pyproject.toml"]
            files += [self.root / "localcloud" / "pyproject.toml"]
        if self.own_releases:
            files.append(self.own_releases)
        kind = f"\0{self.deploy}" if self.environment else ""
        digest = hashlib.sha256(f"{self.root}\0{self.cache}\0{pulumi_source}{kind}".encode())
        for file in files:
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
        return digest.hexdigest()


def cache_home() -> Path:
    """Return VT_CACHE_DIR, else vertex-training in XDG_CACHE_HOME or ~/.cache.

    A relative XDG_CACHE_HOME counts as none: specifications.freedesktop.org/basedir-spec.

    Raises:
        SetupError: neither is set, and this user has no home.
    """
    try:
        if chosen := os.environ.get("VT_CACHE_DIR"):
            return Path(chosen).expanduser().resolve()
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return (base if base.is_absolute() else Path.home() / ".cache") / "vertex-training"
    except RuntimeError as error:
        raise SetupError(
            f"no folder for the cache: {error}",
            hint="set VT_CACHE_DIR to a writable folder",
        ) from error


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock the cache. The system releases the lock when the process ends.

    Raises:
        SetupError: the cache cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "setup.lock").open("w")
    except OSError as error:
        raise SetupError(
            f"cannot write to the cache {folder}: {error.strerror}",
            hint="set VT_CACHE_DIR to a writable folder",
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("  waiting for another setup on this machine ...", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        for unfinished in folder.glob(UNFINISHED + "*"):  # of a setup that was killed
            shutil.rmtree(unfinished, ignore_errors=True)
        yield


def publish(target: Path, fill: Callable[[Path], object]) -> None:
    """Create ``target`` atomically: write a folder beside it, then rename that folder.

    The caller must hold the lock.
    """
    workspace = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
    try:
        fill(workspace)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(workspace, target)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a new path beside ``target``, which then replaces ``target`` atomically."""
    beside = target.with_name(f".{target.name}.new")
    beside.unlink(missing_ok=True)
    yield beside
    os.replace(beside, target)


def place(source: Path, target: Path) -> None:
    """Put a cached file at ``target`` atomically, as a hard link if possible, else as a copy.

    A symbolic link does not work: the engine resolves it and looks for plugins beside its target.
    """
    with replacing(target) as beside:
        try:
            os.link(source, beside)
        except OSError:
            shutil.copy2(source, beside)


def link(source: Path, target: Path) -> None:
    """Make ``target`` a symbolic link to ``source``, replacing an existing file."""
    with replacing(target) as beside:
        beside.symlink_to(source)
