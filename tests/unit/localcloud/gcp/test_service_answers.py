"""What further services fill in, refuse, and call a resource that exists, without a plugin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.gcp.diff import Change
from localgcp.gcp.plan import Settings
from localgcp.inventory import vpc
from localgcp.inventory.store import ACCOUNT, ENDPOINT
from tests.unit.localcloud.gcp.estate import (
    DIGITS,
    LINK,
    NUMBER,
    PROJECT,
    REGION,
    SUBNET,
    TIME,
    VPC,
    Estate,
    told,
)

SERVICE = "gcp:projects/service:Service"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
SECRET = "gcp:secretmanager/secret:Secret"
RING, KEY = "gcp:kms/keyRing:KeyRing", "gcp:kms/cryptoKey:CryptoKey"
INSTANCE = "gcp:compute/instance:Instance"
POOL = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
METRIC = "gcp:logging/metric:Metric"
GRANT = "gcp:storage/bucketIAMMember:BucketIAMMember"
RING_PATH = f"projects/{PROJECT}/locations/us-west1/keyRings/k"
POOL_PATH = f"projects/{PROJECT}/locations/global/workloadIdentityPools/p"
EMAIL = f"trainer@{PROJECT}.iam.gserviceaccount.com"
REPO = {"project": PROJECT, "location": "us-west1", "name": "r",
        "registryUri": f"us-west1-docker.pkg.dev/{PROJECT}/r",
        "createTime": TIME, "updateTime": TIME}  # fmt: skip
MACHINE = {"name": "x", "zone": "us-west1-a", "networkInterfaces": [{"subnetwork": "s"}]}
MADE_MACHINE = {"project": PROJECT, "creationTimestamp": TIME, "zone": "us-west1-a",
                "selfLink": f"{LINK}projects/{PROJECT}/zones/us-west1-a/instances/x",
                "instanceId": DIGITS, "currentStatus": "RUNNING"}  # fmt: skip
POLICIES = [{"id": f"p{index}", "action": "KEEP"} for index in range(11)]


@pytest.fixture
def filled(estate: Estate) -> Estate:
    """With a key ring and a pool beside the network."""
    estate.store.put(RING, RING_PATH, PROJECT, {}, {})
    estate.store.put(POOL, POOL_PATH, PROJECT, {}, {})
    return estate


@pytest.mark.parametrize(
    ("token", "inputs", "made"),
    [
        (SERVICE, {"service": "iam.googleapis.com"}, {"project": PROJECT}),
        (ROLE, {"roleId": "a.b_C", "permissions": ["storage.objects.get"]},
         {"project": PROJECT, "name": f"projects/{PROJECT}/roles/a.b_C", "deleted": False}),
        (REPOSITORY, {"repositoryId": "r", "format": "DOCKER"}, REPO),
        (REPOSITORY, {"repositoryId": "r", "format": "python", "location": "europe",
                      "cleanupPolicies": POLICIES[:10]},
         REPO | {"location": "europe", "registryUri": f"europe-python.pkg.dev/{PROJECT}/r"}),
        *((REPOSITORY, {"repositoryId": "r", "format": each},
           REPO | {"registryUri": f"us-west1-{each.lower()}.pkg.dev/{PROJECT}/r"})
          for each in ("MAVEN", "NPM", "APT", "YUM", "PYTHON", "KFP", "GO", "GENERIC")),
        (SECRET, {"secretId": "s_-1"},
         {"project": PROJECT, "name": f"projects/{NUMBER}/secrets/s_-1", "createTime": TIME,
          "effectiveAnnotations": {}}),
        (SECRET, {"secretId": "s" * 255, "annotations": {"a": "b"}},
         {"project": PROJECT, "name": f"projects/{NUMBER}/secrets/{'s' * 255}",
          "createTime": TIME, "effectiveAnnotations": {"a": "b"}}),
        (RING, {"name": "r", "location": "us"}, {}),
        *((KEY, {"name": "c", "keyRing": RING_PATH, **purpose},
           {"destroyScheduledDuration": "2592000s",
            "primaries": [{"name": f"{RING_PATH}/cryptoKeys/c/cryptoKeyVersions/1",
                           "state": "ENABLED"}]})
          for purpose in ({}, {"purpose": "ENCRYPT_DECRYPT"})),
        (KEY, {"name": "c", "keyRing": RING_PATH, "purpose": "MAC",
               "destroyScheduledDuration": "86400s"},
         {"destroyScheduledDuration": "86400s", "primaries": []}),
        (INSTANCE, MACHINE, MADE_MACHINE),
        (INSTANCE, {**MACHINE, "zone": f"{LINK}projects/{PROJECT}/zones/us-west1-a",
                    "desiredStatus": "TERMINATED",
                    "networkInterfaces": [{"network": "vpc"}, {"subnetwork": SUBNET}],
                    "scheduling": {"maxRunDuration": {"seconds": 30},
                                   "instanceTerminationAction": "DELETE"}},
         MADE_MACHINE | {"currentStatus": "TERMINATED"}),
        (INSTANCE, {**MACHINE, "scheduling": {"maxRunDuration": {"seconds": 10_368_000},
                                              "instanceTerminationAction": "STOP"}}, MADE_MACHINE),
        (PROVIDER, {"workloadIdentityPoolId": "p", "workloadIdentityPoolProviderId": "q",
                    "oidc": {}, "attributeMapping": {"google.subject": "assertion.sub"}},
         {"project": PROJECT, "state": "ACTIVE",
          "name": f"projects/{NUMBER}/locations/global/workloadIdentityPools/p/providers/q"}),
        (vpc.SUBNETWORK, {"name": "t", "network": "vpc", "ipCidrRange": "10.2.0.0/29"},
         {"project": PROJECT, "creationTimestamp": TIME, "gatewayAddress": "10.2.0.1",
          "selfLink": f"{LINK}{REGION}/subnetworks/t", "network": LINK + VPC,
          "region": "us-west1", "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
          "purpose": "PRIVATE", "stackType": "IPV4_ONLY", "subnetworkId": DIGITS}),
        (vpc.SUBNETWORK, {"name": "t", "network": VPC, "ipCidrRange": "16.0.0.0/4", "region": "eu",
                          "purpose": "REGIONAL_MANAGED_PROXY", "stackType": "IPV4_IPV6"},
         {"project": PROJECT, "creationTimestamp": TIME, "gatewayAddress": "16.0.0.1",
          "selfLink": f"{LINK}projects/{PROJECT}/regions/eu/subnetworks/t", "network": LINK + VPC,
          "region": "eu", "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
          "purpose": "REGIONAL_MANAGED_PROXY", "stackType": "IPV4_IPV6",
          "subnetworkId": DIGITS}),
        (METRIC, {"name": "m"}, {}),
        ("gcp:billing/budget:Budget", {"billingAccount": "A"}, {"name": "HEX"}),
        ("gcp:vertex/aiTensorboard:AiTensorboard", {"displayName": "t"},
         {"name": f"projects/{NUMBER}/locations/us-west1/tensorboards/{DIGITS}",
          "project": PROJECT, "createTime": TIME, "updateTime": TIME, "region": "us-west1",
          "blobStoragePathPrefix": "cloud-ai-platform-HEX"}),
        ("gcp:vertex/aiTensorboard:AiTensorboard", {"displayName": "t", "region": "us-east1"},
         {"name": f"projects/{NUMBER}/locations/us-east1/tensorboards/{DIGITS}",
          "project": PROJECT, "createTime": TIME, "updateTime": TIME, "region": "us-east1",
          "blobStoragePathPrefix": "cloud-ai-platform-HEX"}),
        (ENDPOINT, {"name": "12", "location": "us-west1", "dedicatedEndpointEnabled": True},
         {"project": PROJECT, "createTime": TIME, "updateTime": TIME, "etag": DIGITS,
          "dedicatedEndpointDns": f"12.us-west1-{NUMBER}.prediction.vertexai.goog",
          "trafficSplit": "{}"}),
    ],
)  # fmt: skip
def test_a_service_fills_in_what_it_decides(
    filled: Estate, token: str, inputs: Any, made: Any
) -> None:
    found = filled.made(token, **inputs)
    for key, digits in (("name", 16), ("blobStoragePathPrefix", 8)):
        head, _, tail = found.get(key, "").rpartition("-")
        if token != SECRET and len(tail) == digits and set(tail) <= set("0123456789abcdef"):
            found[key] = f"{head}-HEX" if head else "HEX"
    assert found == made


def bad(text: str, reason: str = "badRequest", code: int = 400) -> str:
    return f"Making: googleapi: Error {code}: {text}, {reason}"


def field(name: str, value: Any, reason: str) -> str:
    return bad(f"Invalid value for field 'resource.{name}': '{value}'. {reason}", "invalid")


ID = "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
NEEDED = "The referenced subnetwork resource cannot be found in the region."


@pytest.mark.parametrize(
    ("token", "inputs", "said"),
    [
        *((ROLE, {"roleId": each}, bad(f"The role_id {each} has an invalid form."))
          for each in ("ab", "a" * 65, "a-b", "abc\n")),
        *((ROLE, {"roleId": "abc", "permissions": ["a.b.c", each]},
           bad(f"Permission {each} is not valid."))
          for each in ("a.b", "a.b.c.d", "A.b.c", "a.b.*", "a.b.c\n")),
        *((REPOSITORY, {"repositoryId": each, "format": "DOCKER"},
           bad(f'invalid repository id "{each}": it must match {ID}'))
          for each in ("", "A", "1a", "a-", "a" * 64, "a\n")),
        (REPOSITORY, {"repositoryId": "a" * 63, "format": "ruby"},
         bad('unsupported repository format "RUBY"')),
        (REPOSITORY, {"repositoryId": "a", "format": "GO", "cleanupPolicies": POLICIES},
         bad("a repository has at most 10 cleanup policies")),
        (REPOSITORY, {"repositoryId": "a", "format": "GO", "cleanupPolicies": [
            {"id": "p", "action": "KEEP", "condition": {"a": 1}, "mostRecentVersions": {"b": 1}}]},
         bad('cleanup policy "p" has a condition and most_recent_versions: one of them')),
        (REPOSITORY, {"repositoryId": "a", "format": "GO", "cleanupPolicies": [
            {"id": "p", "action": "DELETE", "mostRecentVersions": {"b": 1}}]},
         bad('cleanup policy "p": most_recent_versions is for KEEP')),
        *((SECRET, {"secretId": each},
           bad(f"Secret ID [{each}] does not match the pattern [^[a-zA-Z0-9_-]{{1,255}}$]."))
          for each in ("", "a.b", "a" * 256, "a\n")),
        (KEY, {"keyRing": "no"}, bad("KeyRing no not found.", "notFound", 404)),
        (INSTANCE, {**MACHINE, "networkInterfaces": [{"network": "vpc"}, {"subnetwork": "no"}]},
         field("networkInterfaces[1].subnetwork", "no", NEEDED)),
        (INSTANCE, {**MACHINE, "zone": "us-east1-b", "networkInterfaces": [{"subnetwork": SUBNET}]},
         field("networkInterfaces[0].subnetwork", SUBNET, NEEDED)),
        (INSTANCE, {**MACHINE, "networkInterfaces": [
            {"subnetwork": "s", "subnetworkProject": "local-host"}]},
         field("networkInterfaces[0].subnetwork", "s", NEEDED)),
        (INSTANCE, {**MACHINE, "networkInterfaces": [{}]},
         field("networkInterfaces[0]", "", "Give network or subnetwork.")),
        (INSTANCE, {**MACHINE, "networkInterfaces": [{"network": "no"}]},
         field("network", "no", "The referenced network resource cannot be found.")),
        *((INSTANCE, {**MACHINE, "scheduling": {"maxRunDuration": {"seconds": each}}},
           field("scheduling.maxRunDuration", each, "Must be between 30 and 10368000 seconds."))
          for each in (29, 10_368_001)),
        (INSTANCE, {**MACHINE, "scheduling": {"instanceTerminationAction": "SLEEP"}},
         field("scheduling.instanceTerminationAction", "SLEEP", "Must be STOP or DELETE.")),
        (PROVIDER, {"workloadIdentityPoolId": "no"},
         bad("Requested entity was not found: "
             f"projects/{PROJECT}/locations/global/workloadIdentityPools/no", "notFound", 404)),
        *((PROVIDER, {"workloadIdentityPoolId": "p", "oidc": {"a": 1}, **mapping},
           bad("The attribute mapping must contain a mapping for google.subject."))
          for mapping in ({}, {"attributeMapping": {"attribute.x": "y"}})),
        *((ENDPOINT, {"name": each}, bad(f"Invalid endpoint_id: {each!r}; 1 to 10 digits are "
                                         "expected, no leading 0."))
          for each in ("", "0", "01", "x", "1" * 11)),
        (ENDPOINT, {"name": "1" * 10, "trafficSplit": '{"b": 40, "a": 60}'},
         bad("traffic_split names a, b, which the endpoint does not have.")),
        *((vpc.SUBNETWORK, {"name": "t", "network": "vpc", "ipCidrRange": each},
           bad(f"Subnetwork CIDR range must be between /4 and /29. Got {each}", "invalid"))
          for each in ("10.2.0.0/30", "0.0.0.0/3")),
        (vpc.SUBNETWORK, {"name": "t", "network": "vpc", "ipCidrRange": "10.2.0.1/24"},
         field("ipCidrRange", "10.2.0.1/24", "Must be a CIDR address range, such as 10.2.0.0/24.")),
        (vpc.SUBNETWORK, {"name": "t", "network": "vpc", "ipCidrRange": "x"},
         field("ipCidrRange", "x", "Must be a CIDR address range, such as 10.0.0.0/24.")),
        (vpc.SUBNETWORK, {"name": "t", "network": "vpc", "ipCidrRange": "10.2.0.0/24",
                          "secondaryIpRanges": [{}, {"ipCidrRange": "10.2.0.0/25"}]},
         field("secondaryIpRanges[1].ipCidrRange", "10.2.0.0/25", "Invalid IPCidrRange: "
               "10.2.0.0/25 conflicts with another range of this subnetwork.")),
    ],
)  # fmt: skip
def test_what_a_service_does_not_take_is_refused_in_its_words(
    filled: Estate, token: str, inputs: Any, said: str
) -> None:
    assert filled.refusal(token, **inputs) == said


@pytest.mark.parametrize(
    ("token", "id_", "said"),
    [
        (ROLE, f"projects/{PROJECT}/roles/a", f"A role named a in projects/{PROJECT} exists"),
        (REPOSITORY, "x", "the repository already exists"),
        (SECRET, "x", "Secret [x] already exists."),
        (RING, "a/keyRings/k", "KeyRing a/keyRings/k already exists."),
        (POOL, "x", "Requested entity already exists"),
        (PROVIDER, "x", "Requested entity already exists"),
        (METRIC, "m", "Metric m already exists"),
        (ENDPOINT, "x", "Endpoint x already exists"),
        ("gcp:storage/bucket:Bucket", "x", "The requested bucket name is not available. The bucket "
         "namespace is shared by all users of the system. Please select a different name and try "
         "again."),
        (INSTANCE, "x", "The resource 'x' already exists"),
        ("gcp:tags/tagBinding:TagBinding", "x", "A binding already exists: x"),
        (vpc.HOST_PROJECT, "local-h", "The project 'local-h' is already a Shared VPC host."),
        (vpc.SERVICE_PROJECT, "local-h/local-s",
         "The project 'local-s' is attached to the host 'local-h' already."),
        (ACCOUNT, f"projects/{PROJECT}/serviceAccounts/{EMAIL}",
         f"Service account trainer already exists within project projects/{PROJECT}."),
    ],
)  # fmt: skip
def test_a_second_one_is_refused_in_the_services_words(
    estate: Estate, token: str, id_: str, said: str
) -> None:
    _, kind = estate.kind(token)
    assert kind.exists(id_) == said


@pytest.mark.parametrize(
    ("token", "given", "id_"),
    [
        (SERVICE, "iam.googleapis.com", f"{PROJECT}/iam.googleapis.com"),
        (SERVICE, "local-a/iam.googleapis.com", "local-a/iam.googleapis.com"),
        (ACCOUNT, EMAIL, f"projects/{PROJECT}/serviceAccounts/{EMAIL}"),
        (ACCOUNT, f"{PROJECT}/{EMAIL}", f"projects/{PROJECT}/serviceAccounts/{EMAIL}"),
        (ACCOUNT, f"projects/a/serviceAccounts/{EMAIL}", f"projects/a/serviceAccounts/{EMAIL}"),
        ("gcp:tags/tagKey:TagKey", "1", "tagKeys/1"),
        ("gcp:tags/tagKey:TagKey", "tagKeys/1", "tagKeys/1"),
        ("gcp:tags/tagBinding:TagBinding", "a/b", "tagBindings/a/b"),
        ("gcp:tags/tagBinding:TagBinding", "tagBindings/a/b", "tagBindings/a/b"),
        ("gcp:monitoring/dashboard:Dashboard", "7", f"projects/{PROJECT}/dashboards/7"),
        ("gcp:monitoring/dashboard:Dashboard", "projects/a/dashboards/7",
         "projects/a/dashboards/7"),
        *((token, each, each) for token, each in (
            ("gcp:billing/budget:Budget", "billingAccounts/1/budgets/2"),
            ("gcp:vertex/aiTensorboard:AiTensorboard", "projects/1/locations/x/tensorboards/2"),
        )),
        *((GRANT, f"b/data {role} group:g", f"b/data/{role}/group:g") for role in (
            "roles/viewer", f"projects/{PROJECT}/roles/a.b_C", "organizations/1/roles/x",
        )),
        *((GRANT, each, each) for each in (
            "b/data/roles/viewer/group:g", "b/data roles/viewer", "b/data viewer group:g",
        )),
        ("gcp:storage/bucket:Bucket", f"{PROJECT}/data", "data"),
        ("gcp:storage/bucket:Bucket", "data", "data"),
        (SECRET, f"projects/{NUMBER}/secrets/s", f"projects/{PROJECT}/secrets/s"),
    ],
)  # fmt: skip
def test_what_a_person_imports_is_an_id(estate: Estate, token: str, given: str, id_: str) -> None:
    cloud, kind = estate.kind(token)
    assert kind.import_id(cloud, given) == id_


def test_an_accounts_address_is_foretold(estate: Estate) -> None:
    cloud, kind = estate.kind(ACCOUNT)
    assert kind.known(cloud, {"accountId": "trainer"}) == {
        "email": EMAIL,
        "member": f"serviceAccount:{EMAIL}",
    }
    abroad, _ = estate.kind(ACCOUNT, "")
    assert kind.known(abroad, {"accountId": "trainer"}) == {}
    moved = [Change("email", "update"), Change("member", "update")]
    assert kind.changed({"accountId": "b"}, {"accountId": "a"}) == moved
    assert kind.changed({"accountId": "a"}, {"accountId": "a"}) == []


def test_an_update_is_verified_as_its_creation_is(estate: Estate) -> None:
    cloud, kind = estate.kind(ROLE)
    with pytest.raises(CloudError) as refused:
        kind.remake(cloud, PROJECT, "x", {"permissions": ["a"]}, {})
    assert str(refused.value) == (
        "Error updating Custom Project Role 'x': googleapi: Error 400: Permission a is not valid., "
        "badRequest"
    )


def test_an_id_is_made_of_what_is_given_and_of_the_providers_settings(estate: Estate) -> None:
    cloud, kind = estate.kind(REPOSITORY)
    given = {"repositoryId": "r", "location": "eu", "project": "local-a"}
    assert kind.id(cloud, given) == "projects/local-a/locations/eu/repositories/r"
    path = f"projects/{PROJECT}/locations/us-west1/repositories/r"
    assert kind.id(cloud, {"repositoryId": "r"}) == path
    bare = replace(cloud, settings=Settings(PROJECT))
    assert told(lambda: kind.id(bare, {"repositoryId": "r"})) == (
        f"{REPOSITORY}: location: required field is not set"
    )
    shapeless = replace(cloud, type=replace(cloud.type, id_format=None))
    assert told(lambda: kind.id(shapeless, given)) == f"{REPOSITORY} has no id format"
