"""The home of a local cloud (``VT_LOCAL_HOME``): its files, marker and environment.

Only the home's user may read it: folders have mode 0700 and files 0600, whatever the umask.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from localgcp.clients import cloud_sdk
from localgcp.errors import LocalCloudError
from localgcp.system.processes import checkout_around, git_command, git_variables
from localgcp.system.root_directory import make_folder

#: Passphrase that encrypts the state of the local stack, which contains no valuable secrets.
PASSPHRASE: Final = "local"

#: Umask of the server, of its programs and of commands that write to the home.
PRIVATE_UMASK: Final = 0o077

#: Variable with the address HOST:PORT of the container registry.
REGISTRY: Final = "ARTIFACT_REGISTRY_EMULATOR_HOST"
#: Variable with the address http://HOST:PORT of BigQuery for Google's Python client.
BIGQUERY: Final = "BIGQUERY_EMULATOR_HOST"
#: Variables of buildah and podman (containers-registries.conf(5), containers.conf(5)).
REGISTRIES: Final = "CONTAINERS_REGISTRIES_CONF"
BUILDERS: Final = "CONTAINERS_CONF"


class Ports(NamedTuple):
    """Ports of the services at 127.0.0.1."""

    vertex: int
    storage: int
    registry: int = 0
    """Port of the container registry, or 0 without a registry."""


class _Below:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, home: Home, owner: type[Home]) -> Path:
        return home.root / self._name


@dataclass(frozen=True)
class Home:
    """Paths below one ``VT_LOCAL_HOME``. ``repo`` is the checkout that the home serves."""

    root: Path
    repo: Path

    @classmethod
    def find(cls, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Home:
        """Return the home ``VT_LOCAL_HOME``, or else ``.vt-local`` in the checkout around ``cwd``.

        Raises LocalCloudError if ``vt local`` did not create the folder.
        """
        env = os.environ if env is None else env
        cwd = (cwd or Path.cwd()).resolve()
        folders = (cwd, *cwd.parents, Path(__file__).resolve().parents[3])
        repo = next((folder for folder in folders if (folder / "Pulumi.yaml").is_file()), cwd)
        named = env.get("VT_LOCAL_HOME")
        root = Path(os.path.abspath(Path(named).expanduser() if named else repo / ".vt-local"))
        ensure_usable(root)
        return cls(root, repo)

    database = _Below("cloud.sqlite")
    """Resources, policies and job records (SQLite)."""
    faults = _Below("faults.sqlite")
    """Injected faults (SQLite)."""
    storage = _Below("storage")
    """The object storage emulator's files ``storage/BUCKET/OBJECT``."""
    storage_log = _Below("storage.log")
    registry = _Below("registry")
    """Layers and manifests of the container registry."""
    registry_log = _Below("registry.log")
    registries = _Below("registries.conf")
    """Mirror of base images for image builders (``localgcp.containers.host``)."""
    builders = _Below("containers.conf")
    """Mounts of this machine's files for image builders (``localgcp.containers.host``)."""
    cloud_sdk = _Below("cloud-sdk")
    """Settings and logs of gcloud and gsutil in the local shell."""
    containers = _Below("containers")
    """Pulled images and running containers."""
    builds = _Below("builds")
    """One folder for each build of Cloud Build, named by the build's id."""
    jobs = _Below("jobs")
    """One folder for each job, named by the job's id."""
    batch = _Below("batch")
    """One folder for each Batch job, named by the job's uid."""
    serving = _Below("serving")
    """One folder for each DeployedModel, with files and logs of the model's processes."""
    bigquery = _Below("bigquery")
    """BigQuery tables as Parquet files, which ``cloud.sqlite`` lists."""
    notifications = _Below("notifications")
    """Notifications as files instead of messages (``localgcp.alerting``)."""
    wheels = _Below("wheels")
    """Built packages of jobs, by content (``localgcp.runner.preparation``)."""
    secrets = _Below("secrets")
    """Values of secrets, in a folder for each project with a folder for each secret."""
    nearest_images = _Below("nearest-images")
    """This file exists while the nearest version replaces unsupported prebuilt images."""
    gpu_shortage = _Below("gpu-shortage")
    """The setting for jobs that request more GPUs than are free."""
    server_file = _Below("server.json")
    """Process id, ports and start time of the server. The file exists while the server is ready."""
    server_log = _Below("server.log")
    server_lock = _Below("server.lock")
    """Lock of the running server."""
    start_lock = _Below("start.lock")
    """Lock of a command that starts or stops the server."""
    children = _Below("run")
    """One file for each process of the server (``localgcp.system.processes``)."""
    sockets = _Below("sockets")
    """Unix sockets of the server, in a folder for each run."""
    pulumi = _Below("pulumi")
    """State of the stacks (file backend)."""
    pulumi_home = _Below("pulumi-home")
    """Settings of the ``pulumi`` CLI, such as the selected stack."""
    stacks = _Below("stacks")
    """Stack files that the ``pulumi`` shim passes to the engine."""
    bin = _Below("bin")
    """First folder on PATH in the local shell, with the ``pulumi`` shim and the gcp stand-in."""

    def create(self) -> None:
        """Create the folder and mark the folder as a home. Raises LocalCloudError."""
        hint = "point VT_LOCAL_HOME at a new folder."
        folders = (self.storage, self.jobs, self.children, self.pulumi, self.bin, self.stacks)
        folders = (*folders, self.sockets)
        try:
            ensure_usable(self.root)
            make_folder(self.root, 0o700)
            if self.root.stat().st_uid != os.geteuid():
                raise LocalCloudError(f"{self.root} belongs to another user.", hint)
            self.root.chmod(0o700)
            # Write the marker first, so that `vt local` can remove the home of a failed start.
            (self.root / _marker(self.root)).touch(0o600)
            for folder in folders:
                folder.mkdir(0o700, exist_ok=True)
        except OSError as error:
            text = f"cannot create or write {error.filename or self.root}: {error.strerror}."
            raise LocalCloudError(text, hint) from error

    def is_ours(self) -> bool:
        """Return whether ``create`` created this folder."""
        return is_marked(self.root)

    def environment(self, ports: Ports | None) -> dict[str, str]:
        """Return variables for pulumi and Google's clients; previews need no ports."""
        tools = self.repo / ".venv" / "bin"
        if not tools.is_dir():
            tools = Path(sys.executable).parent
        env = {
            "VT_LOCAL_HOME": str(self.root),
            "PULUMI_BACKEND_URL": f"file://{self.pulumi}",
            "PULUMI_HOME": str(self.pulumi_home),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PATH": os.pathsep.join([str(self.bin), str(tools), path_without(self.bin, tools)]),
        }
        if ports:
            env["VERTEX_EMULATOR_HOST"] = f"127.0.0.1:{ports.vertex}"
            env[BIGQUERY] = f"http://127.0.0.1:{ports.vertex}"
            env["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{ports.storage}"
            env |= self.image_environment(ports.registry)
            env |= cloud_sdk.environment(self.cloud_sdk, ports.storage, ports.vertex)
        return env

    def image_environment(self, port: int) -> dict[str, str]:
        """Return variables for the registry at ``port``, and for builders without user settings."""
        if not port:
            return {}
        env = {REGISTRY: f"127.0.0.1:{port}"}
        for variable, file in ((REGISTRIES, self.registries), (BUILDERS, self.builders)):
            setting = os.environ.get(variable)
            if file.is_file() and (not setting or is_marked(Path(setting).parent)):
                env[variable] = str(file)
        return env


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file without following a link; a new file has mode 0600."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


def touch_private(path: Path) -> None:
    """Create an empty file with mode 0600, unless the file exists."""
    # SQLite copies the database's mode to other files, and reports an error for a missing file.
    with suppress(OSError):
        path.touch(0o600)


def make_private(tree: Path, keep: Collection[Path] = ()) -> None:
    """Remove other users' permissions from a folder tree, except below the folders ``keep``."""
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if Path(folder, name) not in keep]
        for name in (".", *folders, *files):
            path = os.path.join(folder, name)
            # A server may delete files, and another user may own files.
            with suppress(FileNotFoundError, PermissionError):
                mode = os.lstat(path).st_mode
                if not stat.S_ISLNK(mode) and mode & 0o077:
                    os.chmod(path, stat.S_IMODE(mode) & 0o700)


def cache_dir() -> Path:
    """Return ``VT_CACHE_DIR``, or else a folder in the user's cache. Raises LocalCloudError."""
    try:
        if named := os.environ.get("VT_CACHE_DIR"):
            return Path(named).expanduser().absolute()
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return (base if base.is_absolute() else Path.home() / ".cache") / "vertex-training"
    except RuntimeError as error:
        text = f"cannot determine the cache folder: {error}"
        raise LocalCloudError(text, "set VT_CACHE_DIR to a folder.") from None


@dataclass(frozen=True)
class ToolEnvironment:
    """A cached Python environment with one set of a tool's packages."""

    name: str
    pins: Path
    """Requirements file that pins the packages by hash."""

    @property
    def folder(self) -> Path:
        digest = hashlib.sha256(self.pins.read_bytes()).hexdigest()[:16]
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        return cache_dir() / f"{self.name}-{digest}-{python}"

    @property
    def marker(self) -> Path:
        """Return the file that marks a complete installation."""
        return self.folder / ".installed"

    @property
    def python(self) -> Path | None:
        """Return the environment's Python, or None for an incomplete installation."""
        return self.folder / "bin" / "python" if self.marker.is_file() else None


def path_without(*folders: Path) -> str:
    """Return PATH without ``folders``, which a nested local shell would add again."""
    drop = {str(folder) for folder in folders}
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(part for part in parts if part and part not in drop)


_KEY: Final = "local-home.key"


def is_marked(root: Path) -> bool:
    """Return whether a folder (not a link) is a home of this user."""
    return root.is_dir() and not root.is_symlink() and (root / _marker(root)).is_file()


def ensure_usable(root: Path) -> None:
    """Check that ``root`` is a home, empty or missing. Raises LocalCloudError.

    The local cloud executes the database, the state and the programs of a home. A checkout or an
    archive may bring such a folder, so a home needs a marker that neither can contain. Git must not
    track files below a home, because a checkout replaces ignored files by files of the branch.
    """
    hint = "point VT_LOCAL_HOME at a new folder."
    if root.is_symlink():
        raise LocalCloudError(f"{root} is a link.", hint)
    if not root.is_dir() or not any(root.iterdir()):
        return
    if not is_marked(root):
        text = f"{root} is not empty, and `vt local` did not create it on this machine."
        hint = f"{hint[:-1]}, or remove the folder: it may be part of a checkout."
        raise LocalCloudError(text, hint)
    if checkout := _tracking_checkout(root):
        text = f"git tracks files in {root}: they are part of {checkout}."
        raise LocalCloudError(text, f"{hint[:-1]}, or `git rm -r` the files.")


def _marker(root: Path) -> str:
    # A checkout or a copy has another inode; another user has another key.
    inode = str(root.stat().st_ino).encode()
    return f".vt-local-home-{hmac.new(_key(), inode, 'sha256').hexdigest()[:32]}"


def _key() -> bytes:
    # Parallel calls create and return the same secret of this user.
    cache = cache_dir()
    path = cache / _KEY
    if not path.exists():
        make_folder(cache, 0o700)
        new = cache / f"{_KEY}.{secrets.token_hex(8)}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            with suppress(FileExistsError):
                os.link(new, path)
        finally:
            new.unlink()
    return path.read_bytes()


def _tracking_checkout(root: Path) -> Path | None:
    # Git would use a nested repository, whose settings can start programs; --git-dir prevents this.
    # Some file systems ignore case.
    checkout = checkout_around(root.parent)
    if checkout is None:
        return None
    place = f":(icase,literal){root.relative_to(checkout)}"
    named = f"--git-dir={checkout / '.git'}"
    command = git_command(checkout, named, "ls-files", "-z", "--", place)
    try:
        done = subprocess.run(command, env=git_variables(), capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return checkout if done.stdout else None
