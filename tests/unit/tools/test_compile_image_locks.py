"""Locks of images are made of one resolution: what a base has, or the CPU lacks, is left out."""

import importlib.util
from types import ModuleType

import pytest

from tests.fixture_project import ROOT, SAMPLES, sample

COMPILED = """\
# a comment
nvidia-nccl-cu12==2.20.5 \\
    --hash=sha256:1
numpy==1.26.4 \\
    --hash=sha256:2 \\
    --hash=sha256:3
torch==2.4.1 \\
    --hash=sha256:4
triton==3.0.0 \\
    --hash=sha256:5
tritonclient==1.0 \\
    --hash=sha256:6
"""


@pytest.fixture(scope="module")
def locks() -> ModuleType:
    file = ROOT / "tools" / "compile_image_locks.py"
    spec = importlib.util.spec_from_file_location("compile_image_locks", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names(locks: ModuleType, change: str) -> list[str]:
    kept = map(getattr(locks, change), locks.pins(COMPILED))
    return [each.partition(" ")[0] for each in kept if each]


def test_a_pin_keeps_all_its_hashes(locks: ModuleType) -> None:
    found = locks.pins(COMPILED)
    assert len(found) == 5
    assert found[1].count("--hash=") == 2
    assert "".join(found) == COMPILED.removeprefix("# a comment\n")


def test_a_lock_leaves_out_what_its_base_has_or_its_machine_lacks(locks: ModuleType) -> None:
    assert names(locks, "_for_cpu") == ["numpy==1.26.4", "torch==2.4.1+cpu", "tritonclient==1.0"]
    assert names(locks, "_without_torch") == ["numpy==1.26.4", "tritonclient==1.0"]
    assert len(names(locks, "_as_compiled")) == 5


@pytest.mark.parametrize(
    "folder",
    ["arr_coc", "gemma_finetune", "parameter_server", "spot_resume", "titanic", "titanic/serve"],
)
def test_every_lock_of_a_sample_has_its_source(locks: ModuleType, folder: str) -> None:
    kept = {f"{folder}/{file.name}" for file in sample(folder).glob("*.lock")}
    sources = [source for source in locks.LOCKS if source.rpartition("/")[0] == folder]
    assert kept == {f"{folder}/{name}" for source in sources for name in locks.LOCKS[source]}
    assert all((SAMPLES / source).is_file() for source in sources)
