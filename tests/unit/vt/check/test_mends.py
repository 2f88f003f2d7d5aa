"""How a file is mended: each mend is proved, a guess twice, and a file is written as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from vertex_training.errors import CheckUnavailableError, Mend, Problem
from vertex_training_cli.check import fixing
from vertex_training_cli.check.fixing import FixedFile, fix

Judge = Callable[[bytes], Sequence[Problem]]


def wants(*, guessed: bool = False, to: str = "right") -> Judge:
    """Every value of the file is to be ``right``."""

    def judge(data: bytes) -> list[Problem]:
        found = yaml.safe_load(data.removeprefix(fixing.BOM)) or {}
        mend = Mend("value", to, guessed=guessed)
        return [Problem("w", path=(key,), mend=mend) for key in found if found[key] != "right"]

    return judge


def test_a_mend_that_mends_nothing_is_not_kept() -> None:
    before = b"a: x\nb: y\n"
    assert fix("f", before, wants(to="other")) == FixedFile("f", before, before, 0)


def test_a_problem_without_a_mend_or_at_no_place_stays() -> None:
    before = b"a: x\n"
    without = [Problem("w", path=("a",)), Problem("w", path=("z",), mend=Mend("value", "right"))]
    assert fix("f", before, lambda _: without) == FixedFile("f", before, before, 0)


@pytest.mark.parametrize(("wrong", "count"), [(99, 99), (100, 100), (101, 100)])
def test_of_one_file_a_hundred_mistakes_are_mended(
    monkeypatch: pytest.MonkeyPatch, wrong: int, count: int
) -> None:
    def judge(data: bytes) -> list[Problem]:
        left = data.count(b"x")
        return [Problem("w", path=(left,), mend=Mend("value", "y"))] if left else []

    monkeypatch.setattr(fixing, "mended", lambda text, _path, _mend: text.replace("x", "y", 1))
    before = b"x" * wrong
    after = b"y" * count + b"x" * (wrong - count)
    assert fix("f", before, judge) == FixedFile("f", before, after, count)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "f.yaml").write_bytes(b"old")
    return tmp_path / "jobs" / "f.yaml"


def refusal(fixed: FixedFile) -> str:
    with pytest.raises(CheckUnavailableError) as refused:
        fixed.write()
    return str(refused.value)


def test_a_file_that_changed_or_went_meanwhile_is_left(file: Path) -> None:
    assert refusal(FixedFile("jobs/f.yaml", b"other", b"new", 1)) == (
        "jobs/f.yaml: was changed meanwhile; check it again"
    )
    assert file.read_bytes() == b"old"
    file.unlink()
    assert refusal(FixedFile("jobs/f.yaml", b"old", b"new", 1)) == (
        "jobs/f.yaml: No such file or directory"
    )


def test_a_write_that_fails_leaves_nothing_behind(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    assert refusal(FixedFile("jobs/f.yaml", b"old", b"new", 1)) == (
        "jobs/f.yaml: No space left on device"
    )
    assert [each.name for each in file.parent.iterdir()] == ["f.yaml"]
    assert file.read_bytes() == b"old"


def test_a_link_out_of_the_checkout_is_not_written_through(
    file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "f.yaml"
    outside.write_bytes(b"old")
    file.unlink()
    file.symlink_to(outside)
    assert refusal(FixedFile("jobs/f.yaml", b"old", b"new", 1)) == (
        "jobs/f.yaml: jobs/f.yaml is a link out of its folder"
    )
    assert outside.read_bytes() == b"old"


def test_files_are_those_named_or_those_of_the_folder_jobs(file: Path) -> None:
    (file.parent / "g.yaml").write_text("x: 1\n")
    (file.parent / "notes.txt").write_text("x")
    found = [(each.file, each.before) for each in fixing.fix_all([], "")]
    assert found == [("jobs/f.yaml", b"old"), ("jobs/g.yaml", b"x: 1\n")]
    assert [each.file for each in fixing.fix_all(["jobs/g.yaml"], "")] == ["jobs/g.yaml"]


@pytest.mark.usefixtures("file")
def test_a_stack_that_is_not_there_has_no_files(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CheckUnavailableError, match="dev"):
        list(fixing.fix_all([], "dev"))
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    with pytest.raises(CheckUnavailableError) as refused:
        list(fixing.fix_all([], "dev"))
    assert str(refused.value) == "no Pulumi.yaml here or above: --stack needs a project"
