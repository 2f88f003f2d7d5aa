"""The outputs of a stack, which reviews and other stacks read: each of them, whole."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE
from tests.unit.infra.test_tuning import FILE, JOB
from vertex_training import program
from vertex_training.stack import from_raw

BOUNDS: dict[str, Any] = {
    "limits": {"maxUsdPerJob": 900},
    "teams": {
        "vision": {"limits": {"maxUsdPerJob": 800, "strategies": ["SPOT", "STANDARD"]}},
        "speech": {"labels": {"cost": "7"}},
    },
    "policyLevels": {"bucket-public": "advisory"},
    "rules": {"timeout-missing": "note"},
    "overrides": {"buckets.data": None},
    "allowedSecrets": {"src/sample.py:3": "a sample of a key"},
    "drift": {"projectPolicy": "judged"},
}
SECTIONS: dict[str, Any] = {
    "buckets": {"data": {}},
    "secrets": {"token": {}},
    "serviceAccounts": {"trainer": {}},
    "snapshots": {"clicks": {"query": "q.sql", "maxBytesBilled": 10**9, "format": "parquet"}},
    "jobs": {
        "once": {"file": "job.yaml"},
        "weekly": {"file": "job.yaml", "schedule": {"cron": "0 6 * * 1"}},
    },
    "tuning": {"tune": {"file": "tune.yaml"}},
}


def exports(root: Path, patch: pytest.MonkeyPatch, **sections: Any) -> dict[str, Any]:
    """What the program exports for a stack with these sections."""
    (root / "tune.yaml").write_text(FILE)
    (root / "job.yaml").write_text(JOB)
    (root / "q.sql").write_text("SELECT 1")
    found: dict[str, Any] = {}
    patch.setattr(program, "export", found.__setitem__)
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Recorder(), "training", "prod")
    values: dict[str, Any] = {}

    @pulumi.runtime.test
    def run() -> pulumi.Output[None]:
        program.deploy(from_raw(BASE | sections, root))
        return pulumi.Output.from_input(found).apply(values.update)

    run()
    return values


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        return exports(tmp_path_factory.mktemp("checkout"), patch, **BOUNDS, **SECTIONS)


def test_bounds_and_exceptions_are_those_of_the_file(found: dict[str, Any]) -> None:
    names = ("limits", "policyLevels", "rules", "overrides", "allowedSecrets", "drift")
    assert {name: found[name] for name in names} == {
        "limits": {
            "limits": {"maxUsdPerJob": 900.0},
            "teams.vision.limits": {"maxUsdPerJob": 800.0, "strategies": ["SPOT", "STANDARD"]},
        },
        **{name: BOUNDS[name] for name in names if name != "limits"},
    }


def test_what_jobs_use_is_named(found: dict[str, Any]) -> None:
    names = ("buckets", "secrets", "serviceAccounts", "registry")
    assert {name: found[name] for name in names} == {
        "buckets": {key: f"gs://acme-ml-prod-{key}-prod" for key in ("control", "data", "staging")},
        "secrets": {"token": "projects/acme-ml-prod/secrets/token-prod"},
        "serviceAccounts": {"trainer": "trainer-prod@acme-ml-prod.iam.gserviceaccount.com"},
        "registry": "us-central1-docker.pkg.dev/acme-ml-prod/training-prod",
    }
    [(key, snapshot)] = found["snapshots"].items()
    assert (key, set(snapshot)) == ("clicks", {"folder", "manifest"})
    assert snapshot["folder"].startswith("gs://acme-ml-prod-data-prod/snapshots/prod/clicks/")


def test_a_job_is_among_those_of_its_section_or_the_schedules(found: dict[str, Any]) -> None:
    """An n1-standard-4 is $0.2185 an hour on Vertex AI."""
    jobs = {name: found[name] for name in ("jobs", "tuning", "schedules")}
    assert {name: list(each) for name, each in jobs.items()} == {
        "jobs": ["once"], "tuning": ["tune"], "schedules": ["weekly"],
    }  # fmt: skip
    assert set(found["jobs"]["once"]) == set(found["tuning"]["tune"]) == {
        *("name", "state", "requestId", "requestDigest", "artifacts", "costsAtMost"),
        *("console", "logs"),
    }  # fmt: skip
    assert set(found["schedules"]["weekly"]) == {
        *("since", "requestDigest", "artifacts", "costsAtMost"),
    }
    assert found["schedules"]["weekly"]["artifacts"] == "gs://out/x/${job.requestId}"
    assert found["jobs"]["once"]["costsAtMost"] == "$0.22 in 1 h"
    assert found["tuning"]["tune"]["costsAtMost"] == "$13.11 in 60 trials of 1 h"
