"""The stand-in refuses in Check what the official plugin 9.35.0 refuses, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from localgcp.gcp import rules
from tests.unit.localcloud.gcp.harness import FIXTURES, Plugin

BUCKET = "gcp:storage/bucket:Bucket"
ACCOUNT = "gcp:serviceaccount/account:Account"
GRANT = "gcp:projects/iAMMember:IAMMember"
NETWORK = "gcp:compute/network:Network"
FIREWALL = "gcp:compute/firewall:Firewall"
RESERVATION = "gcp:compute/reservation:Reservation"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
POOL = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
OBJECT = "gcp:storage/bucketObject:BucketObject"
RANGE = {"network": "n", "allows": [{"protocol": "tcp"}], "sourceRanges": ["10.0.0.0/8"]}
COUNT = {"count": 1, "instanceProperties": {"machineType": "a2-highgpu-1g"}}
ISSUER = {"issuerUri": "https://token.example"}

# Inputs of each measured case. The fixture holds only names and answers: these are inferred from
# them, so a case that the plugin let pass says little about any other value.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bucket-name": (BUCKET, {"location": "US", "name": "Bad_UPPER"}),
    "bucket-name-short": (BUCKET, {"location": "US", "name": "ab"}),
    "bucket-lifecycle-type": (
        BUCKET,
        {"location": "US", "lifecycleRules": [{"action": {"type": "Nope"}, "condition": {}}]},
    ),
    "bucket-lifecycle-nocond": (
        BUCKET,
        {"location": "US", "lifecycleRules": [{"action": {"type": "Delete"}}]},
    ),
    "bucket-pap": (BUCKET, {"location": "US", "publicAccessPrevention": "maybe"}),
    "bucket-softdelete": (
        BUCKET,
        {"location": "US", "softDeletePolicy": {"retentionDurationSeconds": 1}},
    ),
    "bucket-unknownprop": (BUCKET, {"location": "US", "labels": {"A": "b"}}),
    "sa-short": (ACCOUNT, {"accountId": "abc"}),
    "sa-upper": (ACCOUNT, {"accountId": "Trainer-One"}),
    "sa-long": (ACCOUNT, {"accountId": "a" * 31}),
    "iam-member-noprefix": (
        GRANT,
        {"project": "p1", "role": "roles/viewer", "member": "me@example.com"},
    ),
    "iam-member-badprefix": (
        GRANT,
        {"project": "p1", "role": "roles/viewer", "member": "usr:me@example.com"},
    ),
    "iam-role-bad": (GRANT, {"project": "p1", "role": "viewer", "member": "user:me@example.com"}),
    "net-name": (NETWORK, {"name": "Bad_Name"}),
    "net-mtu": (NETWORK, {"mtu": 99999}),
    "net-routing": (NETWORK, {"routingMode": "LOCAL"}),
    "subnet-cidr": (
        "gcp:compute/subnetwork:Subnetwork",
        {"network": "n", "ipCidrRange": "10.0.0.0/99"},
    ),
    "subnet-host-bits": (
        "gcp:compute/subnetwork:Subnetwork",
        {"network": "n", "ipCidrRange": "10.0.0.1/24"},
    ),
    "fw-none": (FIREWALL, {"network": "n", "sourceRanges": ["10.0.0.0/8"]}),
    "fw-both": (FIREWALL, {**RANGE, "denies": [{"protocol": "udp"}]}),
    "fw-cidr": (FIREWALL, {**RANGE, "sourceRanges": ["nope"]}),
    "addr-prefix": (
        "gcp:compute/globalAddress:GlobalAddress",
        {"prefixLength": 99, "addressType": "INTERNAL"},
    ),
    "addr-purpose": ("gcp:compute/globalAddress:GlobalAddress", {"purpose": "NOPE"}),
    "psa-delpolicy": (
        "gcp:servicenetworking/connection:Connection",
        {
            "network": "n",
            "service": "servicenetworking.googleapis.com",
            "reservedPeeringRanges": ["r"],
            "deletionPolicy": "NOPE",
        },
    ),
    "nat-opt": (
        "gcp:compute/routerNat:RouterNat",
        {
            "router": "r",
            "natIpAllocateOption": "NOPE",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        },
    ),
    "attach-pref": (
        "gcp:compute/networkAttachment:NetworkAttachment",
        {"connectionPreference": "MAYBE", "subnetworks": ["s"]},
    ),
    "resv-type": (
        RESERVATION,
        {"zone": "us-central1-a", "specificReservation": {**COUNT, "count": 0}},
    ),
    "resv-share": (
        RESERVATION,
        {
            "zone": "us-central1-a",
            "specificReservation": COUNT,
            "shareSettings": {"shareType": "EVERYONE"},
        },
    ),
    "resv-sharing": (
        RESERVATION,
        {
            "zone": "us-central1-a",
            "specificReservation": COUNT,
            "reservationSharingPolicy": {"serviceShareType": "SOME"},
        },
    ),
    "repo-format": (REPOSITORY, {"repositoryId": "r", "format": "NOPE"}),
    "repo-id": (REPOSITORY, {"repositoryId": "Bad_ID", "format": "DOCKER"}),
    "repo-mode": (REPOSITORY, {"repositoryId": "r", "format": "DOCKER", "mode": "ODD"}),
    "repo-cleanup-action": (
        REPOSITORY,
        {
            "repositoryId": "r",
            "format": "DOCKER",
            "cleanupPolicies": [{"id": "x", "action": "BURN"}],
        },
    ),
    "secret-id": (
        "gcp:secretmanager/secret:Secret",
        {"secretId": "bad id", "replication": {"auto": {}}},
    ),
    "secret-norepl": (
        "gcp:secretmanager/secret:Secret",
        {"secretId": "s", "replication": {}},
    ),
    "wif-pool-short": (POOL, {"workloadIdentityPoolId": "abc"}),
    "wif-pool-gcp": (POOL, {"workloadIdentityPoolId": "gcp-pool"}),
    "wif-prov-none": (
        PROVIDER,
        {"workloadIdentityPoolId": "pool", "workloadIdentityPoolProviderId": "prov"},
    ),
    "wif-prov-two": (
        PROVIDER,
        {
            "workloadIdentityPoolId": "pool",
            "workloadIdentityPoolProviderId": "prov",
            "oidc": ISSUER,
            "aws": {"accountId": "999999999999"},
        },
    ),
    "kms-rotation": (
        "gcp:kms/cryptoKey:CryptoKey",
        {"keyRing": "k", "rotationPeriod": "100s"},
    ),
    "kms-ringname": ("gcp:kms/keyRing:KeyRing", {"name": "bad name", "location": "us"}),
    "alert-combiner": (
        "gcp:monitoring/alertPolicy:AlertPolicy",
        {"combiner": "XOR", "displayName": "d", "conditions": [{"displayName": "c"}]},
    ),
    "budget-amount": ("gcp:billing/budget:Budget", {"billingAccount": "b", "amount": {}}),
    "service-bad": ("gcp:projects/service:Service", {"service": "compute"}),
    "project-bad": (BUCKET, {"location": "US", "project": "Bad Project"}),
    "sink-metric": (
        "gcp:logging/metric:Metric",
        {"filter": "f", "metricDescriptor": {"metricKind": "UP", "valueType": "INT64"}},
    ),
    "object-both": (OBJECT, {"bucket": "b", "content": "x", "source": "y"}),
    "object-none": (OBJECT, {"bucket": "b"}),
}

# Cases that never reach the plugin's Check, or end in another call; each has its reason.
ELSEWHERE = {
    "bucket-nolocation": "the Python SDK raises before the engine hears of the resource",
    "iam-noproject": "the Python SDK raises before the engine hears of the resource",
    "hostproject": "the Python SDK raises before the engine hears of the resource",
    "peerroutes": "the Python SDK raises before the engine hears of the resource",
    "tb-name": "the Python SDK raises before the engine hears of the resource",
    "bucket-autoname-long": "a legal automatic name: tested below",
    "bucket-autoname-upper": "a legal automatic name: tested below",
    "net-autoname-upper": "a legal automatic name: tested below",
    "net-autoname-long": "no name can be made, Check itself fails: tested below",
    "fw-nosource": "refused while planning: tested below",
}


def measured() -> dict[str, list[str]]:
    """Messages of each case (none: the plugin let it pass)."""
    cases: dict[str, list[str]] = {}
    name = ""
    for line in (FIXTURES / "gcp-invalid-inputs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            name = line.split()[1]
            cases[name] = []
        elif "' has a problem: " in line:
            cases[name].append(line.partition("' has a problem: ")[2])
    return cases


MEASURED = measured()


def test_every_measured_case_is_tested_or_has_a_reason() -> None:
    assert set(MEASURED) == set(CASES) | set(ELSEWHERE)


@pytest.mark.parametrize("case", CASES)
def test_check_says_what_the_official_plugin_says(abroad: Plugin, case: str) -> None:
    token, inputs = CASES[case]

    answer = abroad.check(token, "x", inputs)

    # The official plugin walks its properties in no particular order.
    assert sorted(f.reason for f in answer.failures) == sorted(MEASURED[case])
    # A property would make the engine print its value, even a secret one.
    assert {f.property for f in answer.failures} <= {""}


def test_a_name_that_cannot_be_made_short_enough_fails_in_the_plugins_words(
    abroad: Plugin,
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        abroad.check(NETWORK, "n" * 63, {})

    assert caught.value.details() == (
        f"could not make instance of '{NETWORK}': name '{'n' * 63}-' plus 7 random chars is "
        "longer than maximum length 63"
    )


Rule = Callable[[Any], str | None]
RIGHT: dict[Rule, list[Any]] = {
    rules.gce_name: ["a", "a-1", "a" * 63],
    rules.account_id: ["abcdef", "a" * 30, "a-2-b-c"],
    rules.bucket_labels: [{}, {"a": "x", "a_-1": "y", "é": "z", "k" * 63: ""}],
    rules.json_object: ["{}", '{"a": 1}'],
    rules.iam_member: ["user:a", "allUsers", "allAuthenticatedUsers"],
    rules.cidr: ["10.0.0.0/8", "10.0.0.1/24", "::/0", "10.0.0.0/32"],
    rules.pool_id: ["pool", "p" * 32, "gcpp", "a-gcp-pool"],
    rules.rotation_period: ["86400s", "7776000s", "soon"],
    rules.api_name: ["run.googleapis.com", "a.b"],
    rules.reservation_count: [1, 2],
}
WRONG: dict[Rule, list[Any]] = {
    rules.gce_name: ["1a", "a-", "A", "a" * 64, "a_b", "é", "a\n"],
    rules.account_id: ["abcde", "a" * 31, "1abcde", "abcdef-", "Abcdef", "abc_def", "abcdef\n"],
    rules.bucket_labels: [
        {"A": "x"},
        {"1": "x"},
        {"a": "", "k" * 64: ""},
        {"É": "x"},
        {"a\n": "x"},
    ],
    rules.json_object: ["[]", "x", "", "null"],
    rules.iam_member: ["me", "allusers", ""],
    rules.cidr: ["10.0.0.0/33", "x", "10.0.0/8"],
    rules.pool_id: ["poo", "p" * 33, "gcp-pool"],
    rules.rotation_period: ["86399s", "0s"],
    rules.api_name: ["run", ""],
    rules.reservation_count: [0, -1],
}


@pytest.mark.parametrize("rule", RIGHT, ids=lambda rule: rule.__name__)
def test_bounds_are_where_the_plugin_has_them(rule: Rule) -> None:
    assert [value for value in RIGHT[rule] if rule(value) is not None] == []
    assert [value for value in WRONG[rule] if rule(value) is None] == []
