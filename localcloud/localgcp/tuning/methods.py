"""Methods of the job service about tuning jobs: what answers, reads and writes their messages."""

from __future__ import annotations

from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localgcp.tuning.service import TuningService
from localgcp.vertex.grpc_front import Parts
from vertex_training.customjob.google import vertex_api


def methods(service: TuningService) -> dict[str, Parts]:
    """For ``grpc_front.serve``: they pass the same hooks as those about CustomJobs."""
    written = vertex_api.HyperparameterTuningJob.serialize
    return {
        "CreateHyperparameterTuningJob": (
            service.create,
            vertex_api.CreateHyperparameterTuningJobRequest.deserialize,
            written,
        ),
        "GetHyperparameterTuningJob": (
            service.get,
            vertex_api.GetHyperparameterTuningJobRequest.deserialize,
            written,
        ),
        "ListHyperparameterTuningJobs": (
            service.list,
            vertex_api.ListHyperparameterTuningJobsRequest.deserialize,
            vertex_api.ListHyperparameterTuningJobsResponse.serialize,
        ),
        "CancelHyperparameterTuningJob": (
            service.cancel,
            vertex_api.CancelHyperparameterTuningJobRequest.deserialize,
            empty_pb2.Empty.SerializeToString,
        ),
        "DeleteHyperparameterTuningJob": (
            service.delete,
            vertex_api.DeleteHyperparameterTuningJobRequest.deserialize,
            operations_pb2.Operation.SerializeToString,
        ),
    }
