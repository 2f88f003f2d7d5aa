"""Fixes of ``vt check --fix``: what is kept of them, and how a file is written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.infra.customjob.test_job_cases import LINES, complete, job_of
from vertex_training.customjob.rules.context import Context
from vertex_training.errors import CheckUnavailableError, Mend, Problem
from vertex_training_cli.check.command import BOM, FixedFile, fix, judge_of

Judge = Callable[[bytes], Sequence[Problem]]


def wants(*, to: str = "right") -> Judge:
    """Return a check by which every value of a file must be ``right``."""

    def judge(data: bytes) -> list[Problem]:
        values = yaml.safe_load(data.removeprefix(BOM)) or {}
        fixes = Mend("value", to)
        return [Problem("w", path=(key,), mend=fixes) for key in values if values[key] != "right"]

    return judge


def fields(*values: str) -> bytes:
    return "".join(f"k{number}: {value}\n" for number, value in enumerate(values)).encode()


@pytest.mark.parametrize(
    ("before", "judge", "after", "count"),
    [
        (fields("x", "y"), wants(to="other"), fields("x", "y"), 0),  # the problem stays
        (fields("x"), lambda _: [Problem("w", path=("k0",))], fields("x"), 0),
        (fields("x"), lambda _: [Problem("w", path=("z",), mend=Mend("value", "right"))],
         fields("x"), 0),
        (BOM + fields("x"), wants(), BOM + fields("right"), 1),
        (fields(*"x" * 101), wants(), fields(*["right"] * 100, "x"), 100),
    ],
)  # fmt: skip
def test_only_a_fix_that_removes_its_problem_is_kept(
    before: bytes, judge: Judge, after: bytes, count: int
) -> None:
    assert fix("f", before, judge) == FixedFile("f", before, after, count)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.yaml").write_bytes(b"old")
    return tmp_path / "f.yaml"


def refusal(fixed: FixedFile) -> str:
    with pytest.raises(CheckUnavailableError) as refused:
        fixed.write()
    return str(refused.value)


def test_a_file_that_another_program_changed_or_removed_is_left(file: Path) -> None:
    changed = "another program changed f.yaml. Run `vt check` again"
    assert refusal(FixedFile("f.yaml", b"other", b"new", 1)) == changed
    assert file.read_bytes() == b"old"
    file.unlink()
    assert refusal(FixedFile("f.yaml", b"old", b"new", 1)) == "f.yaml: No such file or directory"


def test_a_failed_write_leaves_nothing_behind(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    assert refusal(FixedFile("f.yaml", b"old", b"new", 1)) == "f.yaml: No space left on device"
    assert [each.name for each in file.parent.iterdir()] == ["f.yaml"]
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize("style", [True, False, None])
@pytest.mark.parametrize(
    "row", [row for row in LINES if "fixed" in row], ids=lambda row: " ".join(map(str, row["line"]))
)
def test_a_command_line_is_fixed_once_and_the_diff_restores_the_file(
    row: dict[str, Any], style: bool | None, tmp_path: Path
) -> None:
    job = complete(job_of(row), Context())
    before = yaml.safe_dump(job, default_flow_style=style, sort_keys=False).encode()
    judge = judge_of("f.yaml")
    fixed = fix("f.yaml", before, judge)
    container = yaml.safe_load(fixed.after)["workerPoolSpecs"][0]["containerSpec"]
    assert [*container["command"], *container.get("args", [])] == row["fixed"]
    assert fix("f.yaml", fixed.after, judge).count == 0
    (tmp_path / "f.yaml").write_bytes(fixed.after)
    undo = ["git", "apply", "-R", "-p0", "--allow-empty", "-"]
    subprocess.run(undo, cwd=tmp_path, input="".join(fixed.diff()), text=True, check=True)
    assert (tmp_path / "f.yaml").read_bytes() == before
