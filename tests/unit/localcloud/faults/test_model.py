"""Which faults make sense, and when they happen."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault


def refusal(**given: Any) -> str:
    """What is said to a fault that makes no sense."""
    with pytest.raises(LocalCloudError) as caught:
        Fault.parse(**given)
    return caught.value.message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "error"}, "kind error requires a code, such as UNAVAILABLE"),
        ({"kind": "error", "code": "ZZ"}, "'ZZ' is not a gRPC code (UNAVAILABLE, …)"),
        ({"service": "iam", "kind": "error", "code": "399"},
         "'399' is not an HTTP status from 400 to 599"),
        ({"service": "models", "kind": "kill"}, "service models does not support fault kill"),
        ({"service": "storage", "kind": "kill"},
         "kill requires a service of jobs; Cloud Storage lists and reads are strongly consistent"),
        ({"kind": "lost-page", "method": "GetJob"},
         "lost-page applies to ListCustomJobs and ListHyperparameterTuningJobs and ListJobs, "
         "not to GetJob"),
        ({"kind": "kill", "method": "GetJob"},
         "kill applies to running jobs, not to calls: omit the method"),
        ({"kind": "drop", "code": "INTERNAL"}, "drop does not accept a code"),
        ({"kind": "truncate", "when": "after"}, "truncate does not accept `when`"),
        ({"kind": "drop", "patch": {"a": 1}}, "drop does not accept a patch"),
        ({"kind": "drop", "value": 0.0}, "drop does not accept a value"),
        ({"service": "monitoring", "kind": "utilization", "value": 1},
         "utilization needs seconds"),
        ({"kind": "hold", "seconds": 0}, "hold does not accept seconds"),
        ({"kind": "kill", "nth": 2},
         "kill accepts neither nth nor probability: it applies to all matching jobs"),
        ({"kind": "stockout", "replica": "workerpool0-0"}, "stockout does not accept a replica"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_words(given: dict[str, Any], said: str) -> None:
    assert refusal(**({"service": "jobs"} | given)) == f"{said}."


@pytest.mark.parametrize(
    "given",
    [
        {"service": "iam", "kind": "error", "code": "400"},
        {"service": "iam", "kind": "error", "code": "599"},
        *({"kind": kind, "when": "after"} for kind in ("drop", "reset", "hold")),
        {"kind": "delay", "when": "after", "seconds": 0},
        *({"kind": kind, "seconds": 5} for kind in ("stockout", "preempt", "kill")),
        *({"kind": "kill", "replica": name} for name in ("workerpool3-12", "task-0")),
        {"kind": "stockout", "nth": 2, "probability": 0.5},
        *(
            {"kind": "lost-page", "method": method}
            for method in ("ListCustomJobs", "ListHyperparameterTuningJobs", "ListJobs", "*")
        ),
        {"service": "monitoring", "kind": "utilization", "seconds": 60, "value": 0},
        {"service": "monitoring", "kind": "utilization", "seconds": 60, "value": 1},
    ],
)
def test_what_makes_sense_is_taken(given: dict[str, Any]) -> None:
    assert Fault.parse(**({"service": "jobs"} | given))


def test_a_patch_is_described_so_that_a_shell_takes_it() -> None:
    fault = Fault.parse(service="dns", kind="patch", patch={"a": "b c"}, match="zone")
    assert fault.describe() == """dns patch --match zone --patch '{"a": "b c"}'"""
