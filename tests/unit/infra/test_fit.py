"""Jobs are held to the network and the reservations of their stack, all of them at once."""

import pytest
import yaml

from tests.unit.infra.stacks import H100, HOST, HOST_NETWORK, PEERING, PSC, stack
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
JOINED = ({"pscInterfaceConfig": "${network.interface}"}, [pool({"machineType": "n1-standard-4"})])


def test_jobs_that_fit_are_told_nothing(judged):
    assert judged({"a": reserving(replicas=4)}, reservations={"h100": H100}) == []
    assert judged({"a": PEERED, "b": PEERED}, network=PEERING) == []
    assert judged({"a": JOINED}, network=PSC) == []


def test_a_reservation_of_other_machines_is_told_at_the_machine(judged):
    other = NODE | {"machineType": "a3-highgpu-8g", "acceleratorType": "NVIDIA_H100_80GB"}
    [(_, rule, text)] = judged({"a": reserving(machine=other)}, reservations={"h100": H100})
    assert rule == "reservation-machine"
    assert "machineType: reservation 'h100' has other machines" in text
    assert "got a3-highgpu-8g with 8 x NVIDIA_H100_80GB" in text
    assert "it has a3-megagpu-8g with 8 x NVIDIA_H100_MEGA_80GB" in text


def test_jobs_that_together_need_more_than_is_reserved_are_each_told(judged):
    jobs = {"a": reserving(replicas=4), "b": reserving(replicas=2)}
    found = judged(jobs, reservations={"h100": H100})
    assert [(job, rule) for job, rule, _ in found] == [
        ("a", "reservation-count"),
        ("b", "reservation-count"),
    ]
    assert "(this job: 4, 'b': 2) (got count: 5)" in found[0][2]


def test_jobs_that_follow_one_another_share_the_machines(judged):
    jobs = {"a": reserving(replicas=4), "b": reserving(replicas=2)}
    assert judged(jobs, reservations={"h100": H100 | {"parallelJobs": 1}}) == []


def test_a_job_that_alone_needs_more_than_is_reserved_is_told(judged):
    found = judged({"a": reserving(replicas=6)}, reservations={"h100": H100 | {"parallelJobs": 1}})
    assert [rule for _, rule, _ in found] == ["reservation-count"]


def test_an_open_reservation_counts_the_jobs_that_take_any(judged):
    given = H100 | {"specificReservationRequired": False, "count": 2}
    found = judged({"a": reserving(replicas=4)}, reservations={"h100": given})
    assert [rule for _, rule, _ in found] == ["reservation-count"]


def test_a_range_holds_as_many_jobs_as_googles_table_says(judged):
    small = PEERING | {"ranges": {"workers": {"prefixLength": 18}}}
    assert judged({f"j{n}": PEERED for n in range(15)}, network=small) == []
    found = judged({f"j{n}": PEERED for n in range(16)}, network=small)
    assert {rule for _, rule, _ in found} == {"peering-room"}
    assert len(found) == 16
    assert "16 jobs of up to 1 nodes at once, and /18 has room for 15" in found[0][2]


def test_more_nodes_leave_room_for_fewer_jobs(judged):
    machine = {"machineType": "n1-standard-4"}
    wide = ({"network": "${network.name}"}, [pool(machine), pool(machine, 19)])
    small = PEERING | {"ranges": {"workers": {"prefixLength": 18}}}
    assert judged({f"j{n}": wide for n in range(3)}, network=small) == []
    found = judged({f"j{n}": wide for n in range(4)}, network=small)
    assert {rule for _, rule, _ in found} == {"peering-room"}
    one_at_a_time = small | {"parallelJobs": 3}
    assert judged({f"j{n}": wide for n in range(4)}, network=one_at_a_time) == []


def test_a_second_range_adds_room(judged):
    two = {"workers": {"prefixLength": 18}, "more": {"prefixLength": 18}}
    assert judged({f"j{n}": PEERED for n in range(30)}, network=PEERING | {"ranges": two}) == []


def test_a_subnet_has_an_address_for_every_node(judged):
    small = PSC | {"subnet": {"range": "10.20.0.0/28"}}
    machine = {"machineType": "n1-standard-4"}
    spec = {"pscInterfaceConfig": "${network.interface}"}
    assert judged({"a": (spec, [pool(machine), pool(machine, 11)])}, network=small) == []
    [(_, rule, text)] = judged({"a": (spec, [pool(machine), pool(machine, 12)])}, network=small)
    assert rule == "interface-room"
    assert "13 nodes at once, and the subnet has 12 addresses" in text
    assert "Hint: network.subnet.range: a /27" in text


def test_machines_that_cannot_be_peered_are_told_to_take_an_interface(judged):
    job = ({"network": "${network.name}"}, [pool(NODE)])
    rules = {rule for _, rule, _ in judged({"a": job}, network=PEERING)}
    assert "peering-accelerator" in rules


def test_what_another_mode_has_is_told_as_that(judged):
    [(_, rule, text)] = judged({"a": PEERED}, network=PSC)
    assert rule == "unknown-reference"
    assert "Hint: vertex-training:network gives it in mode peering" in text


def test_a_shared_network_is_named_by_the_hosts_number(judged):
    spec = {"network": "projects/109876543210/global/networks/production"}
    job = (spec, [pool({"machineType": "n1-standard-4"})])
    network = PEERING | {"existing": HOST_NETWORK}
    [(_, rule, text)] = judged({"a": job}, network=network, sharedVpc=HOST)
    assert rule == "network-owner"
    assert "Hint: projects/345678901234/global/networks/production" in text


def test_all_that_does_not_fit_is_told_at_once(judged):
    jobs = {"a": reserving(replicas=6), "b": PEERED, "c": reserving("h200")}
    found = judged(jobs, reservations={"h100": H100}, network=PSC)
    assert {(job, rule) for job, rule, _ in found} == {
        ("a", "reservation-count"),
        ("b", "unknown-reference"),
        ("c", "unknown-reference"),
    }
