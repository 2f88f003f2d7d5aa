"""The Google services of the stand-in: ids, computed values, and what each service refuses.

================  ====================================================================
``base``          ``ResourceType``: behaviour that most of them share
``projects``      enabled APIs, custom roles
``accounts``      service accounts and service agents
``grants``        IAM grants: one member, one role, one resource
``federation``    workload identity pools and their providers
``denial``        deny policies and tags
``buckets``       Cloud Storage buckets
``objects``       Cloud Storage objects
``registry``      Artifact Registry repositories
``secrets``       Secret Manager secrets
``keys``          Cloud KMS key rings and keys
``observing``     metrics, alerts, dashboards, budgets, TensorBoard
``endpoints``     Vertex AI endpoints
``network``       Compute Engine: networks, Shared VPC, reservations
================  ====================================================================

``RESOURCE_TYPES`` maps each resource type of ``schema.json`` to its class. To add a type, add its
properties there, and a class (or an instance of ``ResourceType``, if the schema says all) here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from localgcp.gcp import schema as schemas
from localgcp.gcp.schema import TypeSchema
from localgcp.gcp.services import denial, federation, keys, observing
from localgcp.gcp.services.accounts import Account, ServiceIdentity
from localgcp.gcp.services.base import ResourceType
from localgcp.gcp.services.buckets import Bucket
from localgcp.gcp.services.endpoints import AiEndpoint
from localgcp.gcp.services.grants import GRANTS
from localgcp.gcp.services.network import compute, peerings, shared_vpc
from localgcp.gcp.services.network.attachments import NetworkAttachment
from localgcp.gcp.services.network.egress import Firewall, Router, RouterNat
from localgcp.gcp.services.network.machines import Instance
from localgcp.gcp.services.network.networks import Network, Subnetwork
from localgcp.gcp.services.network.reservations import Reservation
from localgcp.gcp.services.objects import BucketObject
from localgcp.gcp.services.projects import CUSTOM_ROLE, CustomRole, ProjectService
from localgcp.gcp.services.registry import Repository
from localgcp.gcp.services.secrets import Secret
from localgcp.inventory import vpc
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL, ENDPOINT, TENSORBOARD

RESOURCE_TYPES: Final[dict[str, ResourceType]] = {
    "gcp:projects/service:Service": ProjectService(),
    "gcp:projects/serviceIdentity:ServiceIdentity": ServiceIdentity(),
    "gcp:serviceaccount/account:Account": Account(),
    "gcp:storage/bucket:Bucket": Bucket(),
    "gcp:storage/bucketObject:BucketObject": BucketObject(),
    "gcp:artifactregistry/repository:Repository": Repository(),
    "gcp:secretmanager/secret:Secret": Secret(),
    vpc.NETWORK: Network(),
    vpc.SUBNETWORK: Subnetwork(),
    compute.FIREWALL: Firewall(),
    compute.ROUTER: Router(),
    compute.NAT: RouterNat(),
    vpc.ADDRESS: peerings.GlobalAddress(),
    vpc.ATTACHMENT: NetworkAttachment(),
    vpc.CONNECTION: peerings.Connection(),
    "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig": peerings.PeeringRoutes(),
    vpc.HOST_PROJECT: shared_vpc.HostProject(),
    vpc.SERVICE_PROJECT: shared_vpc.ServiceProject(),
    "gcp:compute/reservation:Reservation": Reservation(),
    compute.INSTANCE: Instance(),
    CUSTOM_ROLE: CustomRole(),
    federation.POOL: federation.Pool(),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": federation.Provider(),
    denial.DENY_POLICY: denial.DenyPolicy(),
    denial.TAG_KEY: denial.Tag(title="TagKey", collection="tagKeys"),
    denial.TAG_VALUE: denial.Tag(title="TagValue", collection="tagValues", parent=denial.TAG_KEY),
    denial.TAG_BINDING: denial.TagBinding(),
    keys.KEY_RING: keys.KeyRing(),
    keys.CRYPTO_KEY: keys.CryptoKey(),
    "gcp:logging/metric:Metric": observing.Metric(),
    CHANNEL: observing.NotificationChannel(),
    ALERT_POLICY: observing.AlertPolicy(),
    "gcp:monitoring/dashboard:Dashboard": observing.Dashboard(),
    BUDGET: observing.Budget(),
    TENSORBOARD: observing.Tensorboard(),
    ENDPOINT: AiEndpoint(),
    **GRANTS,
}


def find(token: str) -> tuple[TypeSchema, ResourceType] | None:
    """A resource type: its schema, with its traits, and its behaviour; None if there is none."""
    schema = schemas.find(token)
    if schema is None:
        return None
    kind = RESOURCE_TYPES[token]
    return replace(schema, traits=kind), kind
