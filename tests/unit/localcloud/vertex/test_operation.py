"""What the service says of a job and of a deletion beside the state."""

from google.cloud import aiplatform_v1 as vertex

from tests.unit.localcloud.conftest import Cloud, command_job


def test_a_job_that_ended_was_changed_then(cloud: Cloud) -> None:
    job = cloud.run(command_job("true"))
    assert job.create_time < job.end_time <= job.update_time


def test_a_deletion_is_an_operation_with_its_own_metadata(cloud: Cloud) -> None:
    job = cloud.run(command_job("true"))
    operation = cloud.client.delete_custom_job(name=job.name)
    found = cloud.client.get_operation({"name": operation.operation.name})
    assert found.metadata.Is(
        vertex.DeleteOperationMetadata.pb(vertex.DeleteOperationMetadata()).DESCRIPTOR
    )
    assert found.name.startswith(job.name.rpartition("/customJobs/")[0] + "/operations/")
