"""Paths of an installation, the cache of downloads and builds, and subprocesses.

Only one setup at a time writes the cache. Entries of the cache appear when they are complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

#: Plugins that Python programs with dynamic providers need. They are beside ``pulumi``.
PLUGINS: Final = (
    "pulumi-language-python",
    "pulumi-language-python-exec",
    "pulumi-resource-pulumi-python",
)
#: Version of the engine to download or build, which is also in ``tools/offline_engine/go.mod``.
ENGINE_VERSION: Final = "3.259.0"
#: Files that determine the result of a build from source.
BUILD_SOURCES: Final = ("go.mod", "go.sum", "pulumi-language-python")
#: Prefix of the folders that :func:`publish` fills.
UNFINISHED: Final = "unfinished-"


class SetupError(Exception):
    """A failed step. ``tried`` has a line with the reason for each attempt."""

    def __init__(self, what: str, tried: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what)
        self.what, self.tried, self.hint = what, list(tried), hint

    def __str__(self) -> str:
        lines = [f"setup: {self.what}", *(f"  tried: {line}" for line in self.tried)]
        return "\n".join([*lines, f"  Hint: {self.hint}"] if self.hint else lines)


class SubprocessError(Exception):
    """A program that failed or is not available. The text is the reason, in one line."""


def run(
    command: Sequence[str | Path],
    *,
    what: str = "",
    log: Path | None = None,
    limit: float = 600.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Print ``what``, run a program, and return its output, which is also written to ``log``.

    The program and its process group have ended when this function returns or raises
    SubprocessError.
    """
    parts = [str(part) for part in command]
    if what:
        print(f"  {what} ...", flush=True)
    with log.open("w+b") if log else tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                parts,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={"PULUMI_SKIP_UPDATE_CHECK": "true", **(os.environ if env is None else env)},
                process_group=0,
            )
        except OSError as error:
            raise SubprocessError(f"{parts[0]}: {error.strerror}") from error
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise SubprocessError(f"the program exceeded its limit of {limit:.0f} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        printed = output.read().decode(errors="replace").strip()
    if code != 0:
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        reason = " | ".join(lines[-3:]) or "(no output)"
        raise SubprocessError(f"exit code {code}: {reason}")
    return printed


def read_version(program: Path, *arguments: str) -> tuple[int, int, int]:
    """Run a program that prints its version, and return the version. Raises SubprocessError."""
    try:
        return parse_version(run([program, *arguments], limit=20.0))
    except SubprocessError as error:
        raise SubprocessError(f"{program}: {error}") from error


def parse_version(text: str) -> tuple[int, int, int]:
    """Return the first version x.y.z in a text, or (0, 0, 0) for a text without a version."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)


class Layout:
    """The folders and files of an installation."""

    def __init__(
        self,
        root: Path,
        cache: Path,
        *,
        deploy: bool = False,
        environment: Path | None = None,
        own_releases: Path | None = None,
    ) -> None:
        self.root = root
        """The checkout, or for an installed package the folder that contains the package."""
        self.cache = cache
        self.deploy = deploy
        """True to omit tools for developers, and to download only files pinned by SHA-256."""
        self.environment = environment
        """Virtual environment that contains the installed package; None for a checkout."""
        self.own_releases = own_releases
        """File of a repository with additional SHA-256 sums of official archives."""
        self.venv = environment or root / ".venv"
        self.bin = self.venv / "bin"
        self.python = self.bin / "python"
        self.stamp = self.venv / ("pulumi.json" if environment else "setup.json")
        """The file that records a complete installation."""
        self.policy_venv = self.venv / "policy"
        """The virtual environment of the policy pack."""
        self.toolchain = cache / "toolchain"
        self.requirements = root / "requirements" / ("runtime.txt" if deploy else "dev.txt")
        cli, infra = (root, root) if environment else (root / "cli", root / "infra")
        package = cli / "vertex_training_cli" / "toolchain"
        self.policy_requirements = package / "policy.txt"
        self.releases = package / "releases.sha256"
        """SHA-256 sums of official archives."""
        self.plugin_callers = infra / "vertex_training" / "plugin_callers.py"
        """The program that starts an engine plugin with a guard at its port."""
        self.offline_engine = root / "tools" / "offline_engine"
        """The folder with the pins of a build and the stand-in language host.

        Only a checkout has this folder. For an installed package, VT_OFFLINE_ENGINE is its path.
        """
        if environment:
            named = os.environ.get("VT_OFFLINE_ENGINE")
            self.offline_engine = Path(named) if named else package / "offline_engine"

    @classmethod
    def of_this_environment(
        cls, *, deploy: bool = False, own_releases: Path | None = None
    ) -> Layout:
        """Return the layout of the running Python's virtual environment. Raises SetupError."""
        if own_releases and not os.access(own_releases, os.R_OK):
            raise SetupError(
                f"cannot read {own_releases}", hint="pass an existing file, or omit the option"
            )
        if sys.prefix == sys.base_prefix:
            raise SetupError(
                f"{sys.executable} is not in a virtual environment",
                hint="run `python3 -m venv .venv`, install this package into .venv, and run "
                "`.venv/bin/vt setup`",
            )
        root, prefix = Path(__file__).resolve().parents[2], Path(sys.prefix)
        layout = cls(
            root, cache_home(), deploy=deploy, environment=prefix, own_releases=own_releases
        )
        if not os.access(layout.bin, os.W_OK):
            raise SetupError(
                f"cannot write to {layout.bin}",
                hint="use a virtual environment that belongs to this user",
            )
        return layout

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
    """Return VT_CACHE_DIR, else ``vertex-training`` in XDG_CACHE_HOME or ~/.cache.

    A relative XDG_CACHE_HOME is ignored: specifications.freedesktop.org/basedir-spec.
    """
    try:
        if chosen := os.environ.get("VT_CACHE_DIR"):
            return Path(chosen).expanduser().resolve()
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return (base if base.is_absolute() else Path.home() / ".cache") / "vertex-training"
    except RuntimeError as error:
        raise SetupError(
            f"cannot determine the folder of the cache: {error}",
            hint="set VT_CACHE_DIR to a writable folder",
        ) from error


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock the cache. The system releases the lock when the process ends. Raises SetupError."""
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
        for unfinished in folder.glob(UNFINISHED + "*"):  # from killed setups
            shutil.rmtree(unfinished, ignore_errors=True)
        yield


def publish(target: Path, fill: Callable[[Path], object]) -> None:
    """Create ``target`` atomically: write another folder, then rename the folder.

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
    """Yield a new path beside ``target``. The new file then replaces ``target`` atomically."""
    beside = target.with_name(f".{target.name}.new")
    beside.unlink(missing_ok=True)
    yield beside
    os.replace(beside, target)


def place(source: Path, target: Path) -> None:
    """Put a cached file at ``target`` atomically, as a hard link if possible, else as a copy.

    A symbolic link does not work, because the engine looks for plugins beside the link's target.
    """
    with replacing(target) as beside:
        try:
            os.link(source, beside)
        except OSError:
            shutil.copy2(source, beside)


def link(source: Path, target: Path) -> None:
    """Replace ``target`` by a symbolic link to ``source``."""
    with replacing(target) as beside:
        beside.symlink_to(source)
