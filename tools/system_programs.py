"""Find or install system programs for some tests: ``make browser``, ``make containers``.

``containers`` are a program that builds images, a registry, and a base image. As root on Debian,
missing programs are installed. On other machines a message names them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

#: Environment variable with the path of a browser.
VARIABLE: Final = "CHROMIUM"
#: Programs of each group: alternative commands. The first command's name is its Debian package.
NEEDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "browser": {
        "browser": (
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
            "chrome",
        ),
    },
    "containers": {
        "builder": ("buildah", "podman", "docker"),
        "registry": ("docker-registry", "registry"),
    },
}
HINTS: Final = {
    "browser": "install chromium (Debian: apt-get install chromium), "
    f"or set {VARIABLE} to its path",
    "containers": "install buildah, podman or docker, and distribution's registry "
    "(Debian: apt-get install buildah docker-registry; Go: "
    "go install github.com/distribution/distribution/v3/cmd/registry@v3.0.0)",
}
BARE: Final = "--no-install-recommends"
BASE_HINT: Final = (
    "to build a base image locally, run as root on Debian, with buildah and mmdebstrap"
)
#: Programs that need a daemon, and for each a command that succeeds if the daemon runs.
DAEMONS: Final = {"docker": ("docker", "version", "--format", "{{.Server.Version}}")}
DAEMON_SECONDS: Final = 10
#: Time limit in seconds of a request to a public registry.
PULL_SECONDS: Final = 30


def find(commands: tuple[str, ...]) -> str | None:
    """Return the path of the first installed command; None if no command is installed."""
    for name in commands:
        path = shutil.which(name)
        if path and (name not in DAEMONS or succeeds(DAEMONS[name], DAEMON_SECONDS)):
            return path
    return None


def find_browser() -> str | None:
    """Return the path of Chromium from ``CHROMIUM``, else from PATH."""
    if named := os.environ.get(VARIABLE):
        return shutil.which(named)
    return find(NEEDS["browser"]["browser"])


def succeeds(command: tuple[str, ...], seconds: float) -> bool:
    """Return True if a command ends within the time limit, without an error."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def can_install() -> bool:
    """Return True if apt is installed and the user is root."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install(packages: list[str], *options: str) -> None:
    """Install Debian packages, with options of ``apt-get install``. Raises CalledProcessError."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", *options, *packages]):
        subprocess.run(["apt-get", *arguments], check=True, env=env, stdout=subprocess.DEVNULL)


def provide_base(builder: str) -> int:
    """Ensure that a base image for builds exists. Return an exit code."""
    from localgcp.containers import registry
    from localgcp.errors import LocalCloudError

    pull = (builder, "manifest", "inspect", registry.BASE)
    if registry.has_stand_in() or succeeds(pull, PULL_SECONDS):
        return 0
    if shutil.which("buildah") is None or not can_install():
        print(f"containers: cannot pull {registry.BASE}. Hint: {BASE_HINT}", file=sys.stderr)
        return 1
    try:
        if shutil.which("mmdebstrap") is None:
            install(["mmdebstrap"], BARE)
        registry.make_stand_in(lambda text: print(f"containers: {text}", flush=True))
    except (subprocess.CalledProcessError, LocalCloudError) as error:
        print(f"containers: no base image: {error}", file=sys.stderr)
        return 1
    print(f"containers: base image {registry.stand_in_folder()}")
    return 0


def main(group: str) -> int:
    """Install a group. Exit codes: 0 all programs are installed, 1 a program is missing."""
    programs = _find_all(group)
    missing = [NEEDS[group][name][0] for name, path in programs.items() if path is None]
    if missing and can_install() and not (group == "browser" and VARIABLE in os.environ):
        print(f"{group}: installing {' '.join(missing)} with apt-get", flush=True)
        try:
            install(missing, *(() if group == "browser" else (BARE,)))
        except subprocess.CalledProcessError as failed:
            print(f"{group}: {' '.join(failed.cmd)} failed. Hint: {HINTS[group]}", file=sys.stderr)
            return 1
        programs = _find_all(group)
    for name, path in programs.items():
        if path is None:
            print(f"{group}: {name} is not installed. Hint: {HINTS[group]}", file=sys.stderr)
            return 1
        print(f"{group}: {name} {path}")
    return provide_base(programs["builder"] or "") if group == "containers" else 0


def _find_all(group: str) -> dict[str, str | None]:
    if group == "browser":
        return {"browser": find_browser()}
    return {name: find(commands) for name, commands in NEEDS[group].items()}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
