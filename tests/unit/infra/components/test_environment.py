"""What ``extra.py`` is given of a stack: every value, and what who takes it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE, H100, PSC
from tests.unit.infra.test_tuning import FILE, JOB
from vertex_training import program
from vertex_training.components.environment import Environment
from vertex_training.stack import from_raw

PATH = "projects/acme-capacity/zones/us-central1-a/reservations/theirs"
STACK: dict[str, Any] = {
    "labels": {"org": "ml"},
    "buckets": {
        "data": {"formerly": "old"},
        "theirs": {"existing": "acme-theirs"},
    },
    "secrets": {"token": {}, "there": {"existing": "projects/acme-ml-prod/secrets/x"}},
    "serviceAccounts": {
        "trainer": {"formerly": "runner"},
        "given": {"existing": "given-1@acme-ml-prod.iam.gserviceaccount.com"},
    },
    "reservations": {"h100": H100, "theirs": H100 | {"existing": PATH}},
    "network": PSC,
    "snapshots": {"clicks": {"query": "q.sql", "maxBytesBilled": 10**9, "formerly": "visits"}},
    "jobs": {
        "once": {"file": "job.yaml", "formerly": "first"},
        "weekly": {"file": "job.yaml", "schedule": {"cron": "0 6 * * 1"}},
    },
    "tuning": {"tune": {"file": "tune.yaml"}},
}


def deployed(root: Path, read: Any, **sections: Any) -> Any:
    """What ``read`` finds of the environment, with its outputs resolved."""
    (root / "tune.yaml").write_text(FILE)
    (root / "job.yaml").write_text(JOB)
    (root / "q.sql").write_text("SELECT 1")
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Recorder(), "training", "prod")
    found: dict[str, Any] = {}

    @pulumi.runtime.test
    def run() -> pulumi.Output[None]:
        environment = program.deploy(from_raw(BASE | sections, root))
        return pulumi.Output.from_input(read(environment)).apply(found.update)

    run()
    return found


def waits(environment: Environment) -> dict[str, Any]:
    """Names of the resources that outputs come from."""

    async def names(output: pulumi.Output[Any]) -> list[str]:
        return sorted(each._name for each in await output.resources())

    found: dict[str, Any] = {}
    for name in ("buckets", "service_accounts", "secrets", "reservations"):
        of: Mapping[str, pulumi.Output[str]] = getattr(environment, name)
        found[name] = {key: names(pulumi.Output.from_input(each)) for key, each in of.items()}
    assert environment.network is not None
    return {**found, "network": names(environment.network)}


def test_who_takes_a_value_waits_for_what_it_names_if_the_stack_makes_that(tmp_path: Path) -> None:
    assert deployed(tmp_path, waits, **STACK) == {
        "buckets": {
            "control": ["storage-control"],
            "data": ["storage-old"],
            "staging": ["storage-staging"],
            "theirs": [],
        },
        "service_accounts": {"trainer": ["runner-account"], "given": []},
        "secrets": {"token": ["secrets-token"], "there": []},
        "reservations": {"h100": ["capacity-h100"], "theirs": []},
        "network": ["network-vpc"],
    }
