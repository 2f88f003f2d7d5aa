"""The job files of this repository: right, and each with the code it names."""

import json
from pathlib import Path

import pytest

from vertex_training.infra.customjob.kinds import TUNING_JOB
from vertex_training.infra.customjob.request import job_file as spec
from vertex_training.vt.check import placeholders

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "jobs").glob("*.yaml"))
SCHEMA = "# yaml-language-server: $schema=job.schema.json"


def judge(path):
    data = path.read_bytes()
    who = placeholders.submission(path.stem)
    return spec.check_job_file(data, path.name, who, placeholders.table(data))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_job_file_has_no_mistake(path):
    verdict = judge(path)
    assert verdict.errors == ()
    # Of prebuilt images with PyTorch, none is inside its availability any more.
    assert {problem.rule for problem in verdict.warnings} <= {"image-age"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_job_file_begins_with_the_schema_that_editors_use(path):
    assert path.read_text("utf-8").splitlines()[0] == SCHEMA


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_job_file_is_a_request_of_the_official_client(path):
    from google.cloud import aiplatform_v1
    from google.protobuf import json_format

    request = judge(path).request
    kind = getattr(aiplatform_v1, request.kind.message)
    message = kind.pb(kind())
    json_format.ParseDict(json.loads(request.body), message)
    spec = message.trial_job_spec if request.kind is TUNING_JOB else message.job_spec
    assert spec.service_account


def test_every_kind_of_job_has_a_file():
    assert {path.stem for path in FILES} == {
        "arr-coc-a100-reduction",
        "arr-coc-cpu",
        "ddp",
        "flash-attention-h100-any",
        "flash-attention-h100-four-nodes",
        "flash-attention-h100-specific",
        "gemma-finetune-l4",
        "parameter-server",
        "spot-resume",
        "titanic",
        "titanic-image",
        "titanic-t4",
        "titanic-tuning",
        "two-h100",
    }
