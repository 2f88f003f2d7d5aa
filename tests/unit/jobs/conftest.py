"""Makes the jobs' code importable as it is on a training machine: as top-level packages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

import numpy as np
import pytest

from tests.fixture_project import SAMPLES as JOBS
from tests.fixture_project import sample

sys.path[:0] = [str(JOBS), str(JOBS / "lib")]

#: Beginning of a test module's name -> the sample that it tests, where that is in a folder.
SAMPLES: Final = {
    "test_arr_coc": "arr_coc",
    "test_parameter_server": "parameter_server",
    "test_spot_resume": "spot_resume",
    "test_titanic": "titanic",
    "test_transformer": "transformer",
}


class RemovedSample(pytest.Module):
    """A module that is skipped as a whole and not imported, for what it imports is gone."""

    def collect(self) -> NoReturn:
        pytest.skip(f"a sample was removed that {self.path.stem} tests", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip by name the tests of samples that a company has removed."""
    samples = [name for start, name in SAMPLES.items() if module_path.stem.startswith(start)]
    if all((JOBS / name).exists() for name in samples):
        return None
    return RemovedSample.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def titanic_data() -> Path:
    """The folder of the committed .npz files."""
    return sample("data/titanic")


@pytest.fixture(scope="session")
def data_script() -> ModuleType:
    """The script ``jobs/data/titanic.py``; its name is that of the job's package, hence by path."""
    file = sample("data/titanic.py")
    spec = importlib.util.spec_from_file_location("titanic_data_script", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """200 passengers, of whom the women survived."""
    random = np.random.default_rng(1)
    sex = random.choice(["female", "male"], 200)
    path = tmp_path / "train.npz"
    np.savez(
        path,
        age=random.uniform(1, 80, 200),
        sex=sex,
        passenger_class=random.integers(1, 4, 200),
        party_size=random.integers(1, 5, 200),
        survived=(sex == "female").astype(int),
    )
    return path
