"""The stacks that tests stand on: ``tests/fixtures/project``.

The stack files at the top of the repository, and what is in ``jobs/``, are samples: a company puts
its own in their place. So no test reads them but ``tests/golden/test_samples.py`` and the tests of
the samples' own code, which are skipped by name where a sample is gone. ``refuse_samples`` holds
all tests to it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[1]
PROJECT: Final = ROOT / "tests" / "fixtures" / "project"
SAMPLES: Final = ROOT / "jobs"
#: Beside these, ``jobs/`` has nothing that the product needs.
PRODUCT_IN_JOBS: Final = ("lib", "job.schema.json")
#: Code and data of samples.
SAMPLE_FOLDERS: Final = (
    *("arr_coc", "data", "ddp", "gemma_finetune", "parameter_server"),
    *("spot_resume", "titanic", "transformer"),
)
#: Job files that are samples. Those that a company adds are judged by ``vt check`` alone.
SAMPLE_JOBS: Final = (
    *("arr-coc-a100-reduction", "arr-coc-cpu", "ddp", "flash-attention-h100-any"),
    *("flash-attention-h100-four-nodes", "flash-attention-h100-specific", "gemma-finetune-l4"),
    *("parameter-server", "spot-resume", "titanic", "titanic-image", "titanic-t4"),
    *("titanic-tuning", "transformer", "two-h100"),
)
#: An entry for each ``reading_samples`` that is entered.
_reading: list[bool] = []


def source_path(root: Path) -> str:
    """``PYTHONPATH`` for a process that imports the packages of a checkout, and its ``tests``.

    The packages of a copy come before those of the environment, which are the original's.
    """
    return os.pathsep.join(str(root / name) for name in ("infra", "cli", "localcloud", "."))


@contextmanager
def reading_samples() -> Iterator[None]:
    """Inside of this, the stack files of the repository may be read."""
    _reading.append(True)
    try:
        yield
    finally:
        _reading.pop()


def refuse_samples(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail a test that opens a stack file of the repository. A hook of ``sys.addaudithook``.

    Raises:
        AssertionError: no handler of a product's errors takes it for a missing file.
    """
    if event != "open" or _reading or not isinstance(arguments[0], str | os.PathLike):
        return
    name = str(arguments[0])
    if not name.endswith(".yaml"):
        return
    file = Path(os.path.abspath(name))
    if arguments[1] is None and not os.path.isabs(name):
        return  # `os.open` beside an open folder, which may be anywhere
    if file.is_relative_to(ROOT) and is_stack_file(str(file.relative_to(ROOT))):
        message = f"a test reads {name}, which companies replace. Hint: tests/fixture_project.py"
        raise AssertionError(message)


def is_stack_file(name: str) -> bool:
    """Whether a path of the repository is a stack file, of the training stacks or of bootstrap."""
    path = Path(name)
    return path.parent in (Path(), Path("bootstrap")) and path.match("Pulumi.?*.yaml")


def is_companys(name: str) -> bool:
    """Whether a path of the repository is a stack file, or a team's own resources."""
    return is_stack_file(name) or Path(name).parts[0] in ("extra.py", "extra")


def is_removed_sample(name: str) -> bool:
    """Whether a path, as a page names it, is below a sample that is no longer there."""
    top, *rest = name.rstrip("./").split("/")
    known = {*SAMPLE_FOLDERS, *(f"{job}.yaml" for job in SAMPLE_JOBS)}
    return top == "jobs" and bool(rest) and rest[0] in known and not (SAMPLES / rest[0]).exists()


def is_sample(name: str) -> bool:
    """Whether a path of the repository is a job, its code or its data."""
    top, _, rest = name.partition("/")
    return top == "jobs" and rest.split("/")[0] not in PRODUCT_IN_JOBS


def config(stack: str, folder: str = "") -> dict[str, Any]:
    """Section ``config`` of a stack's file; ``folder`` is that of another program."""
    text = (PROJECT / folder / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["config"]


def lay_over(target: Path, *, sample_code: bool) -> None:
    """Put the project's files over a copy of the repository that has no stack files.

    With ``sample_code`` the folders that the copy has in ``jobs/`` stay: there they are what runs.
    """
    kept = {path for path in (target / "jobs").glob("*") if path.is_dir() and sample_code}
    for file in sorted(path for path in PROJECT.rglob("*") if path.is_file()):
        copy = target / file.relative_to(PROJECT)
        if kept.isdisjoint(copy.parents) and "__pycache__" not in file.parts:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


def copy_project(target: Path) -> Path:
    """A project with these stacks and no program, for commands that need no more."""
    shutil.copy2(ROOT / "Pulumi.yaml", target / "Pulumi.yaml")
    lay_over(target, sample_code=False)
    return target


def sample(name: str) -> Path:
    """A file or folder of ``jobs/``; the test, or its module, is skipped where it was removed."""
    if not (SAMPLES / name).exists():
        pytest.skip(f"jobs/{name} was removed", allow_module_level=True)
    return SAMPLES / name


def clean_environment(*more: str) -> dict[str, str]:
    """This process's variables without an outer local cloud's and a person's Pulumi.

    ``more`` are prefixes of further variables that are left out.
    """
    ambient = ("PULUMI_", "VT_LOCAL_", "VERTEX_EMULATOR", "STORAGE_EMULATOR", *more)
    return {key: value for key, value in os.environ.items() if not key.startswith(ambient)}
