"""Runs containers on this machine, and removes containers of an earlier server."""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from localgcp.containers import registry
from localgcp.containers.engines import CDI_KIND, Buildah, Docker, Engine, registry_path
from localgcp.containers.registry import MIRROR
from localgcp.home import Home, open_private
from localgcp.home.environment import installer_environment
from localgcp.system.gpus import VISIBLE
from localgcp.system.processes import make_thread, run_quietly, succeeds

#: Command whose end also ends the processes and mounts below it (unshare(1), util-linux 2.32).
_NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_CHECK_SECONDS: Final = 10.0
#: Seconds before each attempt to remove a container.
_REMOVE_PAUSES: Final = (0.0, 0.2, 1.0, 5.0)
#: Folders of CDI specifications (https://github.com/cncf-tags/container-device-interface).
CDI_FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
MISSING: Final = "`make containers` installs the missing programs, or lists them"


class ContainerHost:
    """Runs images of the local registry; ``port`` is 0 without a registry."""

    def __init__(self, home: Home, port: int) -> None:
        self.home, self.port = home, port
        self._has_stand_in = registry.has_stand_in()
        # In a thread, because pip takes half a second.
        self._settings = make_thread(write_settings, home, port)
        self._engine: Engine | None = None

    def start(self) -> None:
        """Write settings for image builders, and remove the containers of a killed server."""
        self._settings.start()
        self.recover()

    def wait_ready(self) -> None:
        self._settings.join()

    def reconcile(self, port: int) -> None:
        """Write settings for builders again if the registry's port or the base image changed."""
        if (port, registry.has_stand_in()) != (self.port, self._has_stand_in):
            self.port, self._has_stand_in = port, registry.has_stand_in()
            write_settings(self.home, port)

    @property
    def engine(self) -> Engine | None:
        """The container engine, or None; each access searches until an engine is installed."""
        self._engine = self._engine or find_engine(self.home)
        return self._engine

    def refusal(self, spec: Mapping[str, Any]) -> str | None:
        """Return why a submitted job cannot run on this machine, or None."""
        pools = spec.get("workerPoolSpecs", [])
        named = (pool.get("containerSpec", {}).get("imageUri", "") for pool in pools)
        image = next(filter(registry_path, named), None)
        if image is None:
            return None
        if not self.port:
            return f"{image} cannot run here: no container registry is installed ({MISSING})."
        if self.engine is None:
            return f"{image} cannot run here: no container engine is installed ({MISSING})."
        return None

    def gpu_refusal(self, cdi_folders: Sequence[Path] = CDI_FOLDERS) -> str:
        """Return why containers get no GPU here, with a hint; empty if they get GPUs."""
        engine = self.engine
        if isinstance(engine, Docker):
            if engine.name == "podman":
                is_able = any(map(_has_cdi_gpus, cdi_folders))
                command = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
            else:
                runtimes = [engine.program, "info", "--format", "{{json .Runtimes}}"]
                # At its start, Docker looks for the hook and the runtime. --gpus needs one of them.
                hook = shutil.which("nvidia-container-runtime-hook")
                is_able = hook or "nvidia" in (_output(runtimes, self.environment()) or "")
                command = "nvidia-ctk runtime configure --runtime=docker"
            if is_able:
                return ""
            hint = f"install the NVIDIA Container Toolkit and run `sudo {command}`"
        else:
            hint = "install podman or docker, and the NVIDIA Container Toolkit"
        name = engine.name if engine else "this machine"
        alternative = f"start the local cloud with an empty {VISIBLE}"
        return f"{name} gives containers no GPU. Hint: {hint}, or {alternative}."

    def reference(self, image: str) -> str | None:
        """Return the local address of a local project's image; None for any other image."""
        path = registry_path(image)
        return f"127.0.0.1:{self.port}/{path}" if path and self.port else None

    def recover(self) -> None:
        if not self.home.containers.is_dir() or self.engine is None:
            return
        names = self._names(self.engine)
        if names is None:
            problem = "the container engine cannot list containers"
            print(f"{problem}; containers of a killed server may remain")
        for name in names or ():
            print(f"removing container {name}, left behind by a killed server")
            self.remove(name)

    def remove(self, container: str) -> None:
        """Remove a container if it exists, with retries while its processes end."""
        if self.engine is None:
            return
        for seconds in _REMOVE_PAUSES:
            time.sleep(seconds)
            if _output(self.engine.remove(container), self.environment()):
                return
            names = self._names(self.engine)
            if names is not None and container not in names:
                return
        print(f"cannot remove container {container}; the next start tries again")

    def _names(self, engine: Engine) -> list[str] | None:
        printed = _output(engine.containers(), self.environment())
        return None if printed is None else printed.split()

    def environment(self, tmp: Path | None = None) -> dict[str, str]:
        """Return the environment of the engine's command, which containers do not inherit."""
        env = {name: os.environ[name] for name in ("HOME", "XDG_RUNTIME_DIR") if name in os.environ}
        path = os.environ.get("PATH", os.defpath)
        return {**env, "PATH": path, "TMPDIR": str(tmp or self.home.root)}


def find_engine(home: Home) -> Engine | None:
    """Return the first working engine: buildah as root, podman, docker, buildah as another user."""
    tag = hashlib.sha256(str(home.root).encode()).hexdigest()[:16]
    user = f"{os.geteuid()}:{os.getegid()}"
    buildah = shutil.which("buildah") if sys.platform == "linux" else None
    if buildah and os.geteuid() == 0:
        allowed = succeeds([*_NAMESPACES, "true"], _CHECK_SECONDS)
        return Buildah(buildah, home.containers, _NAMESPACES if allowed else ())
    for name in ("podman", "docker"):
        program = shutil.which(name)
        if program and succeeds([program, "info"], _CHECK_SECONDS):
            return Docker(program, tag, user, name)
    return Buildah(buildah, home.containers) if buildah else None


def _has_cdi_gpus(folder: Path) -> bool:
    with suppress(OSError):
        return any(
            CDI_KIND in file.read_text("utf-8", "replace")
            for file in folder.iterdir()
            if file.suffix in (".yaml", ".json")
        )
    return False


def _output(command: list[str], env: Mapping[str, str]) -> str | None:
    done = run_quietly(command, 120.0, env)
    return done.stdout if done and done.returncode == 0 else None


_CERTIFICATES: Final = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def write_settings(home: Home, port: int) -> None:
    """Write settings of image builders; remove the files if no setting is needed.

    buildah and podman read both files (containers-registries.conf(5), containers.conf(5)). Settings
    of the user take precedence.
    """
    _write(home.registries, registries(port) if port and registry.has_stand_in() else "")
    _write(home.builders, settings(readable_files()) if port else "")


def registries(port: int) -> str:
    """Return the registry configuration: the mirror first, then Docker Hub."""
    return (
        'unqualified-search-registries = ["docker.io"]\n'
        '[[registry]]\nprefix = "docker.io"\nlocation = "docker.io"\n'
        f'[[registry.mirror]]\nlocation = "127.0.0.1:{port}/{MIRROR}"\ninsecure = true\n'
    )


def settings(files: list[Path]) -> str:
    """Return settings that mount files read-only at the same path, outside of image layers."""
    volumes = json.dumps([f"{file}:{file}:ro" for file in files])
    return f"[containers]\nvolumes = {volumes}\n" if files else ""


def readable_files(env: Mapping[str, str] | None = None) -> list[Path]:
    """Return pip's configuration files and certificates, without files that have a password."""
    env = os.environ if env is None else env
    named = [env[name] for name in _CERTIFICATES if env.get(name)]
    files: list[Path] = []
    for path in _pip_files():
        text = path.read_text(errors="replace")
        if "@" in text:  # the code of a build must not read the password of an index
            continue
        files.append(path)
        named += _certificates(text)
    return sorted({*files, *(Path(name) for name in named if Path(name).is_file())})


def _pip_files() -> list[Path]:
    command = [sys.executable, "-m", "pip", "config", "debug"]
    # A failed command may print files, too.
    done = run_quietly(command, 30.0, installer_environment())
    lines = (line.strip() for line in (done.stdout if done else "").splitlines())
    paths = (Path(line.rpartition(", exists:")[0]) for line in lines if line.endswith("True"))
    return [path for path in paths if path.is_file() and Path("/etc") in path.parents]


def _certificates(text: str) -> list[str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    sections = (dict(parser.items(section)) for section in parser.sections())
    return [section["cert"] for section in sections if "cert" in section]


def _write(path: Path, text: str) -> None:
    if not text:
        path.unlink(missing_ok=True)
        return
    with open_private(path, "w") as file:
        file.write(text)
