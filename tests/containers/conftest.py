"""What these tests need of this machine; they say why they do not run where it is missing."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from localgcp.containers import registry
from localgcp.containers.registry import find_program

_HINT = "`make containers` lists the programs to install"


@pytest.fixture(scope="session")
def registry_program() -> str:
    """Path of the registry's program."""
    program = find_program()
    if program is None:
        pytest.skip(f"no container registry is installed ({_HINT})")
    return program


@pytest.fixture(scope="session")
def buildah() -> str:
    """Path of buildah, where it works without a runtime of containers: as root on Linux."""
    program = shutil.which("buildah")
    if program is None or sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(f"containers are tested with buildah, as root on Linux ({_HINT})")
    return program


@pytest.fixture(scope="session")
def base_image() -> str:
    """Name of the base image, which a stand-in takes the place of."""
    if not registry.has_stand_in():
        pytest.skip(f"there is no stand-in of {registry.BASE} ({_HINT})")
    return registry.BASE
