"""Jobs are held to the network and the reservations of their stack, all of them at once."""

import pytest
import yaml

from tests.unit.infra.stacks import H100, PEERING, PSC, stack
from vertex_training.stack import Stack

ACCOUNT = {"serviceAccounts": {"trainer": {"writes": ["artifacts"]}}, "buckets": {"artifacts": {}}}
NODE = {
    "machineType": "a3-megagpu-8g",
    "acceleratorType": "NVIDIA_H100_MEGA_80GB",
    "acceleratorCount": 8,
}
IMAGE = f"us-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"


def pool(machine, replicas=1):
    return {
        "replicaCount": replicas,
        "machineSpec": machine,
        "containerSpec": {"imageUri": IMAGE},
    }


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """(job, rule, message) of every finding in these jobs of a stack with these changes."""

    def judge(jobs, **changes):
        for name, (spec, pools) in jobs.items():
            whole = {
                "serviceAccount": "${serviceAccounts.trainer}",
                "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
                "scheduling": {"timeout": "3600s"},
                **spec,
                "workerPoolSpecs": pools,
            }
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
        settings = stack(**ACCOUNT, **changes)
        named = settings.model_validate(
            settings.model_dump(by_alias=True, exclude_unset=True)
            | {"jobs": {name: {"file": f"{name}.yaml"} for name in jobs}}
        )
        verdicts = Stack(named, tmp_path, {}).check_jobs()
        return [
            (name, problem.rule, str(problem))
            for name, verdict in verdicts.items()
            for problem in (*verdict.errors, *verdict.warnings)
        ]

    return judge


def reserving(key="h100", replicas=1, machine=NODE):
    """A job on a reservation, with its nodes split as they must be."""
    node = machine | {"reservationAffinity": f"${{reservations.{key}}}"}
    return {}, [pool(node), *([pool(node, replicas - 1)] if replicas > 1 else [])]


PEERED = ({"network": "${network.name}"}, [pool({"machineType": "n1-standard-4"})])


def test_a_second_range_adds_room(judged):
    two = {"workers": {"prefixLength": 18}, "more": {"prefixLength": 18}}
    assert judged({f"j{n}": PEERED for n in range(30)}, network=PEERING | {"ranges": two}) == []


def test_all_that_does_not_fit_is_told_at_once(judged):
    jobs = {"a": reserving(replicas=6), "b": PEERED, "c": reserving("h200")}
    found = judged(jobs, reservations={"h100": H100}, network=PSC)
    assert {(job, rule) for job, rule, _ in found} == {
        ("a", "reservation-count"),
        ("b", "unknown-reference"),
        ("c", "unknown-reference"),
    }
