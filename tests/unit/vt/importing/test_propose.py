"""What an import changes of a stack: whole files, and what it copies from beside the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.vt.importing.test_references import stack
from vertex_training.settings.model import Settings
from vertex_training_cli.engine import paths
from vertex_training_cli.importing import proposal
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.proposal import Proposal, propose
from vertex_training_cli.importing.references import StackEntries
from vertex_training_cli.importing.sources import SourceContents

BEFORE = "config:\n  gcp:project: acme-ml-dev  # ours\n"
OWN: dict[str, Any] = {
    "serviceAccounts": {"trainer": {}}, "packages": {"code": {"path": "jobs/code"}},
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (folder := tmp_path / "checkout").mkdir()
    (folder / "Pulumi.dev.yaml").write_text(BEFORE)
    (folder / "jobs").mkdir()
    return folder


def of(root: Path, *jobs: ImportedJob, settings: Settings | None = None, **more: Any) -> Proposal:
    found = settings or stack(**OWN)
    (root.parent / "beside").mkdir(exist_ok=True)
    contents = SourceContents(jobs=list(jobs), **more)
    return propose(contents, root.parent / "beside", root, "dev", found)


def job(name: str = "train", args: list[str] | None = None, **more: Any) -> ImportedJob:
    task = {"imageUri": "a/b/c:1", **({"args": args} if args else {})}
    return ImportedJob(name, {"workerPoolSpecs": [{"containerSpec": task}]}, **more)


def script(name: str = "train", **more: Any) -> ImportedJob:
    task = {"executorImageUri": "e:1"}
    return ImportedJob(name, {"workerPoolSpecs": [{"pythonPackageSpec": task}]}, **more)


@pytest.mark.parametrize(
    ("project", "remarks"),
    [
        ("", []),
        ("acme-ml-dev", []),
        ("<YOUR_PROJECT>", []),
        (
            "acme-prod",
            [("the source submits the job to project acme-prod; the stack uses acme-ml-dev")],
        ),
    ],
)
def test_a_project_of_its_own_is_told(root: Path, project: str, remarks: list[str]) -> None:
    [made] = of(root, job(project=project)).jobs
    assert made.remarks == remarks


PLACEHOLDER = 'raise SystemExit("jobs/my_job/task_1.py is a placeholder for the training script")\n'


def test_a_script_becomes_a_package_of_the_stack(root: Path) -> None:
    (root.parent / "beside").mkdir()
    (root.parent / "beside/train-it.py").write_text("print(1)\n")
    made = of(
        root, script("first", script="./train-it.py", requirements=("a==1", "b")),
        script("second", script="src/task.py"), script("my-job", script="1.py"),
        files={"other/task.py": "print(2)\n"},
    )  # fmt: skip
    assert {file: text for file, text in made.files.items() if not file.endswith(".yaml")} == {
        "jobs/first/train_it.py": "print(1)\n",
        "jobs/first/train_it.requirements.txt": "a==1\nb\n",
        "jobs/second/task.py": "print(2)\n",
        "jobs/my_job/task_1.py": PLACEHOLDER,
    }
    assert [each.spec["workerPoolSpecs"][0]["pythonPackageSpec"] for each in made.jobs] == [
        {
            "executorImageUri": "e:1",
            "packageUris": [f"${{packages.{name}}}"],
            "pythonModule": module,
        }
        for name, module in (("first", "train_it"), ("second", "task"), ("my-job", "task_1"))
    ]
    assert "first: {path: jobs/first/train_it.py}" in str(made.files["Pulumi.dev.yaml"])
    assert [each.remarks for each in made.jobs] == [
        [], [],
        [(
            "the script 1.py does not exist beside the source: write the training script to "
            "jobs/my_job/task_1.py, which is a placeholder"
        )],
    ]  # fmt: skip


def test_a_secret_in_a_script_is_told(root: Path) -> None:
    code = 'password = "hunter2hunter2"\n'
    [made] = of(root, script(script="t.py"), files={"t.py": code}).jobs
    assert made.remarks == [
        "jobs/train/t.py, or its requirements, contains a likely secret: read it from "
        "Secret Manager instead, before you commit"
    ]


def place(root: Path, *names: str) -> tuple[dict[str, bytes], dict, list[str]]:
    entries, found = StackEntries(), job()
    entries.add("buckets", "b", {})
    (root.parent / "beside").mkdir(exist_ok=True)
    beside = root.parent / "beside"
    copies = proposal.place_objects(found, {"b": set(names)}, beside, root, entries)
    value = entries.added["vertex-training:buckets", "b"]
    return copies, value.get("objects", {}), found.remarks


MISSING = (
    "the job reads object {0} of bucket 'b', but no file {0} is beside the source: copy the "
    "file to {0} beside the source, then import again"
)


def test_a_file_beside_the_source_is_copied_and_one_that_is_not_is_told(root: Path) -> None:
    (beside := root.parent / "beside" / "sub").mkdir(parents=True)
    (beside / "a.csv").write_bytes(b"1")
    (beside.parent / "b.csv").write_bytes(b"2")
    (beside.parent / ".hidden").write_bytes(b"3")
    (beside.parent / "key.txt").write_bytes(b"password=hunter2")
    found = place(root, "sub/a.csv", "elsewhere/b.csv", ".hidden", "key.txt", "none.csv")
    assert found == (
        {"jobs/data/b/elsewhere/b.csv": b"2", "jobs/data/b/sub/a.csv": b"1"},
        {"elsewhere/b.csv": "jobs/data/b/elsewhere/b.csv", "sub/a.csv": "jobs/data/b/sub/a.csv"},
        [
            MISSING.format(".hidden"),
            "the job reads key.txt, which is not copied because it contains a likely secret",
            MISSING.format("none.csv"),
        ],
    )


def test_nothing_of_the_home_itself_is_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "beside").mkdir()
    (root.parent / "beside/a.csv").write_bytes(b"1")
    monkeypatch.setenv("HOME", str(root.parent / "beside"))
    assert place(root, "a.csv") == ({}, {}, [MISSING.format("a.csv")])


DIGEST = f"sha256:{'1' * 64}"


def test_files_that_a_stack_names_are_those_below_the_checkout() -> None:
    settings = stack(
        include=["shared.yaml"], jobs={"a": {"file": "jobs/a.yaml"}},
        packages={"p": {"path": "jobs/p"}}, buckets={"b": {"objects": {"x": "data/x"}}},
        images={"i": {"context": "images/i", "include": ["jobs/lib"]}, "j": {"digest": DIGEST}},
    )  # fmt: skip
    assert paths.named_files(settings) == [
        "shared.yaml", "jobs/a.yaml", "jobs/p", "data/x", "jobs/lib", "images/i",
    ]  # fmt: skip
    outside = stack().model_copy(update={"include": ["/etc/x", "../x", "a/../x", "a"]})
    assert paths.named_files(outside) == ["a"]


def test_a_rehearsal_has_the_stack_its_files_and_the_proposal(root: Path) -> None:
    (root / "jobs/old.yaml").write_text("old")
    (root / "data/sub").mkdir(parents=True)
    (root / "data/sub/x").write_text("x")
    (root / "alone").write_text("y")
    (root / "other").write_text("z")
    made = Proposal(root, "dev", files={"jobs/new.yaml": "new"}, named=["data", "alone", "none"])
    with proposal.rehearsal(made) as folder:
        found = {
            str(path.relative_to(folder)): path.read_text()
            for path in Path(folder).rglob("*") if path.is_file()
        }  # fmt: skip
    assert found == {
        "Pulumi.dev.yaml": BEFORE, "jobs/old.yaml": "old", "jobs/new.yaml": "new",
        "data/sub/x": "x", "alone": "y",
    }  # fmt: skip
    assert not (root / "jobs/new.yaml").exists()
