"""Which jobs can be on a network at the same time, and with which accelerators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import ApiError
from localgcp.inventory.store import Store
from localgcp.inventory.vpc import NETWORK
from localgcp.vertex import placement
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.estate import NUMBER, VPC
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

OTHER = f"projects/{NUMBER}/global/networks/other"
AT = "job_spec.worker_pool_specs[1].machine_spec.accelerator_type"


@pytest.mark.parametrize(
    ("name", "can_peer"),
    [
        ("NVIDIA_H100_MEGA_80GB", False), ("NVIDIA_H200_141GB", False), ("NVIDIA_B200", False),
        ("NVIDIA_H100_80GB", True), ("NVIDIA_L4", True),
    ],
)  # fmt: skip
def test_some_accelerators_cannot_peer(name: str, can_peer: bool) -> None:
    pools = [{"machineSpec": {}}, {"machineSpec": {"acceleratorType": name}}, {}]
    spec = {"workerPoolSpecs": pools, "network": VPC}
    text = f"VPC peering is not supported with {name}; use a Private Service Connect interface."
    found = list(placement.fields({"jobSpec": spec}, "us-central1"))
    assert found == ([] if can_peer else [(AT, text)])
    del spec["network"]
    assert list(placement.fields({"jobSpec": spec}, "us-central1")) == []


class Placed:
    """A project with jobs, and what a further job is refused with."""

    def __init__(self, root: Path) -> None:
        self.store, self.jobs = Store(root / "cloud.sqlite"), JobTable(root / "cloud.sqlite")
        for name in ("vpc", "other"):
            path = f"projects/{PROJECT}/global/networks/{name}"
            self.store.put(NETWORK, path, PROJECT, {}, {"name": name})

    def refusal(self, **spec: Any) -> tuple[str, str] | None:
        try:
            placement.check(self.store, self.jobs, {"jobSpec": spec}, PROJECT, "us-central1")
        except ApiError as error:
            return error.code.name, error.message
        return None


@pytest.fixture
def placed(tmp_path: Path) -> Placed:
    return Placed(tmp_path)


def test_a_number_that_is_no_project_is_refused(placed: Placed) -> None:
    assert placed.refusal(network="projects/123/global/networks/vpc") == (
        "PERMISSION_DENIED",
        "Permission denied on resource project 123 (or it may not exist).",
    )


@pytest.mark.parametrize(
    ("spec", "state", "region", "is_free"),
    [
        ({"network": OTHER}, JobState.RUNNING, "us-central1", False),
        ({"network": OTHER}, JobState.QUEUED, "us-central1", False),
        ({"network": OTHER}, JobState.CANCELLING, "us-central1", False),
        ({"network": OTHER}, JobState.SUCCEEDED, "us-central1", True),
        ({"network": OTHER}, JobState.CANCELLED, "us-central1", True),
        ({"network": VPC}, JobState.RUNNING, "us-central1", True),
    ],
)
def test_a_region_has_one_network_at_a_time(
    placed: Placed, spec: dict[str, Any], state: JobState, region: str, is_free: bool
) -> None:
    other = job_row("7", spec, state=state, region=region)
    placed.jobs.insert(other)
    text = (
        f"Training on {VPC} cannot begin while {other.name} uses {OTHER}: only one network can be "
        "peered in us-central1 at a time. Wait for it to end, or cancel it."
    )
    assert placed.refusal(network=VPC) == (None if is_free else ("FAILED_PRECONDITION", text))
    assert placed.refusal() is None
