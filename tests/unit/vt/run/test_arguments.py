"""Arguments of ``vt run``, and the exit code that it hands on."""

from __future__ import annotations

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.run.command import exit_code
from vertex_training_cli.run.submission import add_arguments, with_words


@pytest.mark.parametrize(
    ("args", "words", "result"),
    [
        (["--a=1", "--b=2"], ["--a=3"], ["--b=2", "--a=3"]),
        (["--a", "1", "x"], ["--a=3"], ["x", "--a=3"]),
        (["--fast", "--a=1"], ["--fast"], ["--a=1", "--fast"]),
        (["--a", "--b"], ["--a=1"], ["--b", "--a=1"]),
        ([], ["train", "--a=1"], ["train", "--a=1"]),
        (["x=1"], ["x=2"], ["x=1", "x=2"]),
    ],
)
def test_equal_flags_are_replaced_and_others_stay(
    args: list[str], words: list[str], result: list[str]
) -> None:
    assert with_words(args, words) == result


@pytest.mark.parametrize("outer", ["jobSpec", "job_spec", ""])
def test_every_pool_gets_them(outer: str) -> None:
    pools = [{"containerSpec": {"args": ["--a=1"]}}, {"python_package_spec": {}}, {}]
    spec = {"workerPoolSpecs": pools}
    add_arguments({outer: spec} if outer else spec, ["--a=2"], "f")
    assert pools == [
        {"containerSpec": {"args": ["--a=2"]}},
        {"python_package_spec": {"args": ["--a=2"]}},
        {},
    ]


@pytest.mark.parametrize("content", [None, [], "x", {}, {"workerPoolSpecs": None}])
def test_a_file_without_a_task_is_refused(content: object) -> None:
    with pytest.raises(CommandError, match="no task that takes arguments"):
        add_arguments(content, ["--a=1"], "f.yaml")


@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        ("SUCCEEDED", "", 0),
        ("FAILED", "The replica workerpool0-0 exited with a non-zero status of 137. Termin", 137),
        ("FAILED", "no machines", 1),
        ("CANCELLED", "exited with a non-zero status of 3", 1),
    ],
)
def test_the_exit_code_is_that_of_the_job(state: str, error: str, code: int) -> None:
    assert exit_code(state, error) == code
