"""What a declared job says of itself, under Pulumi's mocks."""

import asyncio

import pulumi
import pytest

from vertex_training.customjob.request.job_file import JobRequest, Submission
from vertex_training.customjob.resource import CustomJob

NAME = "projects/1/locations/us-central1/customJobs/42"


class Mocks(pulumi.runtime.Mocks):
    """Answers as the provider does."""

    def new_resource(self, args):
        return NAME, dict(args.inputs) | {"state": "JOB_STATE_PENDING"}

    def call(self, args):
        raise AssertionError(args.token)


def declared(project, **changes):
    """Outputs of a job of this project, as a program would read them."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Mocks(), "vertex-training", "dev")
    found = {}

    @pulumi.runtime.test
    def run():
        place = Submission(project, "us-central1", "dev", "titanic", 1)
        job = CustomJob(
            "titanic",
            request=JobRequest(place, "id1", "{}", frozenset(), ()),
            labels={},
            control_bucket="control",
            on_delete="keep",
            opts=pulumi.ResourceOptions(),
            **changes,
        )
        values = pulumi.Output.all(
            name=job.name, state=job.state, console=job.console_url, logs=job.log_url
        )
        return values.apply(found.update)

    run()
    return found


def test_a_job_refuses_arguments_it_does_not_have():
    with pytest.raises(TypeError, match="nonsense"):
        declared("local-training", nonsense=1)
