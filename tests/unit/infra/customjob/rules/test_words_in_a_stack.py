"""What is told of a job in its stack: place, words, value and what to write instead."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from vertex_training.customjob.rules.context import (
    Context,
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding
from vertex_training.customjob.rules.stack import fit_network, fit_reservations, stack

ME, OTHER = "me@acme.iam.gserviceaccount.com", "you@acme.iam.gserviceaccount.com"
STACK = StackFacts("acme", "12", "us-central1", frozenset({ME, OTHER}))
NETWORK = "projects/12/global/networks/training"
ATTACHMENT = "projects/acme/regions/us-central1/networkAttachments/training"
IN_SPEC, IN_POOL = ("jobSpec", "network"), ("jobSpec", "workerPoolSpecs", 0)
IN_INTERFACE = ("jobSpec", "pscInterfaceConfig", "networkAttachment")
N1, L4 = {"machineType": "n1-standard-4"}, ("g2-standard-4", "NVIDIA_L4", 1)


def job(
    facts: dict[str, Any] | None = None, /, others: Any = (), pools: Any = (), **spec: Any
) -> Job:
    """A job of the account ``ME`` in a stack with these facts, beside these other jobs."""
    around = Context.of(dataclasses.replace(STACK, **(facts or {})))
    content = {"serviceAccount": ME, "workerPoolSpecs": list(pools), **spec}
    return Job({"jobSpec": content}, dataclasses.replace(around, others=dict(others)))


def alone(pools: Any = (), **spec: Any) -> Job:
    """The job of a file without a stack."""
    return Job({"jobSpec": {"serviceAccount": ME, "workerPoolSpecs": list(pools), **spec}})


def joined(name: str) -> dict[str, Any]:
    return {"pscInterfaceConfig": {"networkAttachment": name}}


PEERING = {"network": NetworkFacts("peering", NETWORK, ranges={"b": 17, "a": 18})}
PSC = {"network": NetworkFacts("psc", "", ATTACHMENT)}
OF_OTHERS = "projects/99/global/networks/training"
NOT_NETWORK = "not the network of this stack"
NOT_ATTACHMENT = "not the attachment of this stack"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (job(PEERING, network=NETWORK), []),
        (job(PEERING), []),
        (job(network=OF_OTHERS), []),
        (alone(network=OF_OTHERS), []),
        (job(PEERING, network=OF_OTHERS),
         [Finding(IN_SPEC, NOT_NETWORK, OF_OTHERS, "network: ${network.name}")]),
        (job(PSC, network=OF_OTHERS), [Finding(IN_SPEC, NOT_NETWORK, OF_OTHERS, "remove it")]),
        (job(PSC, **joined(ATTACHMENT)), []),
        (job(PSC, **joined("training")), []),
        (job(PSC, **joined("mine")),
         [Finding(IN_INTERFACE, NOT_ATTACHMENT, "mine", "${network.attachment}")]),
        (job(PEERING, **joined("mine")),
         [Finding(IN_INTERFACE, NOT_ATTACHMENT, "mine", "remove pscInterfaceConfig")]),
    ],
)  # fmt: skip
def test_a_network_of_others_is_told_with_what_the_stack_has(
    given: Job, found: list[Finding]
) -> None:
    assert list(fit_network.network_foreign(given)) == found


HOST = {"network": NetworkFacts("peering", "projects/34/global/networks/production")}


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ("projects/12/global/networks/production", True),
        ("projects/acme/global/networks/production", True),
        ("projects/34/global/networks/production", False),
        ("projects/56/global/networks/production", False),
        ("projects/12/global/networks/other", False),
        ("production", False),
    ],
)
def test_a_network_of_a_host_project_is_named_by_its_number(given: str, is_told: bool) -> None:
    what = "is in another project than this: name it with its owner's number"
    wanted = [Finding(IN_SPEC, what, given, "projects/34/global/networks/production")]
    assert list(fit_network.network_owner(job(HOST, network=given))) == wanted * is_told
    assert list(fit_network.network_owner(job(PEERING, network=NETWORK))) == []
    foreign = list(fit_network.network_foreign(job(HOST, network=given)))
    assert bool(foreign) == (not is_told and not given.startswith("projects/34/"))


def test_a_range_of_others_is_told_with_those_of_the_stack() -> None:
    ranges = ["a", "x", "b", "y"]
    what, hint = "not a range of this stack's network", "known: a, b"
    given = job(PEERING, network=NETWORK, reservedIpRanges=ranges)
    assert list(fit_network.range_foreign(given)) == [
        Finding(("jobSpec", "reservedIpRanges", index), what, ranges[index], hint)
        for index in (1, 3)
    ]
    elsewhere = job(PEERING, network=OF_OTHERS, reservedIpRanges=ranges)
    assert list(fit_network.range_foreign(elsewhere)) == []
    assert list(fit_network.range_foreign(alone(network="", reservedIpRanges=ranges))) == []


@pytest.mark.parametrize(
    ("nodes", "prefix"),
    # Of the addresses of a subnet Google keeps four.
    [(12, 0), (13, 27), (28, 27), (29, 26), (60, 26), (61, 25), (1000, 22)],
)
def test_a_subnet_that_is_full_is_told_with_one_that_would_do(nodes: int, prefix: int) -> None:
    facts = NetworkFacts("psc", "", ATTACHMENT, subnet_prefix=28)
    beside = {
        "x": JobFacts(attachment=ATTACHMENT, nodes=(nodes - 2) // 2, parallel=2),
        "y": JobFacts(attachment="another", nodes=500),
    }
    rest = nodes - (nodes - 2) // 2 * 2
    pools = [{"replicaCount": rest}]
    given = job({"network": facts}, beside, pools=pools, **joined(ATTACHMENT))
    what = f"{nodes} nodes at once, and the subnet has 12 addresses for them"
    hint = f"network.subnet.range: a /{prefix}, or say in network.parallelJobs how many jobs"
    found = [Finding(IN_INTERFACE, what, "/28", hint)] if prefix else []
    assert list(fit_network.interface_room(given)) == found
    short = job({"network": facts}, beside, pools=pools, **joined("training"))
    assert list(fit_network.interface_room(short)) == []


ONE = "projects/acme/zones/us-central1-a/reservations/one"
TWO = "projects/acme/zones/us-central1-b/reservations/two"
AFFINITY = (*IN_POOL, "machineSpec", "reservationAffinity")
FACTS = ReservationFacts("one", *L4, count=4, specific=True)


def reserving(*names: str, kind: str = "SPECIFIC_RESERVATION", count: int = 1) -> dict[str, Any]:
    """A pool of ``count`` machines with an L4 that asks for these reservations."""
    machine = dict(zip(("machineType", "acceleratorType", "acceleratorCount"), L4, strict=True))
    affinity = {"reservationAffinityType": kind, "values": list(names)}
    return {"machineSpec": {**machine, "reservationAffinity": affinity}, "replicaCount": count}


def held(pools: Any, others: Any = (), **known: ReservationFacts) -> Job:
    """A job of these pools in a stack with the reservations ``ONE`` and ``TWO``."""
    names = {"one": ONE, "two": TWO}
    facts = {"reservations": {names[key]: each for key, each in known.items()}}
    return job(facts, others, pools)


def test_any_reservation_is_told_where_no_open_one_has_the_machines() -> None:
    any_one = [reserving(kind="ANY_RESERVATION")]
    opened = dataclasses.replace(FACTS, specific=False)
    smaller = dataclasses.replace(opened, machine_type="g2-standard-8")
    what = "no open reservation of this stack has such machines"
    hint = "name one, or set its specificReservationRequired: false"
    place = (*AFFINITY, "reservationAffinityType")
    told = [Finding(place, what, "g2-standard-4 with 1 x NVIDIA_L4", hint)]
    assert list(fit_reservations.reservation_any(held(any_one, one=FACTS))) == told
    assert list(fit_reservations.reservation_any(held(any_one, one=smaller))) == told
    assert list(fit_reservations.reservation_any(held(any_one, one=smaller, two=opened))) == []
    assert list(fit_reservations.reservation_any(held(any_one))) == []
    assert list(fit_reservations.reservation_any(held([reserving(ONE)], one=FACTS))) == []


def test_a_module_that_no_package_has_is_told_with_those_there_are() -> None:
    uris = ["gs://s/a.tar.gz", "gs://s/b.tar.gz"]
    facts = {"packages": {uris[0]: frozenset({"zoo.run"}), uris[1]: frozenset({"ape.run"})}}

    def found(module: str, uris: list[str]) -> list[Finding]:
        task = {"packageUris": uris, "pythonModule": module}
        return list(stack.package_module(job(facts, pools=[{"pythonPackageSpec": task}])))

    place = (*IN_POOL, "pythonPackageSpec", "pythonModule")
    what = "the package has no such module to run"
    assert found("train", uris) == [Finding(place, what, "train", "known here: ape.run, zoo.run")]
    assert found("ape.runs", uris) == [Finding(place, what, "ape.runs", "did you mean 'ape.run'?")]
    assert found("ape.run", uris[:1]) == [Finding(place, what, "ape.run", "known here: zoo.run")]
    assert found("ape.run", uris) == found("", uris) == found("x", []) == []
    assert found("train", [*uris, "gs://elsewhere/c.tar.gz"]) == []
    without = job(facts, pools=[{"pythonPackageSpec": {"packageUris": uris}}])
    assert list(stack.package_module(without)) == []


SECRETS = {
    "projects/acme/secrets/token": frozenset({ME}),
    "projects/acme/secrets/key": frozenset({OTHER}),
    "projects/friends/secrets/theirs": frozenset({OTHER}),
}
NONE_SUCH, NOT_READ = "this stack has no such secret", "the job's account may not read this secret"


@pytest.mark.parametrize(
    ("name", "secrets", "what", "hint"),
    [
        ("projects/acme/secrets/token", SECRETS, "", ""),
        ("projects/12/secrets/token", SECRETS, "", ""),
        ("projects/elsewhere/secrets/x", SECRETS, "", ""),
        ("projects/acme/secrets/key", SECRETS, NOT_READ,
         f"add it to the account's secrets ({ME})"),
        ("projects/12/secrets/key", SECRETS, NOT_READ, f"add it to the account's secrets ({ME})"),
        ("projects/friends/secrets/theirs", SECRETS, NOT_READ,
         f"add it to the account's secrets ({ME})"),
        ("projects/acme/secrets/x", SECRETS, NONE_SUCH,
         "add it to the stack's secrets; known: key, theirs, token"),
        ("projects/acme/secrets/x", {}, NONE_SUCH,
         "add it to the stack's secrets; known: none"),
    ],
)  # fmt: skip
def test_a_secret_is_one_that_the_account_may_read(
    name: str, secrets: Any, what: str, hint: str
) -> None:
    env = [{"name": "A", "value": f"{name}/versions/1 {name}/versions/2"}]
    given = job({"secrets": secrets}, pools=[{"containerSpec": {"env": env}}])
    place = (*IN_POOL, "containerSpec", "env", 0, "value")
    wanted = [Finding(place, what, name.rpartition("/")[2], hint)] if what else []
    assert list(stack.secret_granted(given)) == wanted
    of_others = job(
        {"secrets": secrets}, pools=[{"containerSpec": {"env": env}}], serviceAccount="x@elsewhere"
    )
    assert list(stack.secret_granted(of_others)) == []
