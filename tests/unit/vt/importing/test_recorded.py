"""What a command sent becomes imported jobs: messages, scripts in packages, and uploads."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import LocalCloudError
from localgcp.recorder import RecordedRequest
from tests.unit.vt.importing.test_references import stack
from vertex_training.errors import CommandError
from vertex_training.settings.model import Settings
from vertex_training_cli.importing import recorded
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.sources import SourceContents

PARENT = "projects/p/locations/europe-west4"
SPEC: dict[str, Any] = {
    "workerPoolSpecs": [{"replicaCount": "2", "containerSpec": {"imageUri": "a/b/c:1"}}]
}
READ_SPEC = {"workerPoolSpecs": [{"replicaCount": 2, "containerSpec": {"imageUri": "a/b/c:1"}}]}
TAR = "aiplatform-2026-01-02-03:04:05.678-aiplatform_custom_trainer_script-0.1.tar.gz"
SETUP = "setup(install_requires=('a==1', *['b>2'], 3, 'c\\n'), name='x')"


class Sent:
    """What a command sends to a recorder."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[RecordedRequest] = []
        self.buckets = folder
        self.refused: list[str] = []
        self.ports = ()
        self.broken = ""

    def __call__(self, folder: Path) -> Sent:
        assert folder.name == "recorder"
        return self

    def __enter__(self) -> Sent:
        if self.broken:
            raise LocalCloudError(self.broken)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {"PATH": env["PATH"], "RECORDED": "1"}


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sent:
    (tmp_path / "buckets").mkdir()
    recorder = Sent(tmp_path / "buckets")
    monkeypatch.setattr(recorded, "Recorder", recorder)
    return recorder


def package(path: Path, *files: tuple[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        folder = tarfile.TarInfo("x-0.1/aiplatform_custom_trainer_script/task.py")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_requests_become_jobs_with_what_has_no_place_told(sent: Sent) -> None:
    sent.requests = [
        RecordedRequest("CustomJob", PARENT, {"displayName": "A job", "jobSpec": SPEC}),
        RecordedRequest("CustomJob", PARENT, {"jobSpec": SPEC}),
        RecordedRequest("HyperparameterTuningJob", PARENT, {
            "displayName": "s", "maxTrialCount": 3, "trialJobSpec": SPEC,
            "studySpec": {"parameters": [{"integerValueSpec": {
                "minValue": "-3", "maxValue": "8", "defaultValue": "x"}}]},
        }),
        RecordedRequest("TrainingPipeline", PARENT, {
            "displayName": "p", "labels": {"a": "b"}, "encryptionSpec": {"kmsKeyName": "k"},
            "trainingTaskInputs": SPEC, "inputDataConfig": {}, "modelToUpload": {}, "other": 1,
        }),
    ]  # fmt: skip
    create = "google.cloud.batch.v1.BatchService/CreateJob"
    sent.refused = ["/google.X/Z", f"/{create}", "/google.X/Y", "/google.X/Z"]
    jobs = [
        ImportedJob("a-job", READ_SPEC, region="europe-west4"),
        ImportedJob("job", READ_SPEC, region="europe-west4"),
        ImportedJob("s", READ_SPEC, region="europe-west4", study={
            "maxTrialCount": 3, "displayName": "s", "studySpec": {"parameters": [
                {"integerValueSpec": {"minValue": -3, "maxValue": 8, "defaultValue": "x"}}]},
        }),
        ImportedJob(
            "p", READ_SPEC, labels={"a": "b"}, encryption_key="k", region="europe-west4",
            remarks=[
                "field inputDataConfig is not imported: managed datasets belong to training "
                "pipelines: read the bucket instead",
                "field modelToUpload is not imported: a CustomJob uploads no model: its code "
                "writes the model to AIP_MODEL_DIR",
            ],
        ),
    ]  # fmt: skip
    found = recorded.read("exit 3", None)
    assert found == SourceContents(
        jobs=jobs,
        remarks=[
            "the command called google.X/Y, which --run does not support, and ended with "
            "exit code 3: jobs that it submits later are missing",
            f"Batch job at {create} is not imported. Write a job file with `backend: batch` "
            "(docs/batch.md)",
            "the command called google.X/Z, which --run does not support",
            f"the command called {create}, which --run does not support",
        ],
    )


@pytest.mark.parametrize(
    ("command", "code", "refused", "hint"),
    [
        ("true", 0, [], recorded.NO_NETWORK),
        ("exit 4 # a.py", 4, ["/a", "/a"],
         "the command called a, which --run does not support, and ended with exit code "
         "4: jobs that it submits later are missing; import only the literals of the code: "
         "`vt import a.py`"),
    ],
)  # fmt: skip
def test_a_command_that_sends_no_job_is_refused(
    sent: Sent, command: str, code: int, refused: list[str], hint: str
) -> None:
    sent.refused = refused
    with pytest.raises(CommandError) as told:
        recorded.read(command, None)
    message = f"{command}: the command ended with exit code {code} and submitted no job."
    assert (told.value.message, told.value.hint) == (message, hint)


def test_a_notebook_runs_with_its_files_and_lines_for_the_shell(sent: Sent, tmp_path: Path) -> None:
    cells = [
        "%matplotlib inline\nimport helper\nWORD = helper.WORD",
        "%%writefile made.txt\nkept $WORD\n",
        "%%writefile -a made.txt\nmore\n",
        "lines = !echo {WORD} $WORD $OPEN; cat made.txt",
        "assert lines == ['w w', 'kept $WORD', 'more'], lines",
        "%%bash\necho of bash >> made.txt",
        "%%html\n<b>",
        "import sys\nassert sys.argv[1:] == ['--fast']\nopen('ended', 'w')",
    ]  # fmt: skip
    folder = tmp_path / "note books"
    folder.mkdir()
    (folder / "helper.py").write_text("WORD = 'w'\n")
    code = [{"cell_type": "code", "source": cell} for cell in cells]
    (folder / "a b.ipynb").write_text(json.dumps({"cells": [*code, {"cell_type": "markdown"}]}))
    sent.requests = [RecordedRequest("CustomJob", PARENT, {"jobSpec": SPEC})]
    found = recorded.read(f"'{folder}/a b.ipynb' --fast", None)
    assert (found.remarks, (folder / "ended").exists()) == ([], True)
    assert (folder / "made.txt").read_text() == "kept $WORD\nmore\nof bash\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("none.ipynb", "none.ipynb: No such file"),
        ("python 'a", 'cannot parse --run "python \'a" as a shell line'),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(sent: Sent, command: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        recorded.read(command, None)


def test_a_recorder_that_cannot_start_is_told(sent: Sent) -> None:
    sent.broken = "there is no port"
    with pytest.raises(CommandError) as told:
        recorded.read("true", None)
    assert told.value.message == "there is no port"


NAMES = (
    "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "CLOUDSDK_AI_REGION", "GOOGLE_CLOUD_REGION",
)  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "given", "values"),
    [
        (None, {}, ["", "", "", ""]),
        (stack(), {}, ["acme-ml-dev", "acme-ml-dev", "us-central1", "us-central1"]),
        (stack(), {"GOOGLE_CLOUD_PROJECT": "p"}, ["p", "p", "us-central1", "us-central1"]),
        (stack(), {"CLOUDSDK_AI_REGION": "r"}, ["acme-ml-dev", "acme-ml-dev", "r", "us-central1"]),
    ],
)
def test_code_that_names_no_project_and_region_gets_those_of_the_stack(
    sent: Sent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings | None,
    given: dict[str, str], values: list[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sent, "environment", lambda env: {"PATH": env["PATH"], **given})
    sent.requests = [RecordedRequest("CustomJob", PARENT, {"jobSpec": SPEC})]
    shown = "; ".join(f'echo "${name}"' for name in NAMES)
    recorded.read(f"({shown}) > {tmp_path}/out", settings)
    assert (tmp_path / "out").read_text().splitlines() == values


def test_objects_that_a_command_uploads_are_named(sent: Sent) -> None:
    for name in ("b/z", "a/sub/x.csv", f"a/{TAR}", "a/most", f"c/{TAR}"):
        path = sent.buckets / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"p")
    sent.requests = [RecordedRequest("CustomJob", PARENT, {"jobSpec": SPEC})]
    found = recorded.read("true", None)
    what = (
        "objects that the code uploads to gs://{} are not imported ({}): upload these objects with"
    )
    assert found.remarks == [
        f"{what.format('a', 'most and 1 more')} `gcloud storage cp`",
        f"{what.format('b', 'z')} `gcloud storage cp`",
    ]


def job(*uris: str, name: str = "my-job") -> ImportedJob:
    pools = [{"pythonPackageSpec": {"packageUris": list(uris), "pythonModule": "m"}}, {}, 3]
    return ImportedJob(name, {"workerPoolSpecs": pools})


TASK = "x-0.1/aiplatform_custom_trainer_script/task.py"


def test_a_script_in_a_package_of_the_client_is_taken_with_what_it_requires(tmp_path: Path) -> None:
    package(
        tmp_path / "b/p" / TAR,
        ("x-0.1/other.py", b"no"),
        (TASK, "print('é')\n".encode() + b"\xff"),
        ("x-0.1/setup.py", SETUP.encode()),
        (f"{TASK}.orig", b"no"),
    )
    found, source = job("gs://b/code-1.tar.gz", f"gs://b/p/{TAR}"), SourceContents()
    before = job("gs://b/code-1.tar.gz", f"gs://b/p/{TAR}").spec
    recorded.take_script(found, tmp_path, source)
    assert source == SourceContents(files={"my_job.py": "print('é')\n\ufffd"})
    assert found == ImportedJob("my-job", before, script="my_job.py", requirements=("a==1", "b>2"))


def _write(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_write(b"no archive"), "ReadError"),
        (_write(b"\x1f\x8b\x08\x00cut"), "EOFError"),
        (lambda path: package(path, ("x/setup.py", b"a b")), "SyntaxError"),
        (lambda path: path.symlink_to("/etc/hostname"), "UnsafePathError"),
    ],
)
def test_a_package_that_cannot_be_read_stays_and_is_told(
    tmp_path: Path, make: Callable[[Path], object], kind: str
) -> None:
    (tmp_path / "b").mkdir()
    make(tmp_path / "b" / TAR)
    found, source = job(f"gs://b/{TAR}"), SourceContents()
    recorded.take_script(found, tmp_path, source)
    assert (source, found.script, found.requirements) == (SourceContents(), "", ())
    [remark] = found.remarks
    assert remark == (
        f"cannot read the script in package gs://b/{TAR} ({kind}), so the job keeps the package"
    )


@pytest.mark.parametrize("uri", [f"gs://b/{TAR}", "gs://b/code-0.1.tar.gz"])
def test_a_package_of_another_program_stays(tmp_path: Path, uri: str) -> None:
    package(tmp_path / "b/code-0.1.tar.gz", (TASK, b"print()"))
    found, source = job(uri), SourceContents()
    recorded.take_script(found, tmp_path, source)
    assert (found, source) == (job(uri), SourceContents())


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"replicaCount": "12"}, {"replicaCount": 12}),
        ({"defaultValue": "4"}, {"defaultValue": 4}),
        ([{"a": [{"replicaCount": "1"}]}], [{"a": [{"replicaCount": 1}]}]),
        ({"replicaCount": {"minValue": "1"}}, {"replicaCount": {"minValue": 1}}),
        ("1", "1"),
    ],
)  # fmt: skip
def test_numbers_with_64_bits_are_numbers_again(given: Any, found: Any) -> None:
    assert recorded.whole_numbers(given) == found
