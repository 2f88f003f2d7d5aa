"""What these tests need of this machine; they say why they do not run where it is missing."""

from __future__ import annotations

import pytest

from localcloud.containers.registry import find_program


@pytest.fixture(scope="session")
def registry_program() -> str:
    """Path of the registry's program."""
    program = find_program()
    if program is None:
        pytest.skip("no container registry is installed (`make containers` says what to install)")
    return program
