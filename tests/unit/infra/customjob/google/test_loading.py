"""Google's clients are loaded in one order, since providers load them on several threads."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "package", ["vertex_training.customjob.google", "vertex_training.serving.google"]
)
def test_package_of_ports_loads_the_base_of_the_clients(package: str) -> None:
    code = f"import sys, {package}; print('google.auth.exceptions' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
