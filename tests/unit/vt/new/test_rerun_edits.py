"""Which places of a job file a rerun edits, and what it refuses with which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.new import rerun

ID = "0123456789abcdef0123"


def pool(task: str, *args: str) -> dict[str, Any]:
    return {task: {"args": list(args)}}


ONE, OTHER = pool("containerSpec", "--a=1", "--b", "2"), pool("pythonPackageSpec", "--a", "--b")


@pytest.mark.parametrize(
    ("content", "flag", "places"),
    [
        ({"workerPoolSpecs": [ONE, OTHER]}, "--a",
         [(("workerPoolSpecs", 0, "containerSpec", "args", 0), "--a=9"),
          (("workerPoolSpecs", 1, "pythonPackageSpec", "args", 1), "9")]),
        ({"workerPoolSpecs": [OTHER]}, "--b", []),  # no value follows it
        ({"workerPoolSpecs": [{"containerSpec": {"args": "--a=1"}}, {"containerSpec": None}, 7]},
         "--a", []),
        ({"workerPoolSpecs": [pool("containerSpec", "--ab=1", "x--a=1")]}, "--a", []),
        (None, "--a", []),
        ([], "--a", []),
    ],
)  # fmt: skip
def test_the_places_of_a_flag(content: Any, flag: str, places: list[Any]) -> None:
    assert list(rerun._places(content, flag, "9")) == places


JOB = """\
baseOutputDirectory: {outputUriPrefix: "gs://b/x/${job.requestId}"}  # kept
workerPoolSpecs:
  - containerSpec: {args: ["--a=1"]}
"""


@pytest.mark.parametrize(
    "text",
    [
        JOB,
        "jobSpec:\n" + "".join(f"  {line}\n" for line in JOB.splitlines()),
        JOB.replace("baseOutputDirectory", "base_output_directory").replace(
            "outputUriPrefix", "output_uri_prefix"
        ),
    ],
)
def test_the_folder_of_an_earlier_run_takes_the_place_of_one_of_its_own(text: str) -> None:
    assert rerun.with_folder_of(text, ID, "f.yaml") == text.replace("${job.requestId}", ID)


def test_one_folder_for_all_runs_stays_and_without_one_it_is_refused() -> None:
    shared = JOB.replace("/${job.requestId}", "")
    assert rerun.with_folder_of(shared, ID, "f.yaml") == shared
    for text in ("workerPoolSpecs: []\n", "baseOutputDirectory:\nworkerPoolSpecs: []\n"):
        with pytest.raises(CommandError) as refused:
            rerun.with_folder_of(text, ID, "f.yaml")
        assert str(refused.value) == (
            "f.yaml has no output directory. Hint: give it baseOutputDirectory"
        )


@pytest.mark.parametrize("text", ["a: [", "a: &x [*x]\n", "a: 1\na: 2\n"])
def test_a_file_that_cannot_be_read_is_told_with_its_place(text: str) -> None:
    with pytest.raises(CommandError, match=r"^f\.yaml:\d+"):
        rerun.with_arguments(text, [("--a", "1")], "f.yaml")


def test_a_value_that_is_a_block_of_text_is_not_edited() -> None:
    text = "workerPoolSpecs:\n  - containerSpec:\n      args:\n        - |-\n          --a=1\n"
    with pytest.raises(CommandError) as refused:
        rerun.with_arguments(text, [("--a", "7")], "f.yaml")
    assert str(refused.value) == "f.yaml: --a cannot be changed in place. Hint: edit it by hand"
    folder = "baseOutputDirectory:\n  outputUriPrefix: |-\n    gs://b/x/${job.requestId}\n"
    with pytest.raises(CommandError) as refused:
        rerun.with_folder_of(folder, ID, "f.yaml")
    assert str(refused.value) == (
        f"f.yaml: its output directory cannot be changed in place. Hint: gs://b/x/{ID}"
    )


@pytest.mark.parametrize(
    ("job", "section", "file"),
    [
        ("a", "jobs", "own.yaml"),
        ("b", "jobs", "shared.yaml"),
        ("c", "tuning", "shared.yaml"),
        ("c", "jobs", "own.yaml"),
        ("none", "jobs", "own.yaml"),
    ],
)
def test_the_file_of_a_job_is_the_one_that_has_its_entry(
    tmp_path: Path, job: str, section: str, file: str
) -> None:
    (tmp_path / "own.yaml").write_text("config:\n  vertex-training:jobs: {a: {file: x}}\n")
    (tmp_path / "shared.yaml").write_text("config:\n  jobs: {b: {file: x}}\n  tuning: {c: {}}\n")
    assert rerun._file_of(job, section, ["own.yaml", "shared.yaml"], tmp_path) == file
