"""Training pipelines on gRPC: generic handlers, because the library brings client stubs only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import grpc
from google.protobuf import empty_pb2

from localgcp.access.grpc_server import answer
from localgcp.pipelines.service import (
    PipelineService,
    pipeline_service,
    training_pipeline,
)

SERVICE: Final = "google.cloud.aiplatform.v1.PipelineService"


def handler(service: PipelineService) -> grpc.GenericRpcHandler:
    """The service for a gRPC server."""

    def unary(
        method: Callable[[Any], Any], request: Any, write: Callable[..., bytes]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.unary_unary_rpc_method_handler(
            lambda sent, context: answer(lambda: method(sent), context),
            request_deserializer=request.deserialize,
            response_serializer=write,
        )

    pipeline = training_pipeline.TrainingPipeline.serialize
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "CreateTrainingPipeline": unary(
                service.create_training_pipeline,
                pipeline_service.CreateTrainingPipelineRequest,
                pipeline,
            ),
            "GetTrainingPipeline": unary(
                service.get_training_pipeline,
                pipeline_service.GetTrainingPipelineRequest,
                pipeline,
            ),
            "ListTrainingPipelines": unary(
                service.list_training_pipelines,
                pipeline_service.ListTrainingPipelinesRequest,
                pipeline_service.ListTrainingPipelinesResponse.serialize,
            ),
            "CancelTrainingPipeline": unary(
                service.cancel_training_pipeline,
                pipeline_service.CancelTrainingPipelineRequest,
                empty_pb2.Empty.SerializeToString,
            ),
        },
    )
