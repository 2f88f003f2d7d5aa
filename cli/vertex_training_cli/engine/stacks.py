"""Select the stack of a command, and return the environment for ``pulumi``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import yaml

from localgcp.access.pulumi_shim import find_project, selected_stack
from localgcp.home import BUILDERS, REGISTRIES, Home
from vertex_training import naming
from vertex_training.errors import CommandError, UnknownStackError
from vertex_training.located_yaml.values import Loader
from vertex_training.settings import project_files
from vertex_training_cli.engine import paths
from vertex_training_cli.engine.pulumi_cli import BACKEND, find_pulumi

if TYPE_CHECKING:
    from localgcp.home.servers import ServerInfo

#: The stack of a command if no stack is named or selected.
DEFAULT: Final = "local"
#: Environment variables with the local cloud's addresses, for Google's clients.
EMULATOR: Final = "VERTEX_EMULATOR_HOST"
STORAGE_EMULATOR: Final = "STORAGE_EMULATOR_HOST"
#: Variables with the configuration files of buildah and podman (``localgcp.containers.host``).
CONTAINERS: Final = {REGISTRIES, BUILDERS}
#: Pulumi project, stack, cloud project and region of script runs.
_SCRIPTS: Final = ("vt-run", DEFAULT, "local-run", "us-central1")


@dataclass(frozen=True, slots=True)
class PreviewTarget:
    """Environment of a preview, and the state that the preview starts from."""

    env: Mapping[str, str]
    source: str
    """Description of the state that the preview starts from."""


@dataclass(frozen=True, slots=True)
class StackRef:
    """A stack of the Pulumi project in ``root``, with its Google Cloud project and region."""

    root: Path
    pulumi_project: str
    stack: str
    project: str
    region: str

    @property
    def is_local(self) -> bool:
        """Return True for a stack of the local cloud."""
        return naming.is_local(self.project)

    @property
    def parent(self) -> str:
        """Return the parent of the stack's jobs, in the API's form."""
        return f"projects/{self.project}/locations/{self.region}"

    def first_key(self, key: str, *sections: str) -> str:
        """Return the key that labels use for an entry: ``formerly`` if the entry was renamed."""
        config: Any = read_stack_file(self.root, self.stack).get("config")
        for section in (*(f"vertex-training:{name}" for name in sections), *sections):
            entry = config
            for part in (section, key, "formerly"):
                entry = entry.get(part) if isinstance(entry, dict) else None
            if isinstance(entry, str):
                return entry
        return key

    def environment(self, log: Callable[[str], None]) -> Mapping[str, str]:
        """Return the environment for ``pulumi``. Starts the local cloud for a local stack."""
        if not self.is_local or os.environ.get(EMULATOR):
            return os.environ
        return _local_environment(self.root, log)

    def running_environment(self) -> Mapping[str, str]:
        """Return the environment for ``pulumi`` without starting the local cloud."""
        if not self.is_local or os.environ.get(EMULATOR):
            return os.environ
        return _local_environment(self.root, None)

    def deployment_environment(self, log: Callable[[str], None]) -> Mapping[str, str]:
        """Return the environment for a deployment, with this Python first on PATH."""
        env = dict(self.environment(log))
        if self.is_local:
            return env
        if not env.get(BACKEND):
            raise CommandError(
                f"environment variable {BACKEND} is not set.",
                f"set {BACKEND} to the gs:// URL of the state.",
            )
        tools = str(Path(sys.executable).parent)
        path = f"{tools}{os.pathsep}{env.get('PATH', os.defpath)}"
        return {**env, "PATH": path, **own_bytecode()}

    def local_backend(self) -> str:
        """Return the URL of the local cloud's state."""
        return f"file://{Home.find(cwd=self.root).pulumi}"

    def preview_target(self, *, offline: bool, refresh: bool = False) -> PreviewTarget:
        """Return the environment for a preview. Only ``refresh`` starts the local cloud.

        A preview of a local stack reads jobs and records of the local cloud if it runs. Other
        stacks are previewed against the state that PULUMI_BACKEND_URL names. Without this variable,
        or with ``offline``, a stand-in plugin and an empty state are used.
        """
        from localgcp import lifecycle
        from localgcp.home.environment import environment
        from localgcp.lifecycle import install_tools

        home, backend = Home.find(cwd=self.root), os.environ.get(BACKEND, "")
        own = backend == f"file://{home.pulumi}"
        if backend and not (own or offline or self.is_local):
            parts = urlsplit(backend)
            shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"  # without credentials
            source = f"Previewed against the state in {shown}"
            return PreviewTarget({**os.environ, **own_bytecode()}, source)
        with local_cloud_errors():
            home.create()
        install_tools(home)
        if not self.is_local:
            source = "Previewed offline against an empty state: everything looks new"
            return PreviewTarget(environment(home, None), source)
        source = "Previewed against the local stack's state"
        if refresh:
            return PreviewTarget(_local_environment(self.root, lambda _: None), source)
        info = None if offline else lifecycle.running(home)
        return PreviewTarget(environment(home, info.ports if info else None), source)

    def connect_clients(
        self, log: Callable[[str], None] | None = None, *, address: str = EMULATOR
    ) -> None:
        """Connect Google's clients of this process to the local cloud if the stack is local.

        With ``log``, start the local cloud. ``address`` is the variable with the address of the
        needed service.
        """
        if not self.is_local or os.environ.get(address):
            return
        env = self.environment(log) if log else self.running_environment()
        # Builders of images read base images and limits of RUN from their own variables.
        names = {name for name in env if name.endswith("_EMULATOR_HOST")} | env.keys() & CONTAINERS
        os.environ.update({name: env[name] for name in names})


def own_bytecode() -> Mapping[str, str]:
    """Return variables that let Python store bytecode only in the user's cache.

    Python would execute bytecode files beside a source, which no commit contains.
    """
    from vertex_training_cli.toolchain.layout import cache_home

    cache = str(cache_home() / "bytecode")
    # An empty value enables bytecode. Containers often disable bytecode, which slows each start.
    return {"PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}


def find(stack: str | None, start: Path | None = None) -> StackRef:
    """Return the named stack; by default ``$PULUMI_STACK``, the selected stack, or ``local``."""
    root = paths.root_of(start or Path.cwd())
    project = find_project(str(root)) if root else None
    if root is None or project is None:
        raise CommandError(
            "no Pulumi.yaml in this folder or above.", "change to the folder of a Pulumi project."
        )
    name = (stack or _selected(root)).rpartition("/")[2]
    config = read_stack_file(root, name).get("config") or {}
    config = config if isinstance(config, dict) else {}
    missing = [key for key in ("gcp:project", "gcp:region") if not config.get(key)]
    if missing:
        file = project_files.file_name(name)
        raise CommandError(f"{file}: {' and '.join(missing)} must be set below `config`.")
    return StackRef(root, project[1], name, str(config["gcp:project"]), str(config["gcp:region"]))


def find_scripts(home: Home) -> StackRef:
    """Return the stack of script runs, which `vt run` creates in the local cloud's folder."""
    return StackRef(home.root / "run", *_SCRIPTS)


def find_with_scripts(stack: str | None) -> tuple[StackRef, StackRef | None]:
    """Return the stack as ``find`` does and, for a local stack, the stack of script runs."""
    root = paths.root_of(Path.cwd())
    name = stack or (_selected(root) if root else DEFAULT)
    is_here = root is not None and (root / project_files.file_name(name)).is_file()
    ref = find(name) if is_here or name != DEFAULT else None
    if ref and not ref.is_local:
        return ref, None
    with local_cloud_errors():
        home = Home.find(cwd=root)
    scripts = find_scripts(home)
    if not (scripts.root / f"Pulumi.{DEFAULT}.yaml").is_file():
        return ref or find(stack), None
    os.environ["VT_LOCAL_HOME"] = str(home.root)  # The folder of scripts is below this folder.
    return ref or scripts, scripts if ref and ref.project != scripts.project else None


def find_unchecked(root: Path, stack: str) -> StackRef:
    """Return a stack of the project in ``root``; missing values of its file are empty."""
    try:
        text = project_files.file_of(root, stack).read_bytes()
        config = yaml.load(text, Loader=Loader)["config"]
        project = str(config["gcp:project"])
    except (OSError, UnknownStackError, yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError):
        return StackRef(root, "", stack, "", "")
    return StackRef(root, "", stack, project, str(config.get("gcp:region", "")))


def read_stack_file(root: Path, stack: str) -> dict[str, Any]:
    """Return the content of the stack's file."""
    file = project_files.file_of(root, stack)
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        content.get("config")
    except UnicodeDecodeError:
        raise CommandError(f"{file.name} is not a stack file: it is not valid UTF-8.") from None
    except OSError as error:
        raise CommandError(f"cannot read {file.name}: {error.strerror}.") from None
    except (yaml.YAMLError, AttributeError):
        hint = f"run `vt check --stack {stack}`"
        raise CommandError(f"{file.name} is not a valid stack file.", hint) from None
    return content


def _selected(root: Path) -> str:
    if named := os.environ.get("PULUMI_STACK"):
        return named
    pulumi = find_pulumi(os.environ)
    return (selected_stack(pulumi, str(root)) if pulumi else None) or DEFAULT


def _running(home: Home) -> ServerInfo:
    from localgcp import lifecycle

    info = lifecycle.running(home)
    if info is None:
        raise CommandError("the local cloud is not running.", "run `vt local start`")
    return info


def _local_environment(root: Path, log: Callable[[str], None] | None) -> dict[str, str]:
    """Return the environment of the local cloud. With ``log``, start the local cloud."""
    from localgcp import lifecycle
    from localgcp.home.environment import environment

    home = Home.find(cwd=root)
    with local_cloud_errors():
        info = lifecycle.start(home, log) if log else _running(home)
        return environment(home, info.ports)


@contextmanager
def local_cloud_errors() -> Iterator[None]:
    """Convert errors of the local cloud to CommandError."""
    from localgcp.errors import LocalCloudError

    try:
        yield
    except LocalCloudError as error:
        raise CommandError(error.message, error.hint) from error
