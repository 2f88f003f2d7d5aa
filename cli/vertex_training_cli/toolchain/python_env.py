"""Installs uv, the virtual environments, the pinned packages and this project.

The policy pack has a separate environment, because the policy SDK needs an older protobuf than
Google's clients. The pack imports only ``vertex_training`` from outside of this environment.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.layout import (
    Layout,
    SetupError,
    SubprocessError,
    read_version,
    run,
)

OLDEST_UV: Final = (0, 5, 0)
OLDEST_PYTHON: Final = (3, 11, 0)
OFFLINE_HINT: Final = (
    "read the message above. Behind a proxy or with a mirror, configure uv "
    "(UV_INDEX_URL, HTTPS_PROXY, SSL_CERT_FILE), then run `make setup` again"
)
#: Options of installers. Packages are not built, because build requirements have no pinned hash.
_PINNED: Final = ("--require-hashes", "--only-binary", ":all:")


def find_uv(*places: Path) -> Path | None:
    """Return the first suitable uv among these files and on PATH, or None."""
    on_path = shutil.which("uv")
    for candidate in (*places, *([Path(on_path)] if on_path else [])):
        try:
            if candidate.exists() and read_version(candidate, "--version") >= OLDEST_UV:
                return candidate
        except SubprocessError:
            continue
    return None


def uv_command(uv: Path, *arguments: str | Path) -> list[str | Path]:
    """Return a command line of uv. All paths in ``arguments`` must be absolute.

    The command starts in ``/``, because uv reads settings from its folder and the folders above.
    """
    return [uv, "--directory", "/", *arguments]


def ensure_venv(layout: Layout) -> Path:
    """Create .venv with the running Python unless .venv exists, and return uv.

    Without a suitable uv on PATH, pip installs the pinned uv into .venv. Raises SetupError.
    """
    script = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    try:
        is_suitable = read_version(layout.python, "-c", script) >= OLDEST_PYTHON
    except SubprocessError:  # .venv does not exist, or its Python was removed
        is_suitable = False
    uv = find_uv(layout.bin / "uv") if is_suitable else find_uv()
    if uv and not is_suitable:
        options = ("--quiet", "--clear", "--python", sys.executable)
        run_installer("creating .venv", uv_command(uv, "venv", *options, layout.venv), layout)
    if uv:
        return uv
    pins = layout.toolchain / "uv.txt"
    pins.write_text(pinned_requirement("uv", layout.requirements.read_text()) + "\n")
    create_environment(layout.venv, pins, "uv", layout, None, python=sys.executable)
    return layout.bin / "uv"


def install_packages(uv: Path, layout: Layout) -> None:
    """Install exactly the pinned packages by hash into .venv, and this project as editable."""
    python = ("--quiet", "--python", layout.python)
    sync = uv_command(uv, "pip", "sync", *python, "--require-hashes", layout.requirements)
    run_installer("installing packages", sync, layout)
    # An editable project has a path entry, which type checkers follow and which starts fast.
    editable = uv_command(uv, "pip", "install", *python, "--no-deps", "--no-build-isolation")
    roots = [layout.root] if layout.deploy else [layout.root, layout.root / "localcloud"]
    editable += [part for root in roots for part in ("--editable", root)]
    run_installer("installing this project", editable, layout)


def install_policy_packages(layout: Layout, uv: Path | None) -> None:
    """Recreate the environment of the policy pack, with ``uv`` or with venv and pip."""
    pins = layout.policy_requirements
    create_environment(layout.policy_venv, pins, "the policy pack", layout, uv)
    if layout.environment:
        # The link stays valid after an upgrade. In a checkout, policy/__main__.py sets the path.
        for folder in _policy_packages(layout):
            (folder / "vertex_training").symlink_to(layout.root / "vertex_training")


def has_policy_packages(layout: Layout) -> bool:
    """Return True if the policy pack's environment exists, with a needed link to the package."""
    if not os.access(layout.policy_venv / "bin" / "python", os.X_OK):
        return False
    ours = (layout.root / "vertex_training").resolve()
    links = (folder / "vertex_training" for folder in _policy_packages(layout))
    return layout.environment is None or any(link.resolve() == ours for link in links)


def _policy_packages(layout: Layout) -> list[Path]:
    # The pattern does not match lib64, which can be a link to lib.
    return sorted(layout.policy_venv.glob("lib/python*/site-packages"))


def create_environment(
    folder: Path, pins: Path, what: str, layout: Layout, uv: Path | None, python: str | Path = ""
) -> None:
    """Recreate an environment with the packages that ``pins`` lists by hash. Raises SetupError."""
    python, created = python or layout.python, folder / "bin" / "python"
    if uv:
        create = uv_command(uv, "venv", "--quiet", "--clear", "--python", python, folder)
        install = uv_command(uv, "pip", "sync", "--quiet", "--python", created, *_PINNED, pins)
    else:
        create = [python, "-m", "venv", "--clear", folder]
        install = [created, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += [*_PINNED, "-r", pins]
    run_installer(f"creating the environment of {what}", create, layout)
    run_installer(f"installing {what}'s packages", install, layout)


def run_installer(what: str, command: list[str | Path], layout: Layout) -> None:
    """Run uv, venv or pip. Raises SetupError with the last lines of the output."""
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "UV_PYTHON")}
    environment |= {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    try:
        run(command, what=what, log=layout.toolchain / "uv.log", cwd=layout.root, env=environment)
    except SubprocessError as error:
        shown = " ".join(str(part) for part in command)
        raise SetupError(f"{what} failed", [f"{shown}: {error}"], OFFLINE_HINT) from error


def pinned_requirement(package: str, requirements: str) -> str:
    """Return the lines of a package with its hashes in a compiled requirements file."""
    form = rf"^{re.escape(package)}==\S+[^\n]*\\\n(?:\s+--hash=\S+(?: \\)?\n)+"
    if match := re.search(form, requirements, re.MULTILINE):
        return match[0].rstrip()
    raise SetupError(
        f"{package} is not pinned in requirements/dev.txt", hint="restore requirements/dev.txt"
    )
