"""Paths of the local cloud's files, and the environment variables of its programs.

Everything at run time lies below one folder, ``VT_LOCAL_HOME`` (default
``<repository>/.vt-local``). Executor environments are large and shared by checkouts: they lie in
the user's cache folder.

The home is for its user alone: folders are 0700 and files 0600, whatever the umask.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from localgcp.clients import cloud_sdk
from localgcp.errors import LocalCloudError
from localgcp.home import identity as home_identity
from localgcp.system.folders import make_folder

#: Passphrase that encrypts the state of the local stack, which contains no valuable secrets.
PASSPHRASE: Final = "local"

#: Umask of the server, of the programs it starts and of the commands that write below the home.
PRIVATE_UMASK: Final = 0o077

#: Variable with the address of the container registry: HOST:PORT.
REGISTRY: Final = "ARTIFACT_REGISTRY_EMULATOR_HOST"
#: Variable with the BigQuery address for Google's Python client: http://HOST:PORT.
BIGQUERY: Final = "BIGQUERY_EMULATOR_HOST"
#: Variables of buildah and podman: containers-registries.conf(5), containers.conf(5).
REGISTRIES: Final = "CONTAINERS_REGISTRIES_CONF"
BUILDERS: Final = "CONTAINERS_CONF"


class Ports(NamedTuple):
    """Ports of the services at 127.0.0.1."""

    vertex: int
    storage: int
    registry: int = 0
    """0 if this machine has no container registry."""


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
        """Return the home in ``VT_LOCAL_HOME``, else ``.vt-local`` in the checkout of ``cwd``.

        Raises LocalCloudError if a folder is there that is none (``localgcp.home.identity``).
        """
        env = os.environ if env is None else env
        repo = _checkout((cwd or Path.cwd()).resolve())
        named = env.get("VT_LOCAL_HOME")
        root = Path(os.path.abspath(Path(named).expanduser() if named else repo / ".vt-local"))
        home_identity.ensure_usable(root, cache_dir())
        return cls(root, repo)

    database = _Below("cloud.sqlite")
    """Resources, policies and job records (SQLite)."""
    faults = _Below("faults.sqlite")
    """Injected faults (SQLite); missing until the first fault."""
    storage = _Below("storage")
    """``storage/BUCKET/OBJECT``, the files of the object storage emulator."""
    storage_log = _Below("storage.log")
    registry = _Below("registry")
    """Files of the container registry: layers and manifests."""
    registry_log = _Below("registry.log")
    registries = _Below("registries.conf")
    """Mirror of base images for image builders (``localgcp.containers.host``)."""
    builders = _Below("containers.conf")
    """Mounts of files of this machine for image builders (``localgcp.containers.host``)."""
    cloud_sdk = _Below("cloud-sdk")
    """Settings and logs of gcloud and gsutil in the local shell."""
    containers = _Below("containers")
    """Pulled images and running containers."""
    builds = _Below("builds")
    """One folder per build of Cloud Build, named by its id."""
    jobs = _Below("jobs")
    """One folder per job, named by its id."""
    batch = _Below("batch")
    """One folder per Batch job, named by its uid."""
    serving = _Below("serving")
    """One folder per DeployedModel, with the files and logs of its processes."""
    bigquery = _Below("bigquery")
    """BigQuery tables as Parquet files, which ``cloud.sqlite`` lists."""
    notifications = _Below("notifications")
    """Notifications as files instead of messages (``localgcp.alerting.spool``)."""
    wheels = _Below("wheels")
    """Built packages of jobs, by content (``localgcp.runner.packages``)."""
    secrets = _Below("secrets")
    """Values of secrets: one folder per project, with one folder per secret."""
    nearest_images = _Below("nearest-images")
    """Exists while the nearest version replaces an unsupported prebuilt image."""
    gpu_shortage = _Below("gpu-shortage")
    """The choice for jobs that request more GPUs than are free; missing for the default."""
    server_file = _Below("server.json")
    """Process id, ports and start time; exists while the server is ready."""
    server_log = _Below("server.log")
    server_lock = _Below("server.lock")
    """Lock of the running server. The lock shows whether a server runs."""
    start_lock = _Below("start.lock")
    """Lock of a command that starts or stops the server."""
    children = _Below("run")
    """One file for each process of the server (``localgcp.system.processes``)."""
    sockets = _Below("sockets")
    """Unix sockets of the server, in a folder for each of its runs."""
    pulumi = _Below("pulumi")
    """State of the stacks (file backend)."""
    pulumi_home = _Below("pulumi-home")
    """Settings of the ``pulumi`` CLI, such as the selected stack, outside of the user's home."""
    stacks = _Below("stacks")
    """Stack files that the ``pulumi`` shim passes to the engine."""
    bin = _Below("bin")
    """First folder on PATH in the local shell, with the ``pulumi`` shim and the gcp stand-in."""

    def create(self) -> None:
        """Create the folder and mark it as a home; ``remove`` deletes only marked folders.

        Raises LocalCloudError if it is there, not empty and not marked, or cannot be written to,
        or belongs to another user.
        """
        hint = "point VT_LOCAL_HOME at a new folder."
        folders = (self.storage, self.jobs, self.children, self.pulumi, self.bin, self.stacks)
        folders = (*folders, self.sockets)
        try:
            home_identity.ensure_usable(self.root, cache_dir())
            make_folder(self.root, 0o700)
            if self.root.stat().st_uid != os.geteuid():
                raise LocalCloudError(f"{self.root} belongs to another user.", hint)
            self.root.chmod(0o700)
            # The marker comes first: a start that fails half-way stays ours.
            home_identity.mark(self.root, cache_dir())
            for folder in folders:
                folder.mkdir(0o700, exist_ok=True)
        except OSError as error:
            text = f"cannot create or write {error.filename or self.root}: {error.strerror}."
            raise LocalCloudError(text, hint) from error

    def is_ours(self) -> bool:
        """Return whether ``create`` created this folder."""
        return home_identity.is_marked(self.root, cache_dir())

    def environment(self, ports: Ports | None) -> dict[str, str]:
        """Return variables that make pulumi and Google's clients use the local cloud.

        ``ports`` None leaves the emulators out: previews need none.
        """
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
        """Return variables for the registry at ``port``, and for builders' base images.

        None for 0. Builders get settings only where there are some, and the user has none.
        """
        if not port:
            return {}
        files = {REGISTRIES: self.registries, BUILDERS: self.builders}
        env = {name: str(file) for name, file in files.items() if _is_unset(name, file)}
        return {REGISTRY: f"127.0.0.1:{port}", **env}


def _is_unset(variable: str, file: Path) -> bool:
    named = os.environ.get(variable)
    return file.is_file() and (
        not named or home_identity.is_marked(Path(named).parent, cache_dir())
    )


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file; a new file has mode 0600. Does not follow a link."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


def touch_private(path: Path) -> None:
    """Create an empty file with mode 0600, if it does not exist.

    SQLite gives the files beside a database the rights of the database. Where the file cannot be
    made, the database says so.
    """
    with suppress(OSError):
        path.touch(0o600)


def make_private(tree: Path, keep: Collection[Path] = ()) -> None:
    """Remove other users' permissions from a folder tree. Does not follow symbolic links.

    What lies below the folders ``keep`` stays as it is: files of images have rights of their own.
    """
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if Path(folder, name) not in keep]
        for name in (".", *folders, *files):
            path = os.path.join(folder, name)
            # Files come and go while a server runs; those of another user keep their rights.
            with suppress(FileNotFoundError, PermissionError):
                mode = os.lstat(path).st_mode
                if not stat.S_ISLNK(mode) and mode & 0o077:
                    os.chmod(path, stat.S_IMODE(mode) & 0o700)


def cache_dir(env: Mapping[str, str] | None = None) -> Path:
    """Return ``VT_CACHE_DIR``, else ``vertex-training`` in the user's cache folder.

    The same place as that of ``make setup``. Raises LocalCloudError if the user has no home, and
    nothing else is named.
    """
    env = os.environ if env is None else env
    try:
        if named := env.get("VT_CACHE_DIR"):
            return Path(named).expanduser().absolute()
        base = Path(env.get("XDG_CACHE_HOME") or "")
        return (base if base.is_absolute() else Path.home() / ".cache") / "vertex-training"
    except RuntimeError as error:
        text = f"cannot determine the cache folder: {error}"
        raise LocalCloudError(text, "set VT_CACHE_DIR to a folder.") from None


@dataclass(frozen=True)
class ToolEnvironment:
    """A cached Python environment with a tool's packages; other versions get another
    environment.
    """

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
        """The file that marks a complete installation; it is written last."""
        return self.folder / ".installed"

    @property
    def python(self) -> Path | None:
        """The environment's Python; None if it is not installed."""
        return self.folder / "bin" / "python" if self.marker.is_file() else None


def _checkout(cwd: Path) -> Path:
    for folder in (cwd, *cwd.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    checkout = Path(__file__).resolve().parents[3]
    return checkout if (checkout / "Pulumi.yaml").is_file() else cwd


def path_without(*folders: Path) -> str:
    """Return PATH without ``folders``, so that nested shells do not add the folders twice."""
    drop = {str(folder) for folder in folders}
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(part for part in parts if part and part not in drop)
