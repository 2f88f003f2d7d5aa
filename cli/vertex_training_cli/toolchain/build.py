"""Build the engine from the modules that offline_engine/go.mod and go.sum pin."""

from __future__ import annotations

import hashlib
import os
import platform
import pwd
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.console import read_output, run
from vertex_training_cli.toolchain.layout import ENGINE_MODULE, ENGINE_VERSION, SDK_MODULE, Layout

BUILD_SECONDS: Final = 3600.0

#: Scripts of the official release, and their paths in the SDK's Go module.
SDK_FILES: Final = {
    "pulumi-language-python-exec": "python/cmd/pulumi-language-python-exec",
    "pulumi-resource-pulumi-python": "python/dist/pulumi-resource-pulumi-python",
}

#: Files of a finished build.
FILES: Final = ("pulumi", *SDK_FILES)


def cache_name(layout: Layout) -> str:
    """Name of the build in the cache: the version, and a digest of all inputs of the build."""
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for file in (*(layout.offline_engine / name for name in ("go.mod", "go.sum")), Path(__file__)):
        digest.update(file.read_bytes())
    return f"build-{ENGINE_VERSION}-{digest.hexdigest()[:16]}"


def build_engine(folder: Path, go: Path, layout: Layout) -> None:
    """Build the engine and collect its plugins in ``folder``/bin.

    Raises:
        SubprocessError: a step failed; its full output is in build.log of the cache.
    """
    target = folder / "bin"
    target.mkdir()
    scratch = folder / "tmp"
    scratch.mkdir()
    environment = go_environment(os.environ, scratch)
    log = layout.toolchain / "build.log"
    go_command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    # Without the version set, `pulumi version` prints nothing and version checks fail.
    flags = f"-s -w -X {SDK_MODULE}/go/common/version.Version=v{ENGINE_VERSION}"
    run(
        [*go_command, "-ldflags", flags, "-o", target / "pulumi", f"{ENGINE_MODULE}/cmd/pulumi"],
        what=f"building pulumi {ENGINE_VERSION} (3 to 10 minutes, once)",
        log=log,
        limit=BUILD_SECONDS,
        cwd=layout.offline_engine,
        env=environment,
    )
    listed = folder / "sdk"
    run(
        [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", SDK_MODULE],
        what="locating the SDK",
        log=listed,
        cwd=layout.offline_engine,
        env=environment,
    )
    sdk = Path(listed.read_text().strip())
    for name, place in SDK_FILES.items():
        shutil.copyfile(sdk / place, target / name)
        (target / name).chmod(0o755)
    listed.unlink()
    shutil.rmtree(scratch)
    read_output([target / "pulumi", "version"])


def go_environment(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The caller's environment without settings that change the result or the pinned files.

    The caller's flags are kept, except -mod, which may rewrite go.sum, and workspaces. Without cgo
    the result needs no C compiler and no particular libc. Go's temporary files go to ``scratch``,
    because they may exceed a small /tmp.
    """
    kept = [flag for flag in environment.get("GOFLAGS", "").split() if not flag.startswith("-mod")]
    own = {"GOFLAGS": " ".join(kept), "GOWORK": "off", "CGO_ENABLED": "0"}
    if not environment.get("HOME"):  # Go keeps its own caches there
        own["HOME"] = user_home(scratch)
    return {"GOTMPDIR": str(scratch), **environment, **own}


def user_home(default: Path) -> str:
    """The user's home in the system's user database, or ``default`` if there is none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return str(default)
