"""The resource types of each Google service: ids, computed outputs and errors.

=============  =========================================================================
``base``       ``ResourceType`` with its hooks; common behavior of Compute Engine
``identity``   APIs, roles, service accounts, workload identity pools, deny policies, tags
``grants``     IAM grants of one role to one member on one resource
``storage``    Cloud Storage buckets and objects, Artifact Registry repositories
``secrets``    Secret Manager secrets, Cloud KMS key rings and keys
``vertex``     Vertex AI endpoints, TensorBoards; alerts, dashboards, budgets
``networks``   networks, subnetworks, firewalls, NAT, attachments, Shared VPC
``peerings``   allocated ranges, private connections, peering routes
``machines``   reservations and instances
=============  =========================================================================

To add a type, add its properties to ``schema.json`` and a row to ``TYPES`` of a module of this
folder. Write a subclass of ``ResourceType`` only if the schema does not describe the behavior.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from localgcp.gcp import schema as schemas
from localgcp.gcp.schema import TypeSchema
from localgcp.gcp.services import (
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
    **storage.TYPES,
    **secrets.TYPES,
    **vertex.TYPES,
    **networks.TYPES,
    **peerings.TYPES,
    **machines.TYPES,
}

#: Type token -> name of the API's message in the discovery documents.
MESSAGES: Final[dict[str, str]] = {
    "gcp:artifactregistry/repository:Repository": "artifactregistry.v1.Repository",
    "gcp:billing/budget:Budget": "billingbudgets.v1.GoogleCloudBillingBudgetsV1Budget",
    "gcp:compute/firewall:Firewall": "compute.v1.Firewall",
    "gcp:compute/globalAddress:GlobalAddress": "compute.v1.Address",
    "gcp:compute/instance:Instance": "compute.v1.Instance",
    "gcp:compute/network:Network": "compute.v1.Network",
    "gcp:compute/networkAttachment:NetworkAttachment": "compute.v1.NetworkAttachment",
    "gcp:compute/reservation:Reservation": "compute.v1.Reservation",
    "gcp:compute/router:Router": "compute.v1.Router",
    "gcp:compute/routerNat:RouterNat": "compute.v1.RouterNat",
    "gcp:compute/subnetwork:Subnetwork": "compute.v1.Subnetwork",
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": "iam.v1.WorkloadIdentityPool",
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": (
        "iam.v1.WorkloadIdentityPoolProvider"
    ),
    "gcp:kms/cryptoKey:CryptoKey": "cloudkms.v1.CryptoKey",
    "gcp:kms/keyRing:KeyRing": "cloudkms.v1.KeyRing",
    "gcp:logging/metric:Metric": "logging.v2.LogMetric",
    "gcp:monitoring/alertPolicy:AlertPolicy": "monitoring.v3.AlertPolicy",
    "gcp:monitoring/dashboard:Dashboard": "monitoring.v1.Dashboard",
    "gcp:monitoring/notificationChannel:NotificationChannel": "monitoring.v3.NotificationChannel",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "iam.v1.Role",
    "gcp:secretmanager/secret:Secret": "secretmanager.v1.Secret",
    "gcp:serviceaccount/account:Account": "iam.v1.ServiceAccount",
    "gcp:storage/bucket:Bucket": "storage.v1.Bucket",
    "gcp:tags/tagKey:TagKey": "cloudresourcemanager.v3.TagKey",
    "gcp:tags/tagValue:TagValue": "cloudresourcemanager.v3.TagValue",
    "gcp:vertex/aiEndpoint:AiEndpoint": "aiplatform.v1.GoogleCloudAiplatformV1Endpoint",
    "gcp:vertex/aiTensorboard:AiTensorboard": "aiplatform.v1.GoogleCloudAiplatformV1Tensorboard",
}


def find(token: str) -> tuple[TypeSchema, ResourceType] | None:
    """Return schema and behavior of a resource type; None if the type is not supported."""
    schema = schemas.find(token)
    if schema is None:
        return None
    kind = replace(RESOURCE_TYPES[token], message=MESSAGES.get(token, ""))
    return replace(schema, traits=kind), kind
