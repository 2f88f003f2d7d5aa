"""The Google services of the stand-in: ids, computed values, and what each service refuses.

=============  =========================================================================
``base``       ``ResourceType``: what a row of a type says, and its hooks
``identity``   APIs and roles of a project, accounts, workload identity pools
``grants``     IAM grants: one member, one role, one resource
``denial``     deny policies and tags
``storage``    Cloud Storage buckets and objects, Artifact Registry repositories
``secrets``    Secret Manager secrets, Cloud KMS key rings and keys
``vertex``     Vertex AI endpoints, TensorBoards; alerts, dashboards, budgets
``compute``    behavior that all types of Compute Engine share
``networks``   networks, subnetworks, egress, attachments, Shared VPC
``peerings``   allocated ranges, connections to Google's services, their routes
``machines``   reservations and instances
=============  =========================================================================

To add a type, add its properties to ``schema.json``, and a row to ``TYPES`` of a module here: of
``ResourceType`` if the schema says everything, else of a class with its hooks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from localgcp.gcp import schema as schemas
from localgcp.gcp.schema import TypeSchema
from localgcp.gcp.services import (
    denial,
    grants,
    identity,
    machines,
    networks,
    peerings,
    secrets,
    storage,
    vertex,
)
from localgcp.gcp.services.base import ResourceType

RESOURCE_TYPES: Final[dict[str, ResourceType]] = {
    **identity.TYPES,
    **grants.TYPES,
    **denial.TYPES,
    **storage.TYPES,
    **secrets.TYPES,
    **vertex.TYPES,
    **networks.TYPES,
    **peerings.TYPES,
    **machines.TYPES,
}


def find(token: str) -> tuple[TypeSchema, ResourceType] | None:
    """A resource type: its schema, with its traits, and its behavior; None if there is none."""
    schema = schemas.find(token)
    if schema is None:
        return None
    kind = RESOURCE_TYPES[token]
    return replace(schema, traits=kind), kind
