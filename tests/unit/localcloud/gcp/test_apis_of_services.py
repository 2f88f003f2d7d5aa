"""Which API each type of resource needs, how messages call it, and whose a resource is."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.inventory import vpc
from localgcp.inventory.store import BUCKET
from tests.unit.localcloud.gcp.estate import PROJECT, Estate

IAM = ("iam", "Identity and Access Management (IAM) API")
COMPUTE = ("compute", "Compute Engine API")
MONITORING = ("monitoring", "Cloud Monitoring API")
KMS = ("cloudkms", "Cloud Key Management Service (KMS) API")
TAGS = ("cloudresourcemanager", "Cloud Resource Manager API")
VERTEX = ("aiplatform", "Vertex AI API")
STORAGE = ("storage", "Cloud Storage API")


@pytest.mark.parametrize(
    ("token", "title", "api"),
    [
        ("gcp:serviceaccount/account:Account", "service account", IAM),
        ("gcp:projects/iAMCustomRole:IAMCustomRole", "Custom Project Role", IAM),
        ("gcp:iam/workloadIdentityPool:WorkloadIdentityPool", "WorkloadIdentityPool", IAM),
        ("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
         "WorkloadIdentityPoolProvider", IAM),
        ("gcp:iam/denyPolicy:DenyPolicy", "DenyPolicy", IAM),
        (BUCKET, "Bucket", STORAGE),
        ("gcp:storage/bucketObject:BucketObject", "object", STORAGE),
        ("gcp:artifactregistry/repository:Repository", "Repository",
         ("artifactregistry", "Artifact Registry API")),
        ("gcp:secretmanager/secret:Secret", "Secret", ("secretmanager", "Secret Manager API")),
        (vpc.NETWORK, "Network", COMPUTE),
        (vpc.SUBNETWORK, "Subnetwork", COMPUTE),
        ("gcp:compute/firewall:Firewall", "Firewall", COMPUTE),
        ("gcp:compute/router:Router", "Router", COMPUTE),
        ("gcp:compute/routerNat:RouterNat", "RouterNat", COMPUTE),
        (vpc.ADDRESS, "GlobalAddress", COMPUTE),
        (vpc.ATTACHMENT, "NetworkAttachment", COMPUTE),
        (vpc.CONNECTION, "Service Networking Connection",
         ("servicenetworking", "Service Networking API")),
        ("gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig",
         "NetworkPeeringRoutesConfig", COMPUTE),
        (vpc.HOST_PROJECT, "Shared VPC Host", COMPUTE),
        (vpc.SERVICE_PROJECT, "Shared VPC Service Project", COMPUTE),
        ("gcp:compute/reservation:Reservation", "Reservation", COMPUTE),
        ("gcp:compute/instance:Instance", "instance", COMPUTE),
        ("gcp:tags/tagKey:TagKey", "TagKey", TAGS),
        ("gcp:tags/tagValue:TagValue", "TagValue", TAGS),
        ("gcp:tags/tagBinding:TagBinding", "TagBinding", TAGS),
        ("gcp:kms/keyRing:KeyRing", "KeyRing", KMS),
        ("gcp:kms/cryptoKey:CryptoKey", "CryptoKey", KMS),
        ("gcp:logging/metric:Metric", "Metric", ("logging", "Cloud Logging API")),
        ("gcp:monitoring/notificationChannel:NotificationChannel", "NotificationChannel",
         MONITORING),
        ("gcp:monitoring/alertPolicy:AlertPolicy", "AlertPolicy", MONITORING),
        ("gcp:monitoring/dashboard:Dashboard", "Dashboard", MONITORING),
        ("gcp:billing/budget:Budget", "Budget", ("billingbudgets", "Cloud Billing Budget API")),
        ("gcp:vertex/aiTensorboard:AiTensorboard", "Tensorboard", VERTEX),
        ("gcp:vertex/aiEndpoint:AiEndpoint", "Endpoint", VERTEX),
    ],
)  # fmt: skip
def test_nothing_is_made_while_its_api_is_off(
    estate: Estate, token: str, title: str, api: tuple[str, str]
) -> None:
    cloud, kind = estate.kind(token)
    inputs: dict[str, Any] = {"hostProject": PROJECT} if token == vpc.SERVICE_PROJECT else {}
    if token == vpc.CONNECTION:
        inputs = {"network": "vpc"}
    with pytest.raises(CloudError) as refused:
        kind.create(cloud, inputs)
    service, called = api
    assert str(refused.value) == (
        f"Error creating {title}: googleapi: Error 403: {called} has not been used in project "
        f"{PROJECT} before or it is disabled. Enable it by adding {service}.googleapis.com to the "
        "stack's gcp.projects.Service resources, and make this resource depend on it, "
        "SERVICE_DISABLED"
    )


@pytest.mark.parametrize(
    ("token", "id_", "owner"),
    [
        ("gcp:projects/service:Service", "local-a/iam.googleapis.com", "local-a"),
        ("gcp:projects/service:Service", "iam.googleapis.com", PROJECT),
        ("gcp:compute/routerNat:RouterNat", "local-a/us-west1/r/n", "local-a"),
        ("gcp:compute/routerNat:RouterNat", "projects/local-a/regions/x/routers/r/n", "local-a"),
        ("gcp:compute/routerNat:RouterNat", "r/n", PROJECT),
        (vpc.HOST_PROJECT, "local-a", "local-a"),
        (vpc.SERVICE_PROJECT, "local-a/local-b", "local-a"),
        ("gcp:secretmanager/secret:Secret", "projects/local-a/secrets/s", "local-a"),
        ("gcp:secretmanager/secret:Secret", "s", PROJECT),
        ("gcp:logging/metric:Metric", "m", PROJECT),
        ("gcp:projects/iAMMember:IAMMember", "local-a/roles/viewer/group:g", "local-a"),
        ("gcp:secretmanager/secretIamMember:SecretIamMember",
         "projects/local-a/secrets/s roles/viewer group:g", "local-a"),
    ],
)  # fmt: skip
def test_the_id_of_a_resource_says_whose_it_is(
    estate: Estate, token: str, id_: str, owner: str
) -> None:
    cloud, kind = estate.kind(token)
    assert kind.owner(cloud, id_) == owner
