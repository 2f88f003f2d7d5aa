"""What is uploaded and sent of a prepared run, and what of it goes to which service."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions

from tests.unit.infra.stacks import BASE
from tests.unit.vt.run.test_prepared_runs import CHANGES, IMAGE, JOB, jobs
from vertex_training.customjob import provider
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.request.job_file import Submission
from vertex_training.errors import CommandError, OperatorError
from vertex_training.plan.packages import build_all
from vertex_training.stack import Stack, read_settings
from vertex_training_cli.run import submission
from vertex_training_cli.run.submission import PreparedRun

JOB_NAME = "projects/1/locations/us-central1/customJobs/7"
CODE = JOB.replace(
    f"  containerSpec:\n    imageUri: {IMAGE}\n    args: [--a=1]\n",
    "  pythonPackageSpec:\n"
    "    executorImageUri: us-docker.pkg.dev/vertex-ai/training/pytorch-cpu.2-4.py310:latest\n"
    '    packageUris: ["${packages.code}"]\n'
    "    pythonModule: code.task\n",
)
MORE = {"packages": {"code": {"path": "code"}, "other": {"path": "other"}}}


def stack_in(folder: Path, text: str, **changes: Any) -> Stack:
    """A stack with a job ``train`` of this text, and these changes."""
    (folder / "train.yaml").write_text(text)
    settings = read_settings(BASE | CHANGES | changes, folder)
    paths = {key: each.path for key, each in settings.packages.items()}
    return Stack(settings, folder, build_all(paths, folder))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("code", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "task.py").write_text(f"print({name!r})\n")
    return tmp_path


def test_a_run_takes_along_the_packages_that_its_file_names(root: Path) -> None:
    stack = stack_in(root, CODE, **MORE)
    package = stack.packages["code"]
    run = submission.prepare(stack, jobs(), "train", [])
    uri = f"gs://acme-ml-prod-staging-prod/packages/{package.file}"
    assert run.uploads == {uri: package.content}
    [pool] = run.request.message["jobSpec"]["workerPoolSpecs"]
    assert pool["pythonPackageSpec"]["packageUris"] == [uri]


class Provider:
    """The program's provider, which keeps what it is given."""

    given: list[dict[str, Any]]

    def create(self, inputs: dict[str, Any]) -> Any:
        self.given.append(inputs)
        return SimpleNamespace(id=JOB_NAME)


class Bucket:
    """A client of Cloud Storage, its buckets and objects: what is written."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.asked = error, list[Any]()

    def __call__(self, project: str) -> Bucket:
        self.asked.append(project)
        return self

    def bucket(self, name: str) -> Bucket:
        self.asked.append(name)
        return self

    def blob(self, name: str) -> Bucket:
        self.asked.append(name)
        return self

    def upload_from_string(self, content: bytes, kind: str, *, if_generation_match: int) -> None:
        self.asked.append((content, kind, if_generation_match))
        if self.error:
            raise self.error


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the provider is given."""
    monkeypatch.setattr(Provider, "given", [], raising=False)
    monkeypatch.setattr(provider, "CustomJobProvider", Provider)
    return Provider.given


@pytest.mark.parametrize("error", [None, exceptions.PreconditionFailed("it is there")])
def test_packages_are_written_once_and_the_job_is_kept_by_its_record(
    root: Path, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    bucket = Bucket(error)
    monkeypatch.setattr(submission, "storage_client", bucket)
    team = {
        "teams": {"vision": {"labels": {"cost": "7"}}},
        "serviceAccounts": {"trainer": {"writes": ["artifacts"], "team": "vision"}},
        "labels": {"env": "prod"},
    }
    stack = stack_in(root, JOB, **team)
    request = submission.prepare(stack, jobs(("run_train", "1")), "train", []).request
    run = PreparedRun(request, (), {"gs://staging/a/code.tar.gz": b"gz"})
    assert submission.submit(run, stack) == JOB_NAME
    assert bucket.asked == [
        "acme-ml-prod", "staging", "a/code.tar.gz", (b"gz", "application/gzip", 0),
    ]  # fmt: skip
    assert sent == [
        {
            "submission": {
                "project": "acme-ml-prod", "region": "us-central1", "stack": "prod",
                "job": "run_train", "run": 2,
            },
            "requestId": request.request_id,
            "request": request.body,
            "options": {
                "labels": {"env": "prod", "team": "vision", "cost": "7"},
                "controlBucket": "acme-ml-prod-control-prod",
                "onDelete": "keep",
            },
        }
    ]  # fmt: skip


def test_what_batch_tells_of_a_job_goes_with_it(root: Path, sent: list[dict[str, Any]]) -> None:
    stack = stack_in(root, JOB)
    told = ({"pubsubTopic": "projects/p/topics/t"},)
    request: Any = SimpleNamespace(
        submission=Submission("p", "r", "s", "run_x", 1), kind=BATCH_JOB, subnet="", body="{}",
        request_id="id", account="", notifications=told, filled_in={},
    )  # fmt: skip
    submission.submit(PreparedRun(request, (), {}), stack)
    [given] = sent
    assert given["options"]["notifications"] == list(told)
    assert given["submission"]["backend"] == "batch"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (exceptions.Forbidden("no right"), "no right"),
        (exceptions.RetryError("too late", None), "too late"),
    ],
)
def test_a_package_that_cannot_be_written_is_told_and_nothing_is_sent(
    root: Path, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, error: Any, text: str
) -> None:
    monkeypatch.setattr(submission, "storage_client", Bucket(error))
    with pytest.raises(CommandError) as failed:
        submission.submit(PreparedRun(None, (), {"gs://b/x": b""}), stack_in(root, JOB))  # type: ignore[arg-type]
    assert str(failed.value) == (
        f"cannot write gs://b/x: {text} Hint: `vt run` requires roles/storage.objectUser on the "
        "bucket"
    )
    assert sent == []


def test_a_bucket_that_cannot_be_asked_for_is_told_when_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: str) -> None:
        raise OperatorError("no credentials")

    monkeypatch.setattr(submission, "Objects", refuse)
    assert submission.has_bucket("p", "b", "7") is True
