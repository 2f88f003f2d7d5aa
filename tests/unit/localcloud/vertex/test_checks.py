"""What Vertex AI refuses of a CustomJob at once, field by field and in which words."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.errors import ApiError
from localgcp.inventory.store import ACCOUNT, SERVICE, Store
from localgcp.vertex import checks, placement
from localgcp.vertex.records import JobTable
from tests.unit.localcloud.conftest import wrong_fields

PROJECT = "local-training"
REGION = "us-central1"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
POOL = "job_spec.worker_pool_specs[0]"
CONTAINER = {"imageUri": "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"}
PACKAGE = {
    "executorImageUri": "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest",
    "packageUris": ["gs://b/trainer.tar.gz"],
    "pythonModule": "trainer.task",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    made.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    made.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
    return made


def pool(**given: Any) -> dict[str, Any]:
    right = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": CONTAINER,
    }
    return {key: value for key, value in (right | given).items() if value is not None}


def job(*pools: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"displayName": "j", "jobSpec": {"workerPoolSpecs": [*pools] or [pool()], **spec}}


def refused(store: Store, given: dict[str, Any], **more: Any) -> tuple[str, str] | None:
    """Code and text of a refusal; None if the job is taken."""
    table = JobTable(store.path)
    try:
        checks.check_custom_job(store, table, copy.deepcopy(given), PROJECT, REGION, **more)
    except ApiError as error:
        return error.code.name, error.message
    return None


def fields(store: Store, given: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    found = refused(store, given, **more)
    assert found is not None
    assert found[0] == "INVALID_ARGUMENT"
    return wrong_fields(found[1])


@pytest.mark.parametrize(
    "given",
    [
        job(),
        {**job(), "labels": {"a-b_1": "", "é": "ü", "k" * 63: "v" * 63}},
        job(pool(containerSpec=None, pythonPackageSpec=PACKAGE)),
        job(pool(), {}, pool(), pool()),
        job(baseOutputDirectory={"outputUriPrefix": "gs://b"}),
        job(pool(containerSpec=CONTAINER | {"env": [{"name": "_A1"}, {"name": "B"}]})),
    ],
)
def test_a_right_job_is_taken(store: Store, given: dict[str, Any]) -> None:
    assert refused(store, given) is None


REQUIRED = "Required field is not set."
LABEL = "is not valid: lowercase letters, digits, _ and -."


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({**job(), "displayName": ""}, "display_name", REQUIRED),
        ({**job(), "displayName": "j" * 129}, "display_name",
         "The display name can be up to 128 characters long."),
        *(({**job(), "labels": {key: value}}, "labels", f"Label {key}={value} {LABEL}")
          for key, value in (("A", "b"), ("a", "B"), ("1a b", "c"), ("a", "b.c"), ("", "x"),
                             ("_a", "x"), ("k" * 64, "x"), ("k", "v" * 64))),
        ({**job(), "labels": {f"k{n}": "v" for n in range(65)}}, "labels",
         "No more than 64 labels can be associated with one resource."),
        (job({}), "job_spec.worker_pool_specs", "At least one worker pool should be specified."),
        (job(*(pool() for _ in range(5))), "job_spec.worker_pool_specs",
         "At most 4 worker pools are allowed."),
        (job(pool(replicaCount=None)), f"{POOL}.replica_count",
         "The replica count must be at least 1."),
        (job(pool(containerSpec=None)), POOL,
         "One of `container_spec` and `python_package_spec` must be set."),
        (job(pool(containerSpec={"command": ["a"]})), f"{POOL}.container_spec.image_uri", REQUIRED),
        (job(pool(containerSpec=CONTAINER | {"env": [{"name": "1"}]})),
         f"{POOL}.container_spec.env", "'1' is not a valid C identifier."),
        (job(pool(containerSpec=CONTAINER | {"env": [{"name": "A"}, {"name": "A"}]})),
         f"{POOL}.container_spec.env", "EnvVar names must be unique: A"),
        (job(pool(containerSpec=None, pythonPackageSpec=PACKAGE | {"pythonModule": ""})),
         f"{POOL}.python_package_spec.python_module", REQUIRED),
        (job(pool(containerSpec=None, pythonPackageSpec=PACKAGE | {"packageUris": []})),
         f"{POOL}.python_package_spec.package_uris", REQUIRED),
        (job(pool(containerSpec=None, pythonPackageSpec=PACKAGE | {"packageUris": ["gs://b/"]})),
         f"{POOL}.python_package_spec.package_uris", "Cloud Storage URI expected: gs://b/"),
        (job(pool(containerSpec=None, pythonPackageSpec=PACKAGE | {"env": [{"name": "a b"}]})),
         f"{POOL}.python_package_spec.env", "'a b' is not a valid C identifier."),
        (job(baseOutputDirectory={}), "job_spec.base_output_directory.output_uri_prefix",
         "Cloud Storage URI expected, got ''."),
        (job(baseOutputDirectory={"outputUriPrefix": "/b"}),
         "job_spec.base_output_directory.output_uri_prefix",
         "Cloud Storage URI expected, got '/b'."),
        (job(tensorboard="t"), "job_spec.service_account",
         "`custom_job.job_spec.service_account` must be specified when uploading to TensorBoard"),
    ],
)  # fmt: skip
def test_a_wrong_job_is_refused_with_its_field(
    store: Store, given: dict[str, Any], field: str, said: str
) -> None:
    assert fields(store, given) == [(field, said)]


def test_a_machine_has_a_type_and_both_or_none_of_an_accelerator(store: Store) -> None:
    found = fields(store, job(pool(machineSpec={})))
    assert (f"{POOL}.machine_spec.machine_type", REQUIRED) in found
    half = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4"}
    text = "Both `accelerator_type` and `accelerator_count` should be specified or none."
    assert (f"{POOL}.machine_spec", text) in fields(store, job(pool(machineSpec=half)))


NETWORK = "projects/12/global/networks/vpc"
PSC = "job_spec.psc_interface_config"
AFFINITY = f"{POOL}.machine_spec.reservation_affinity"
RESERVATION = "projects/p/zones/us-central1-a/reservations/r"
KEY = "compute.googleapis.com/reservation-name"
SPECIFIC = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": [RESERVATION]}
DNS = {"domain": "a.", "targetProject": "p", "targetNetwork": "n"}


def interface(attachment: str = "psc", *dns: dict[str, str]) -> dict[str, Any]:
    config = {"networkAttachment": attachment, "dnsPeeringConfigs": [*dns]}
    return job(pscInterfaceConfig=config)


def reserving(affinity: dict[str, Any], **spec: Any) -> dict[str, Any]:
    machine = {"machineType": "n1-standard-4", "reservationAffinity": affinity}
    return job(pool(machineSpec=machine), **spec)


@pytest.mark.parametrize(
    "given",
    [
        job(network=NETWORK, reservedIpRanges=["range-1"]),
        interface("psc", DNS),
        interface(f"projects/p/regions/{REGION}/networkAttachments/psc"),
        reserving(SPECIFIC),
        reserving({"reservationAffinityType": "ANY_RESERVATION"}),
        reserving({"reservationAffinityType": "NO_RESERVATION"}, scheduling={"strategy": "SPOT"}),
    ],
)
def test_a_place_that_can_be_is_taken(given: dict[str, Any]) -> None:
    assert list(placement.fields(given, REGION)) == []


FORM = "Network must be in the form projects/{project number}/global/networks/{network}, got"
OTHER_REGION = "projects/p/regions/us-west1/networkAttachments/psc"
OTHER_ZONE = "projects/p/zones/us-west1-a/reservations/r"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (job(network="projects/p/global/networks/vpc"),
         [("job_spec.network", f"{FORM} 'projects/p/global/networks/vpc'.")]),
        (job(network=""), [("job_spec.network", f"{FORM} ''.")]),
        (job(network=NETWORK, pscInterfaceConfig={"networkAttachment": "psc"}),
         [(PSC, "A network and a Private Service Connect interface cannot be used together.")]),
        (job(reservedIpRanges=["r"]),
         [("job_spec.reserved_ip_ranges", "Reserved IP ranges need a network.")]),
        (job(network=NETWORK, reservedIpRanges=["ok", "10.0.0.0/8"]),
         [("job_spec.reserved_ip_ranges",
           "The name of an allocated range expected, got '10.0.0.0/8'.")]),
        (interface(""), [(f"{PSC}.network_attachment", REQUIRED)]),
        (interface("A"),
         [(f"{PSC}.network_attachment", "Not the name of a network attachment: 'A'.")]),
        (interface(OTHER_REGION),
         [(f"{PSC}.network_attachment",
           f"The network attachment must be in the job's region {REGION}, got {OTHER_REGION}.")]),
        (interface("psc", DNS, {}),
         [(f"{PSC}.dns_peering_configs[1].{name}", REQUIRED)
          for name in ("domain", "target_project", "target_network")]),
        (interface("psc", DNS | {"domain": "a.b"}),
         [(f"{PSC}.dns_peering_configs[0].domain", "The domain must end with a dot, got 'a.b'.")]),
        (reserving({}), [(f"{AFFINITY}.reservation_affinity_type", REQUIRED)]),
        (reserving(SPECIFIC | {"key": "k"}), [(f"{AFFINITY}.key", f"Must be {KEY}, got 'k'.")]),
        (reserving(SPECIFIC | {"values": []}), [(f"{AFFINITY}.values", REQUIRED)]),
        *((reserving({"reservationAffinityType": "ANY_RESERVATION"} | more),
           [(f"{AFFINITY}.values", "Only SPECIFIC_RESERVATION has a key and values.")])
          for more in ({"key": KEY}, {"values": [RESERVATION]})),
        (reserving(SPECIFIC | {"values": ["r"]}),
         [(f"{AFFINITY}.values", "projects/P/zones/Z/reservations/R expected, got 'r'.")]),
        (reserving(SPECIFIC | {"values": [OTHER_ZONE]}),
         [(f"{AFFINITY}.values",
           f"The zone must be in the job's region {REGION}, got {OTHER_ZONE}.")]),
        *((reserving(SPECIFIC, scheduling={"strategy": strategy}),
           [(AFFINITY, f"A job with strategy {strategy} cannot use reservations.")])
          for strategy in ("FLEX_START", "SPOT", "LOW_COST")),
        *((reserving(kind, persistentResourceId="x"),
           [(AFFINITY, "A job on a persistent resource cannot use reservations.")])
          for kind in (SPECIFIC, {"reservationAffinityType": "ANY_RESERVATION"})),
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_is_refused_with_its_field(
    given: dict[str, Any], wanted: list[tuple[str, str]]
) -> None:
    assert list(placement.fields(given, REGION)) == wanted


def test_limits_that_cannot_be_loaded_are_told_and_the_others_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> None:
        raise ImportError("no extra")

    def found(group: str) -> list[Any]:
        assert group == "localgcp.job_limits"
        return [
            SimpleNamespace(value="a.b:c", load=absent),
            SimpleNamespace(value="a.b:d", load=lambda: "limits"),
        ]

    monkeypatch.setattr(checks.importlib.metadata, "entry_points", found)
    assert checks._installed_limits.__wrapped__() == ("limits",)
    said = "machines and images are not checked by a.b:c: no extra\n"
    assert capsys.readouterr().err == said
