"""The three sources of ``pulumi``: PATH, the official release, and a build from official source.

The sources are tried in this order. An official archive with a line in releases.sha256 is compared
with that SHA-256 before unpacking. A build needs only the Go module proxy, but uses a stand-in for
the Python language host (tools/offline_engine/language_host.py of the checkout).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shlex
import shutil
import tarfile
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.layout import (
    ENGINE_VERSION,
    PLUGINS,
    Layout,
    SetupError,
    SubprocessError,
    link,
    parse_version,
    place,
    publish,
    read_version,
    replacing,
    run,
)
from vertex_training_cli.toolchain.python_env import pinned_requirement

ENGINE_URL: Final = "https://get.pulumi.com/releases/sdk"
#: Seconds without data after which a download fails.
STALL_SECONDS: Final = 30.0
DOWNLOAD_SECONDS: Final = 300.0
BUILD_SECONDS: Final = 3600.0
ENGINE_MODULE: Final = "github.com/pulumi/pulumi/pkg/v3"
SDK_MODULE: Final = "github.com/pulumi/pulumi/sdk/v3"
DYNAMIC_PROVIDER: Final = "pulumi-resource-pulumi-python"
#: Scripts of the official release with their paths in the SDK's Go module.
SDK_FILES: Final = {
    "pulumi-language-python-exec": "python/cmd/pulumi-language-python-exec",
    DYNAMIC_PROVIDER: f"python/dist/{DYNAMIC_PROVIDER}",
}
HINT: Final = (
    "do one of these, then run `make setup` again: put the official `pulumi` on PATH; "
    "give this machine access to Pulumi's download site; or install Go and give this "
    "machine access to the Go module proxy"
)


@dataclass(frozen=True)
class Pulumi:
    """An installed CLI: its source, its version, and descriptions of engine and language host."""

    source: str
    version: str
    engine: str
    language_host: str


def ensure_pulumi(layout: Layout, chosen: str) -> Pulumi:
    """Put ``pulumi`` and its plugins into .venv/bin, from the first source that works.

    ``chosen`` is a source, or "auto" for all sources in order. For deployments, "auto" does not use
    PATH, because no hash pins that ``pulumi``. Raises SetupError with the reasons.
    """
    tried: list[str] = []
    for name, install in SOURCES.items():
        if chosen == name or (chosen == "auto" and not (layout.deploy and name == "path")):
            try:
                return install(layout)
            except SubprocessError as error:
                tried.append(f"{name}: {error}")
                print(f"  source skipped: {tried[-1]}", flush=True)
    raise SetupError("cannot install pulumi: every source failed", tried, HINT)


def link_from_path(layout: Layout) -> Pulumi:
    """Link the first usable installation on PATH: the pinned major version, not older.

    Raises SubprocessError with the reason for each rejected installation.
    """
    rejected, oldest = list[str](), parse_version(ENGINE_VERSION)
    for command in (folder / "pulumi" for folder in search_path(layout)):
        if not os.access(command, os.X_OK) or command.is_dir():
            continue
        try:
            version = read_version(command, "version")
        except SubprocessError as error:
            rejected.append(str(error))
            continue
        shown, folder = ".".join(map(str, version)), command.resolve().parent
        missing = [name for name in PLUGINS if not _is_official_plugin(folder / name)]
        if not oldest <= version < (oldest[0] + 1, 0, 0):
            needed = f"{ENGINE_VERSION} or later, before {oldest[0] + 1}"
            rejected.append(f"{command} has version {shown}, but setup needs {needed}")
        elif missing:
            rejected.append(f"the folder of {command} has no official {missing[0]}")
        else:
            for name in ("pulumi", *PLUGINS):
                link(folder / name, layout.bin / name)
            return Pulumi("path", shown, f"{command}, official", "official")
    raise SubprocessError("; ".join(rejected) or "pulumi is not on PATH")


def search_path(layout: Layout) -> list[Path]:
    """Return the folders of PATH without .venv and the folder of the local cloud."""
    home = os.environ.get("VT_LOCAL_HOME", str(layout.root / ".vt-local"))
    own = {layout.bin.resolve(), (Path(home) / "bin").resolve()}
    folders = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    return [folder for folder in folders if folder.resolve() not in own]


def _is_official_plugin(file: Path) -> bool:
    """Return True if a plugin is executable and not the stand-in language host, a script."""
    if not os.access(file, os.X_OK):
        return False
    if file.name != "pulumi-language-python":
        return True
    with file.open("rb") as opened:
        return opened.read(2) != b"#!"


def install_official(layout: Layout) -> Pulumi:
    """Install the official release of the pinned version.

    Without a SHA-256 in releases.sha256, the release is installed unchecked, but not for
    deployments. Raises SubprocessError.
    """
    archive = engine_archive()
    sha256 = _pinned_sha256(layout, archive)
    if layout.deploy and not sha256:
        raise SubprocessError(f"{layout.releases.name} has no SHA-256 for {archive}")
    target = layout.toolchain / "-".join(filter(None, ("official", ENGINE_VERSION, sha256)))
    if not (target / "bin" / "pulumi").is_file():
        print("  downloading the official release ...", flush=True)
        publish(target, lambda folder: _unpack_engine(archive, sha256, folder))
    _install_engine(target / "bin", ("pulumi", *PLUGINS), layout)
    return Pulumi("official", ENGINE_VERSION, "official release", "official")


def _install_engine(source: Path, names: Iterable[str], layout: Layout) -> None:
    """Put an engine's files into .venv/bin, with a guard for the dynamic provider's port."""
    for name in names:
        place(source / name, layout.bin / name)
    guard = shlex.quote(str(layout.plugin_callers))
    text = (source / DYNAMIC_PROVIDER).read_text()
    _write_script(
        layout.bin / DYNAMIC_PROVIDER, text.replace("-m pulumi.dynamic", f"{guard} pulumi.dynamic")
    )


def _write_script(file: Path, text: str) -> None:
    with replacing(file) as beside:
        beside.write_text(text)
        beside.chmod(0o755)


def engine_archive() -> str:
    """Return the name of the engine's official archive for this machine."""
    return f"pulumi-v{ENGINE_VERSION}-{_platform('x64')}.tar.gz"


def plugin_archive(version: str) -> str:
    """Return the name of the gcp plugin's official archive for this machine."""
    return f"pulumi-resource-gcp-v{version}-{_platform('amd64')}.tar.gz"


def _platform(intel: str) -> str:
    """Return the system and the processor as in names of archives. ``intel`` is Intel's name."""
    is_arm = platform.machine().lower() in ("aarch64", "arm64")
    return f"{platform.system().lower()}-{'arm64' if is_arm else intel}"


def _pinned_sha256(layout: Layout, archive: str) -> str:
    """Return the pinned SHA-256 of an archive; empty if no file lists the archive."""
    for file in (layout.releases, layout.own_releases):
        for line in file.read_text().splitlines() if file else ():
            digest, _, name = line.partition("  ")
            if name == archive:
                return digest.lower()
    return ""


def _unpack_engine(archive: str, sha256: str, folder: Path) -> None:
    """Download an engine's archive, and unpack its programs to ``folder``/bin."""
    file = folder / archive
    try:
        with (
            urllib.request.urlopen(f"{ENGINE_URL}/{archive}", timeout=STALL_SECONDS) as source,
            file.open("wb") as target,
        ):
            shutil.copyfileobj(source, target)
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if sha256 and digest != sha256:
            raise SubprocessError(f"{archive} has SHA-256 {digest}, but {sha256} is pinned")
        with tarfile.open(file) as opened:
            opened.extractall(folder, filter="data")
        (folder / "pulumi").rename(folder / "bin")
        file.unlink()
    except (OSError, tarfile.TarError) as error:
        raise SubprocessError(f"cannot download {archive}: {error}") from error


def pinned_gcp_plugin(layout: Layout) -> tuple[str, str]:
    """Return the version and the SHA-256 of the gcp plugin of the pinned SDK. Raises SetupError."""
    if layout.environment:
        version = importlib.metadata.version("pulumi-gcp")
    else:
        pin = pinned_requirement("pulumi-gcp", layout.requirements.read_text())
        version = pin.split()[0].partition("==")[2]
    archive = plugin_archive(version)
    sha256 = _pinned_sha256(layout, archive)
    if not sha256:
        page = "README.md, step 3" if layout.own_releases else "docs/maintainers.md"
        hint = f"add the published SHA-256 to the file ({page})"
        if layout.environment and not layout.own_releases:
            hint = "run `vt setup --deploy --releases FILE` with the output of sha256sum in FILE"
        file = layout.own_releases or layout.releases.name
        raise SetupError(f"{file} has no SHA-256 for {archive}", hint=hint)
    return version, sha256


def install_gcp_plugin(layout: Layout) -> None:
    """Install the gcp plugin of the pinned SDK by its pinned SHA-256. Raises SetupError."""
    version, sha256 = pinned_gcp_plugin(layout)
    command = [layout.bin / "pulumi", "plugin", "install", "resource", "gcp", version]
    try:
        run(
            [*command, "--exact", "--checksum", sha256],
            what="installing the gcp plugin",
            log=layout.toolchain / "plugin.log",
            limit=DOWNLOAD_SECONDS,
        )
    except SubprocessError as error:
        raise SetupError("cannot install the gcp plugin", [str(error)]) from error


def install_build(layout: Layout) -> Pulumi:
    """Build the pinned engine, and add the stand-in language host. Raises SubprocessError."""
    pins = layout.offline_engine
    if not (pins / "go.mod").is_file():
        raise SubprocessError(
            f"{pins} has no go.mod; set VT_OFFLINE_ENGINE to tools/offline_engine of a checkout"
        )
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for source in ("go.mod", "go.sum"):
        digest.update((pins / source).read_bytes())
    target = layout.toolchain / f"build-{ENGINE_VERSION}-{digest.hexdigest()[:16]}"
    if not (target / "bin" / "pulumi").is_file():
        publish(target, lambda folder: _build_engine(folder, layout))
    _install_engine(target / "bin", ("pulumi", *SDK_FILES), layout)
    program = shlex.quote(str(pins / "language_host.py"))
    host = (pins / "pulumi-language-python").read_text()
    _write_script(layout.bin / "pulumi-language-python", host.replace("@LANGUAGE_HOST@", program))
    return Pulumi(
        "build",
        ENGINE_VERSION,
        "official source, built here with Go",
        "stand-in (offline_engine/language_host.py); executor and dynamic provider are official",
    )


def _build_engine(folder: Path, layout: Layout) -> None:
    """Build the engine, and collect its plugins in ``folder``/bin."""
    if not shutil.which("go"):
        raise SubprocessError("Go is not on PATH")
    target, module, scratch = folder / "bin", layout.offline_engine, folder / "bin" / "tmp"
    scratch.mkdir(parents=True)
    kept = [flag for flag in os.environ.get("GOFLAGS", "").split() if not flag.startswith("-mod")]
    environment = {
        "HOME": os.path.expanduser("~"),  # the folder of Go's caches
        "GOTMPDIR": str(scratch),  # /tmp may be too small
        **os.environ,
        "GOFLAGS": " ".join(kept),  # -mod could change go.sum
        "GOWORK": "off",
        "CGO_ENABLED": "0",  # the result needs no C compiler and no particular libc
    }
    # Without this flag, `pulumi version` prints nothing and version checks fail.
    version = f"-X {SDK_MODULE}/go/common/version.Version=v{ENGINE_VERSION}"
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"]
    command += [f"-s -w {version}", "-o", str(target / "pulumi"), f"{ENGINE_MODULE}/cmd/pulumi"]
    what = f"building pulumi {ENGINE_VERSION} (3 to 10 minutes, once)"
    log = layout.toolchain / "build.log"
    run(command, what=what, log=log, limit=BUILD_SECONDS, cwd=module, env=environment)
    shutil.rmtree(scratch)
    listing = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", SDK_MODULE]
    sdk = Path(run(listing, what="locating the SDK", cwd=module).splitlines()[-1])
    for name, source in SDK_FILES.items():
        shutil.copyfile(sdk / source, target / name)
        (target / name).chmod(0o755)
    read_version(target / "pulumi", "version")


#: Values of VT_PULUMI_SOURCE in order of preference, and the functions that install ``pulumi``.
SOURCES: Final[dict[str, Callable[[Layout], Pulumi]]] = {
    "path": link_from_path,
    "official": install_official,
    "build": install_build,
}
