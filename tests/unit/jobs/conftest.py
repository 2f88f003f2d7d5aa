"""Makes the jobs' code importable as it is on a training machine: as top-level packages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

JOBS = Path(__file__).parents[3] / "jobs"
sys.path[:0] = [str(JOBS), str(JOBS / "lib")]


@pytest.fixture(scope="session")
def titanic_data() -> Path:
    """The folder of the committed .npz files."""
    return JOBS / "data" / "titanic"


@pytest.fixture(scope="session")
def data_script() -> ModuleType:
    """The script ``jobs/data/titanic.py``; its name is that of the job's package, hence by path."""
    spec = importlib.util.spec_from_file_location("titanic_data_script", JOBS / "data/titanic.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
