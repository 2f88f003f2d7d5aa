"""Cloud Build on gRPC: generic handlers, because the library brings client stubs only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.cloud.devtools import cloudbuild_v1
from google.longrunning import operations_pb2

from localgcp.access.grpc_server import answer
from localgcp.cloudbuild.service import BuildService

SERVICE = "google.devtools.cloudbuild.v1.CloudBuild"


def handler(service: BuildService) -> grpc.GenericRpcHandler:
    """The service for a gRPC server."""

    def unary(
        method: Callable[[Any], Any], read: Callable[..., Any], write: Callable[..., bytes]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: answer(lambda: method(request), context),
            request_deserializer=read,
            response_serializer=write,
        )

    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "CreateBuild": unary(
                service.create_build,
                cloudbuild_v1.CreateBuildRequest.deserialize,
                operations_pb2.Operation.SerializeToString,
            ),
            "GetBuild": unary(
                service.get_build,
                cloudbuild_v1.GetBuildRequest.deserialize,
                cloudbuild_v1.Build.serialize,
            ),
            "ListBuilds": unary(
                service.list_builds,
                cloudbuild_v1.ListBuildsRequest.deserialize,
                cloudbuild_v1.ListBuildsResponse.serialize,
            ),
            "CancelBuild": unary(
                service.cancel_build,
                cloudbuild_v1.CancelBuildRequest.deserialize,
                cloudbuild_v1.Build.serialize,
            ),
        },
    )
