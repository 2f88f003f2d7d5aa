"""What an import writes: job files as people read them, a diff first, and nothing over a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import proposal
from vertex_training_cli.importing.imported import ImportedJob, Note, Scalar
from vertex_training_cli.importing.proposal import Proposal
from vertex_training_cli.importing.sources import SourceContents

HEAD = "# yaml-language-server: $schema=job.schema.json\n"
POOL: dict[str, Any] = {
    "containerSpec": {
        "env": [{"value": "1", "name": "A"}],
        "args": ["--a"],
        "imageUri": "a/b/c:1",
    },
    "machineSpec": {"machineType": "n1-standard-4", "acceleratorCount": 1},
    "replicaCount": 1,
}
SPEC: dict[str, Any] = {"workerPoolSpecs": [POOL], "serviceAccount": "s", "unheardOf": True}
TEXT = """\
serviceAccount: s
workerPoolSpecs:
  - replicaCount: 1
    machineSpec:
      machineType: n1-standard-4
      acceleratorCount: 1
    containerSpec:
      imageUri: a/b/c:1
      args:
        - --a
      env:
        - name: A
          value: '1'
unheardOf: true
"""


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def test_a_job_file_has_its_fields_in_the_order_in_which_people_read_them() -> None:
    assert proposal.job_text(ImportedJob("a", SPEC)) == HEAD + TEXT


def test_labels_and_a_key_make_it_a_message_and_a_study_a_tuning_job() -> None:
    labelled = ImportedJob("a", SPEC, labels={"b": "c"}, encryption_key="k")
    assert proposal.job_text(labelled) == (
        f"{HEAD}labels:\n  b: c\nencryptionSpec:\n  kmsKeyName: k\njobSpec:\n{indented(TEXT)}"
    )
    study = {"studySpec": {"metrics": []}, "maxTrialCount": 3, "displayName": "d"}
    assert proposal.job_text(ImportedJob("a", SPEC, study)) == (
        f"{HEAD}displayName: d\nmaxTrialCount: 3\nstudySpec:\n  metrics: []\ntrialJobSpec:\n"
        f"{indented(TEXT)}"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a\nb\n", "x: |\n  a\n  b\n"),
        ("a b", "x: a b\n"),
        ("1", "x: '1'\n"),
        (Scalar("0x1F"), "x: 0x1F\n"),
        (Scalar("1e-3"), "x: 1e-3\n"),
        ("Größe", "x: Größe\n"),
        (None, "x: null\n"),
    ],
)
def test_texts_of_several_lines_are_blocks_and_scalars_stay_as_they_were(
    value: Any, written: str
) -> None:
    assert proposal.job_text(ImportedJob("a", {"x": value})) == HEAD + written


def test_a_part_that_is_there_twice_is_written_twice() -> None:
    shared = ["--a"]
    text = proposal.job_text(ImportedJob("a", {"args": shared, "command": shared}))
    assert text == f"{HEAD}command:\n  - --a\nargs:\n  - --a\n"


def test_what_is_open_is_told_once_and_apart_from_what_is_guessed() -> None:
    spec = {"a": ["<YOUR_A>-<B>", "x"], "b": {"c": "<B>", "d": 3}}
    job = ImportedJob("j", spec, labels={"l": "<L>"}, remarks=["r", "r"], notes=[
        Note("g", "p, line 1", guessed=True), Note("o", "p, line 2"),
    ])  # fmt: skip
    assert proposal.open_names(job) == ["<YOUR_A>", "<B>", "<L>"]
    found = Proposal(Path(), "dev", jobs=[job], remarks=["of all"]).summary()
    assert found == {
        "jobs": [
            {
                "name": "j",
                "backend": "vertex",
                "read": ["a[1]", "b.d"],
                "guessed": ["g (p, line 1)"],
                "open": ["a[0]: <YOUR_A>-<B>", "b.c: <B>", "o (p, line 2)"],
                "remarks": ["r"],
            }
        ],
        "remarks": ["of all"],
    }
    study = ImportedJob("j", {"x": 1}, {"maxTrialCount": "<N>"})
    [told] = Proposal(Path(), "dev", jobs=[study]).summary()["jobs"]
    assert (told["read"], told["open"]) == (["spec.x"], ["maxTrialCount: <N>"])


def test_a_diff_has_new_files_changed_ones_and_copies(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text("a\nb\n")
    (tmp_path / "odd.yaml").write_bytes(b"\xff\n")
    made = Proposal(tmp_path, "dev", files={
        "new.yaml": "x\n", "old.yaml": "a\nc\n", "same.yaml": "", "data.csv": b"1" * 1234,
        "odd.yaml": "x\n",
    })  # fmt: skip
    assert list(made.diff()) == [
        "--- /dev/null\n", "+++ new.yaml\n", "@@ -0,0 +1 @@\n", "+x\n",
        "--- old.yaml\n", "+++ old.yaml\n", "@@ -1,2 +1,2 @@\n", " a\n", "-b\n", "+c\n",
        "--- /dev/null\n", "+++ data.csv\n", "@@ a copy of 1,234 bytes @@\n",
        "--- odd.yaml\n", "+++ odd.yaml\n", "@@ -1 +1 @@\n", "-\ufffd\n", "+x\n",
    ]  # fmt: skip
    assert made.shown == {
        "new.yaml": None, "old.yaml": b"a\nb\n", "same.yaml": None, "data.csv": None,
        "odd.yaml": b"\xff\n",
    }  # fmt: skip


@pytest.mark.parametrize("change", ["edited", "made", "removed"])
def test_nothing_is_written_over_what_changed_since_the_diff(tmp_path: Path, change: str) -> None:
    (tmp_path / "old").write_text("a")
    made = Proposal(tmp_path, "dev", files={"old": "b", "sub/new": "c", "data": b"\x00"})
    list(made.diff())
    if change == "removed":
        (tmp_path / "old").unlink()
    else:
        (tmp_path / ("old" if change == "edited" else "data")).write_text("other")
    with pytest.raises(CommandError, match="was changed meanwhile; nothing is written"):
        made.write()
    assert not (tmp_path / "sub").exists()


def test_what_is_written_is_what_was_shown(tmp_path: Path) -> None:
    made = Proposal(tmp_path, "dev", files={"sub/new": "é\n", "data": b"\x00"})
    list(made.diff())
    made.write()
    assert (tmp_path / "sub/new").read_bytes() == "é\n".encode()
    assert (tmp_path / "data").read_bytes() == b"\x00"


def test_nothing_is_written_outside_of_the_checkout(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (root / "link").symlink_to(tmp_path)
    for file in ("../x", "link/x", ".git/hooks/x"):
        with pytest.raises(CommandError):
            proposal.write_below(root, {file: "x"})
    assert list(tmp_path.iterdir()) == [root]


def source(*jobs: ImportedJob, **more: Any) -> SourceContents:
    return SourceContents(jobs=list(jobs), **more)


def job(name: str, **more: Any) -> ImportedJob:
    spec = {"workerPoolSpecs": [{"containerSpec": {"imageUri": "a/b/c:1"}}]}
    return ImportedJob(name, spec, **more)


def test_without_a_stack_jobs_are_files_of_their_own_names(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text("")
    made = proposal.propose(source(job("a"), job("a"), job("b")), tmp_path, tmp_path)
    assert [each.name for each in made.jobs] == ["a-2", "a-3", "b"]
    assert made.job_files == [f"jobs/{name}.yaml" for name in ("a-2", "a-3", "b")]
    assert list(made.files) == made.job_files
    assert made.remarks == ["there is no stack here: job files alone. `vt init` makes a stack"]


def test_without_a_stack_jobs_of_batch_are_told_by_name(tmp_path: Path) -> None:
    jobs = [job("a", backend="batch"), job("b"), job("c", backend="batch")]
    made = proposal.propose(source(*jobs, remarks=["first"]), tmp_path, tmp_path)
    assert made.remarks == [
        "first",
        "there is no stack here: job files alone. `vt init` makes a stack",
        "backend: batch in a stack file runs them on Google Batch, as the source does: a, c",
    ]


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "a").mkdir(parents=True)
    (tmp_path / "jobs/a/task.py").write_text("mine")
    with pytest.raises(CommandError, match=r"jobs/a/task\.py is there already"):
        proposal.propose(source(job("a", script="task.py")), tmp_path, tmp_path)
