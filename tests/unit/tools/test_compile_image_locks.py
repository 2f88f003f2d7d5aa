"""Locks of images have their sources."""

import importlib.util
from types import ModuleType

import pytest

from tests.fixture_project import ROOT, SAMPLES, sample


@pytest.fixture(scope="module")
def locks() -> ModuleType:
    file = ROOT / "tools" / "compile_requirements.py"
    spec = importlib.util.spec_from_file_location("compile_requirements", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "folder",
    [
        "arr_coc",
        "gemma_finetune",
        "parameter_server",
        "spot_resume",
        "titanic",
        "titanic/serve",
        "transformer",
    ],
)
def test_every_lock_of_a_sample_has_its_source(locks: ModuleType, folder: str) -> None:
    kept = {f"{folder}/{file.name}" for file in sample(folder).glob("*.lock")}
    sources = [source for source in locks.LOCKS if source.rpartition("/")[0] == folder]
    assert kept == {f"{folder}/{name}" for source in sources for name in locks.LOCKS[source]}
    assert all((SAMPLES / source).is_file() for source in sources)
