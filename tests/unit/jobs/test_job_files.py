"""The job files of this repository: right, and each with the code it names."""

import json

import pytest

from tests.fixture_project import SAMPLE_JOBS, sample
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.customjob.request import job_file as spec
from vertex_training_cli.check import placeholders

SCHEMA = "# yaml-language-server: $schema=job.schema.json"


@pytest.fixture(params=SAMPLE_JOBS)
def path(request):
    return sample(f"{request.param}.yaml")


def judge(path):
    data = path.read_bytes()
    who = placeholders.submission(path.stem)
    return spec.check_job_file(data, path.name, who, placeholders.table(data))


def test_a_job_file_has_no_mistake(path):
    verdict = judge(path)
    assert verdict.errors == ()
    assert verdict.warnings == ()


def test_a_job_file_begins_with_the_schema_that_editors_use(path):
    assert path.read_text("utf-8").splitlines()[0] == SCHEMA


def test_a_job_file_is_a_request_of_the_official_client(path):
    from google.cloud import aiplatform_v1
    from google.protobuf import json_format

    request = judge(path).request
    kind = getattr(aiplatform_v1, request.kind.message)
    message = kind.pb(kind())
    json_format.ParseDict(json.loads(request.body), message)
    spec = message.trial_job_spec if request.kind is TUNING_JOB else message.job_spec
    assert spec.service_account
