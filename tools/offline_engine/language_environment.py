"""The Python environment of a Pulumi project, and the plugins that its packages need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

#: Supported keys of ``runtime.options``.
SERVED_OPTIONS: Final = {"virtualenv", "toolchain"}
#: Packages whose names begin with pulumi- but that have no plugin. The official host has this list.
WITHOUT_PLUGIN: Final = {"pulumi-policy", "pulumi-esc-sdk"}


class OptionError(Exception):
    """Error about a missing or unsupported value in ``runtime.options``."""


@dataclass(frozen=True)
class Environment:
    """The Python interpreter of a project. ``root`` is None without a ``virtualenv`` option."""

    python: str
    root: Path | None

    @classmethod
    def of(cls, project: Path, options: Mapping[str, Any], *, must_exist: bool) -> Environment:
        """Resolve ``runtime.options``, relative to the project. Raises OptionError."""
        toolchain = str(options.get("toolchain", "pip")).lower()
        if toolchain not in ("pip", "auto"):
            raise OptionError(
                "the stand-in language host does not support the runtime option toolchain: "
                f"{toolchain}. Hint: use pip, or install the official Pulumi release."
            )
        unknown = sorted(set(options) - SERVED_OPTIONS)
        if unknown:
            raise OptionError(
                "the stand-in language host does not support the runtime option "
                f"{unknown[0]}. Hint: remove the option, or install the official Pulumi release."
            )
        virtualenv = str(options.get("virtualenv", ""))
        if not virtualenv:
            ambient = os.environ.get("PULUMI_PYTHON_CMD") or "python3"
            return cls(shutil.which(ambient) or ambient, None)
        root = project / virtualenv
        if must_exist and not (root / "bin" / "python").is_file():
            raise OptionError(
                f"The 'virtualenv' option is set to {virtualenv!r}, but {str(root)!r} is not a "
                "virtual environment. Hint: create the environment (here: `make setup`)."
            )
        return cls(str(root / "bin" / "python"), root)

    def variables(self) -> dict[str, str]:
        """Return this process's environment variables with the virtual environment activated."""
        return self.activate(dict(os.environ))

    def activate(self, variables: dict[str, str]) -> dict[str, str]:
        """Return ``variables`` with the changes that ``source bin/activate`` makes."""
        if self.root is None:
            return variables
        activated = {k: v for k, v in variables.items() if k != "PYTHONHOME"}
        bin_folder = str(self.root / "bin")
        path = variables.get("PATH", os.defpath)
        if path.split(os.pathsep)[0] != bin_folder:
            path = bin_folder + os.pathsep + path
        return activated | {"PATH": path, "VIRTUAL_ENV": str(self.root)}

    def site_packages(self) -> list[Path]:
        """Return the folders that contain this interpreter's packages."""
        if self.root is not None:
            return sorted(self.root.glob("lib/python*/site-packages"))
        script = "import json, sys; print(json.dumps([p for p in sys.path if p]))"
        answer = subprocess.run(
            [self.python, "-c", script], capture_output=True, text=True, check=True
        )
        return [Path(folder) for folder in json.loads(answer.stdout)]

    def install_commands(self, program: Path) -> list[list[str]]:
        """Return the commands of ``pulumi install``, in order."""
        commands: list[list[str]] = []
        if self.root is not None and not Path(self.python).is_file():
            commands.append(["python3", "-m", "venv", str(self.root)])
        requirements = program / "requirements.txt"
        if requirements.is_file():
            commands.append([self.python, "-m", "pip", "install", "-r", str(requirements)])
        return commands


@dataclass(frozen=True)
class Plugin:
    """A resource plugin that an installed package needs."""

    name: str
    version: str
    server: str = ""


PRE_RELEASE: Final = {"a": "alpha", "b": "beta", "rc": "rc"}


def plugin_version(package_version: str) -> str | None:
    """Return the plugin's semantic version for a package's PEP 440 version, or None.

    The conversion is that of the official host: 1.0 becomes 1.0.0, 1.2.3a4 becomes 1.2.3-alpha.4,
    and 1.2.3.post4.dev5 becomes 1.2.3+post4dev5.
    """
    match = re.fullmatch(
        r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.(post\d+))?(?:\.(dev\d+))?", package_version
    )
    if not match:
        return None
    release, stage, number, post, dev = match.groups()
    parts = release.split(".")
    version = ".".join(parts + ["0"] * (3 - len(parts)))
    if stage:
        version += f"-{PRE_RELEASE[stage]}.{number}"
    return version + (f"+{post or ''}{dev or ''}" if post or dev else "")


def plugins_of(site_packages: Iterable[Path]) -> list[Plugin]:
    """Return the plugins of the installed Pulumi packages, by the official host's rules.

    A Pulumi package contains a pulumi-plugin.json, or its name begins with pulumi-. The file takes
    precedence.
    """
    plugins: dict[str, Plugin] = {}
    for folder in site_packages:
        for package in distributions(path=[str(folder)]):
            name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
            described = folder / name.replace("-", "_") / "pulumi-plugin.json"
            if name in WITHOUT_PLUGIN or not (described.is_file() or name.startswith("pulumi-")):
                continue
            data: dict[str, Any] = {"resource": True}
            if described.is_file():
                data = json.loads(described.read_text())
            version = data.get("version") or plugin_version(package.version)
            if data.get("resource") and version:
                plugin = data.get("name") or name.removeprefix("pulumi-")
                server = data.get("server") or ""
                plugins[plugin] = Plugin(plugin, "v" + version.removeprefix("v"), server)
    return [plugins[name] for name in sorted(plugins)]
