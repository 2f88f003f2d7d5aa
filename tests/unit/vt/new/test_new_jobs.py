"""The job of a few choices, whole: pools, machines, arguments and where it writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.naming import Names
from vertex_training_cli.new import template
from vertex_training_cli.new.template import Choices


def settings(*, buckets: Any = ("data", "out"), writes: Any = ("out",)) -> Any:
    """A stack with these buckets, and an account that writes some."""
    accounts = {"reader": SimpleNamespace(writes=[]), "trainer": SimpleNamespace(writes=writes)}
    return SimpleNamespace(
        buckets=dict.fromkeys(buckets),
        service_accounts=accounts,
        images={"own": object()},
        names=Names("acme-ml", "7", "us-central1", "dev", {}, {("buckets", "new"): "old"}),
    )


def spec(
    pool: dict[str, Any], *more: dict[str, Any], bucket: str = "acme-ml-out-dev", **given: Any
):
    return {
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{bucket}/fit/${{job.requestId}}"},
        "scheduling": {"timeout": "3600s", **given},
        "workerPoolSpecs": [pool, *more],
    }


MACHINE = {"machineType": "n1-standard-4"}


@pytest.mark.parametrize(("replicas", "counts"), [(1, [1]), (2, [1, 1]), (5, [1, 4])])
def test_the_first_pool_has_one_replica_and_the_second_all_others(
    replicas: int, counts: list[int]
) -> None:
    choices = Choices("fit", image="own", replicas=replicas, accelerator="G", accelerators=4)
    [job] = template.source_of(choices, settings()).jobs
    pools = job.spec["workerPoolSpecs"]
    assert [each["replicaCount"] for each in pools] == counts
    machine = {**MACHINE, "acceleratorType": "G", "acceleratorCount": 4}
    assert [each["machineSpec"] for each in pools] == [machine] * len(counts)
