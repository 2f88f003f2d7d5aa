"""The three sources of a ``pulumi``: PATH, the official release, a build of the official source.

They are tried in this order. A build needs only the Go module proxy, so it works on machines that
reach package registries and nothing else. It alone uses a stand-in: the Python language host
(tools/offline_engine/language_host.py of the checkout).
"""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain import build, releases
from vertex_training_cli.toolchain.cache import link, place, publish
from vertex_training_cli.toolchain.console import SetupError, SubprocessError, read_output, run
from vertex_training_cli.toolchain.layout import ENGINE_VERSION, PLUGINS, Layout
from vertex_training_cli.toolchain.python_env import parse_version, pinned_requirement

CONNECT_SECONDS: Final = 15.0
DOWNLOAD_SECONDS: Final = 300.0

DOWNLOAD: Final = f"""
import socket, subprocess, sys
from semver import VersionInfo
from pulumi.automation import PulumiCommand
socket.setdefaulttimeout({CONNECT_SECONDS})  # the SDK's own download has no limit
try:
    PulumiCommand.install(root=sys.argv[1], version=VersionInfo.parse(sys.argv[2]))
except subprocess.CalledProcessError as error:
    sys.exit((error.output or b"").decode(errors="replace") + str(error))
except Exception as error:  # any error is the reason that the caller reports
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""

HINT: Final = (
    "install the official Pulumi release so that `pulumi` is on PATH, or let this machine reach "
    "its download site, or install Go and reach the Go module proxy; then run `make setup` again"
)


class SourceUnavailableError(Exception):
    """A source of ``pulumi`` does not work on this machine. The text is the reason."""


@dataclass(frozen=True)
class Pulumi:
    """An installed CLI: its source, its version, and which of its parts are official."""

    source: str
    version: str
    engine: str
    language_host: str

    def __str__(self) -> str:
        return f"{self.version}, {self.engine}"


def check_source(chosen: str) -> None:
    """Check the value of VT_PULUMI_SOURCE.

    Raises:
        SetupError: ``chosen`` is neither "auto" nor a key of ``SOURCES``.
    """
    if chosen != "auto" and chosen not in SOURCES:
        raise SetupError(
            f"VT_PULUMI_SOURCE is {chosen!r}", hint=f"use one of auto, {', '.join(SOURCES)}"
        )


def ensure_pulumi(layout: Layout, chosen: str) -> Pulumi:
    """Put ``pulumi`` and its plugins into .venv/bin, from the first source that works.

    For deployments, one on PATH is used only if it is chosen: nothing pins it.

    Args:
        chosen: "auto" for all sources in order, or one of "path", "official", "build".

    Raises:
        SetupError: no source works; it lists each with its reason.
    """
    tried: list[str] = []
    for name, install in SOURCES.items():
        if chosen == name or (chosen == "auto" and not (layout.deploy and name == "path")):
            try:
                return install(layout)
            except SourceUnavailableError as error:
                tried.append(f"{name}: {error}")
                print(f"  not this way: {tried[-1]}", flush=True)
    raise SetupError("no usable pulumi", tried, HINT)


def link_from_path(layout: Layout) -> Pulumi:
    """Link the first usable installation on PATH.

    Raises:
        SourceUnavailableError: PATH has none; the text lists those that were rejected.
    """
    rejected: list[str] = []
    oldest = parse_version(ENGINE_VERSION)
    for folder in search_path(layout, os.environ):
        command = folder / "pulumi"
        if not os.access(command, os.X_OK) or command.is_dir():
            continue
        try:
            version = parse_version(read_output([command, "version"]))
        except SubprocessError as error:
            rejected.append(str(error))
            continue
        shown = ".".join(map(str, version))
        if not oldest <= version < (4, 0, 0):
            rejected.append(f"{command} is {shown}, needed is {ENGINE_VERSION} up to 4")
            continue
        real = command.resolve().parent
        missing = [name for name in PLUGINS if not is_official_plugin(real / name)]
        if missing:
            rejected.append(f"{command} has no official {missing[0]} beside it")
            continue
        for name in ("pulumi", *PLUGINS):
            link(real / name, layout.bin / name)
        return Pulumi("path", shown, f"{command}, official", "official")
    raise SourceUnavailableError("; ".join(rejected) or "no pulumi on PATH")


def search_path(layout: Layout, environment: os._Environ[str] | dict[str, str]) -> list[Path]:
    """The folders of PATH without this project's own (.venv, and the shim of the local cloud)."""
    home = environment.get("VT_LOCAL_HOME", str(layout.root / ".vt-local"))
    own = {layout.bin.resolve(), (Path(home) / "bin").resolve()}
    folders = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep) if entry]
    return [folder for folder in folders if folder.resolve() not in own]


def is_official_plugin(file: Path) -> bool:
    """Whether a plugin is executable and not the stand-in language host, which is a script."""
    if not os.access(file, os.X_OK):
        return False
    if file.name != "pulumi-language-python":
        return True
    with file.open("rb") as opened:
        return opened.read(2) != b"#!"


def install_official(layout: Layout) -> Pulumi:
    """Install the official release of the pinned version.

    It is downloaded and compared with releases.sha256. If that has no line for it, the SDK's own
    installer downloads it, but not for deployments: nothing there compares a hash.

    Raises:
        SourceUnavailableError: the download failed, or is not pinned and must be.
    """
    version = ENGINE_VERSION
    archive = releases.engine_archive(version)
    sha256 = releases.pinned_sha256(layout, archive)
    if layout.deploy and not sha256:
        raise SourceUnavailableError(f"{layout.releases.name} has no line for {archive}")
    target = layout.toolchain / (
        f"official-{version}-{sha256}" if sha256 else f"official-{version}"
    )
    if not (target / "bin" / "pulumi").is_file():

        def download(folder: Path) -> None:
            if sha256:
                releases.unpack_engine(archive, sha256, folder)
            else:
                _run_installer(layout, folder, version)
            if not is_official_plugin(folder / "bin" / "pulumi-language-python"):
                raise SubprocessError("the release has no pulumi-language-python")

        try:
            publish(target, download)
        except SubprocessError as error:
            raise SourceUnavailableError(f"download of {version}: {error}") from error
    for name in ("pulumi", *PLUGINS):
        place(target / "bin" / name, layout.bin / name)
    _guard_dynamic_provider(target / "bin", layout)
    return Pulumi("official", version, "official release", "official")


def _run_installer(layout: Layout, folder: Path, version: str) -> None:
    run(
        [layout.python, "-c", DOWNLOAD, folder, version],
        what="downloading the official release",
        log=layout.toolchain / "official.log",
        limit=DOWNLOAD_SECONDS,
    )


def install_gcp_plugin(layout: Layout) -> str:
    """Install the gcp plugin of the pinned SDK by its pinned SHA-256. Returns a note.

    Raises:
        SetupError: it is not pinned, or the download failed.
    """
    version = _sdk_version(layout)
    archive = releases.plugin_archive(version)
    sha256 = releases.pinned_sha256(layout, archive)
    if not sha256:
        raise SetupError(
            f"{layout.own_releases or layout.releases.name} has no line for {archive}",
            hint="add its published SHA-256 (docs/dependencies.md)"
            if layout.own_releases or not layout.environment
            else "vt setup --deploy --releases FILE, with a line as sha256sum prints it",
        )
    command = [layout.bin / "pulumi", "plugin", "install", "resource", "gcp", version]
    try:
        run(
            [*command, "--exact", "--checksum", sha256],
            what="installing the gcp plugin",
            log=layout.toolchain / "plugin.log",
            limit=DOWNLOAD_SECONDS,
        )
    except SubprocessError as error:
        raise SetupError("the gcp plugin cannot be installed", [str(error)]) from error
    return f"{version}, by SHA-256"


def _sdk_version(layout: Layout) -> str:
    """The version of the gcp SDK: that of the pin, or the one that is installed already."""
    if layout.environment:
        return importlib.metadata.version("pulumi-gcp")
    pin = pinned_requirement("pulumi-gcp", layout.requirements.read_text())
    return pin.split()[0].partition("==")[2]


def install_build(layout: Layout) -> Pulumi:
    """Build the engine of the pinned version with Go; the language host is the stand-in.

    Raises:
        SourceUnavailableError: Go is missing, or the build failed.
    """
    if not (layout.offline_engine / "go.mod").is_file():
        raise SourceUnavailableError(
            f"{layout.offline_engine} has no go.mod; a checkout's tools/offline_engine has one "
            "(VT_OFFLINE_ENGINE)"
        )
    target = layout.toolchain / build.cache_name(layout)
    if not (target / "bin" / "pulumi").is_file():
        go = shutil.which("go")
        if go is None:
            raise SourceUnavailableError("no Go on PATH")
        try:
            publish(target, lambda folder: build.build_engine(folder, Path(go), layout))
        except SubprocessError as error:
            raise SourceUnavailableError(f"go build of {ENGINE_VERSION}: {error}") from error
    for name in build.FILES:
        place(target / "bin" / name, layout.bin / name)
    program = shlex.quote(str(layout.offline_engine / "language_host.py"))
    host = (layout.offline_engine / "pulumi-language-python").read_text()
    _write_script("pulumi-language-python", host.replace("@LANGUAGE_HOST@", program), layout)
    _guard_dynamic_provider(target / "bin", layout)
    return Pulumi(
        "build",
        ENGINE_VERSION,
        "official source, built here with Go",
        "stand-in (offline_engine/language_host.py); executor and dynamic provider are official",
    )


def _guard_dynamic_provider(official: Path, layout: Layout) -> None:
    """Install Pulumi's own script so that it starts the provider with a guard at its port."""
    name = "pulumi-resource-pulumi-python"
    guard = shlex.quote(str(layout.plugin_callers))
    text = (official / name).read_text().replace("-m pulumi.dynamic", f"{guard} pulumi.dynamic")
    _write_script(name, text, layout)


def _write_script(name: str, text: str, layout: Layout) -> None:
    beside = layout.bin / f".{name}.new"
    beside.write_text(text)
    beside.chmod(0o755)
    os.replace(beside, layout.bin / name)


#: Value of VT_PULUMI_SOURCE -> what installs from there; in the order of preference.
SOURCES: Final[dict[str, Callable[[Layout], Pulumi]]] = {
    "path": link_from_path,
    "official": install_official,
    "build": install_build,
}
