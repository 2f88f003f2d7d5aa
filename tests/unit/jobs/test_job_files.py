"""The job files of this repository: right, and each with the code it names."""

import pytest

from tests.fixture_project import SAMPLE_JOBS, sample

SCHEMA = "# yaml-language-server: $schema=job.schema.json"


@pytest.fixture(params=SAMPLE_JOBS)
def path(request):
    return sample(f"{request.param}.yaml")


def test_a_job_file_begins_with_the_schema_that_editors_use(path):
    assert path.read_text("utf-8").splitlines()[0] == SCHEMA
