"""Find or install what the local cloud needs to build and run images: ``make containers``.

A program that builds images (docker, podman or buildah) and a container registry. As root on
Debian and its derivatives, missing ones are installed as the distribution's packages. Elsewhere a
message names what to install. Where no base image can be pulled, a stand-in is made of Debian's
packages (``localgcp.containers.mirror``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

#: Commands of each need, and the package of Debian that has one.
NEEDS: Final = {
    "builder": (("buildah", "podman", "docker"), "buildah"),
    "registry": (("docker-registry", "registry"), "docker-registry"),
}
#: Only these work without a daemon; a client alone builds nothing.
DAEMONS: Final = {"docker": ("docker", "version", "--format", "{{.Server.Version}}")}
HINT: Final = (
    "install buildah, podman or docker, and distribution's registry "
    "(Debian: apt-get install buildah docker-registry; Go: "
    "go install github.com/distribution/distribution/v3/cmd/registry@v3.0.0)"
)


BASE_HINT: Final = "a stand-in is made as root on Debian, with buildah and mmdebstrap"
#: For one question to a public registry.
PULL_SECONDS: Final = 30


def find(need: str) -> str | None:
    """Path of the first program that serves the need."""
    for name in NEEDS[need][0]:
        if (path := shutil.which(name)) and works(name):
            return path
    return None


def works(name: str) -> bool:
    """Whether the daemon behind a program answers, if it has one."""
    if name not in DAEMONS:
        return True
    try:
        done = subprocess.run(DAEMONS[name], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def can_install() -> bool:
    """Whether apt and root are available."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install(packages: list[str]) -> None:
    """Install packages of the distribution.

    Raises:
        CalledProcessError: apt failed; its own messages are on stderr.
    """
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-y", "-qq", "--no-install-recommends"]
    for arguments in (["update", "-qq"], ["install", *options, *packages]):
        subprocess.run(["apt-get", *arguments], check=True, env=env, stdout=subprocess.DEVNULL)


def can_pull(builder: str, image: str) -> bool:
    """Whether a builder reaches the registry of a public image."""
    command = [builder, "manifest", "inspect", image]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PULL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def provide_base(builder: str) -> int:
    """Make sure that there is a base image to build on. Returns an exit code."""
    from localgcp.containers import mirror
    from localgcp.errors import LocalCloudError

    if mirror.has_stand_in() or can_pull(builder, mirror.BASE):
        return 0
    if shutil.which("buildah") is None or not can_install():
        print(f"containers: {mirror.BASE} cannot be pulled. Hint: {BASE_HINT}", file=sys.stderr)
        return 1
    try:
        if shutil.which("mmdebstrap") is None:
            install(["mmdebstrap"])
        mirror.make(lambda text: print(f"containers: {text}", flush=True))
    except (subprocess.CalledProcessError, LocalCloudError) as error:
        print(f"containers: there is no base image: {error}", file=sys.stderr)
        return 1
    print(f"containers: base image {mirror.layout()}")
    return 0


def main() -> int:
    """Exit codes: 0 all is there, 1 something is missing."""
    missing = [NEEDS[need][1] for need in NEEDS if find(need) is None]
    if missing and can_install():
        print(f"containers: installing {' '.join(missing)} with apt-get", flush=True)
        try:
            install(missing)
        except subprocess.CalledProcessError as failed:
            print(f"containers: {' '.join(failed.cmd)} failed. Hint: {HINT}", file=sys.stderr)
            return 1
    for need in NEEDS:
        path = find(need)
        if path is None:
            print(f"containers: there is no {need}. Hint: {HINT}", file=sys.stderr)
            return 1
        print(f"containers: {need} {path}")
    return provide_base(find("builder") or "")


if __name__ == "__main__":
    sys.exit(main())
