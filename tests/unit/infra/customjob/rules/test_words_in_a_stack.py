"""What is told of a job in its stack: place, words, value and what to write instead."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from vertex_training.customjob.rules.context import (
    BucketFacts,
    Context,
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
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


def test_the_first_job_by_name_that_uses_another_network_is_told() -> None:
    beside = {name: JobFacts(network=f"projects/12/global/networks/{name}") for name in "cba"}
    beside |= {"0": JobFacts(), "1": JobFacts(network=NETWORK)}
    what = "job 'a' uses projects/12/global/networks/a; a region has one peered network at a time"
    hint = "use the same network, or a PSC interface"
    given = job(PEERING, beside, network=NETWORK)
    assert list(fit_network.network_one_a_region(given)) == [Finding(IN_SPEC, what, NETWORK, hint)]
    assert list(fit_network.network_one_a_region(job(PEERING, beside))) == []


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


def test_a_range_without_room_is_told_with_the_sizes() -> None:
    beside = {"x": JobFacts(network=NETWORK, nodes=12, parallel=22), "y": JobFacts(nodes=99)}
    given = job(PEERING, beside, network=NETWORK, pools=[{"replicaCount": 3}])
    # Up to 16 nodes: 15 jobs in the /17, 7 in the /18.
    what = "23 jobs of up to 12 nodes at once, and /17, /18 has room for 22"
    hint = "add a range to network.ranges, or say in network.parallelJobs how many run at once"
    assert list(fit_network.peering_room(given)) == [Finding(IN_SPEC, what, "", hint)]
    without = {"network": NetworkFacts("peering", NETWORK)}
    assert list(fit_network.peering_room(job(without, beside, network=NETWORK))) == []


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


def test_a_reservation_of_others_is_told_with_those_of_the_stack() -> None:
    by_number = ONE.replace("acme", "12")
    known = {"two": dataclasses.replace(FACTS, key="two"), "one": FACTS}
    given = held([reserving(ONE, "other", by_number, by_number.replace("12", "13"))], **known)
    what, hint = (
        "not a reservation of this stack",
        "known: ${reservations.two}, ${reservations.one}",
    )
    assert list(fit_reservations.reservation_foreign(given)) == [
        Finding((*AFFINITY, "values", 1), what, "other", hint),
        Finding((*AFFINITY, "values", 3), what, by_number.replace("12", "13"), hint),
    ]
    assert list(fit_reservations.reservation_foreign(held([reserving("other")]))) == []
    assert list(fit_reservations.reservation_foreign(alone(pools=[reserving("other")]))) == []


def test_machines_that_a_reservation_does_not_have_are_told_with_both() -> None:
    cpu = dataclasses.replace(
        FACTS, key="cpu", machine_type="n1-standard-4", accelerator_type="", accelerator_count=0
    )
    place = (*IN_POOL, "machineSpec", "machineType")
    got = "g2-standard-4 with 1 x NVIDIA_L4"
    assert list(fit_reservations.reservation_machine(held([reserving(ONE)], one=cpu))) == [
        Finding(place, "reservation 'cpu' has other machines", got,
                "it has n1-standard-4, and both must be the same"),
    ]  # fmt: skip
    more = dataclasses.replace(FACTS, accelerator_count=2)
    assert list(fit_reservations.reservation_machine(held([reserving(ONE)], one=more))) == [
        Finding(place, "reservation 'one' has other machines", got,
                "it has g2-standard-4 with 2 x NVIDIA_L4, and both must be the same"),
    ]  # fmt: skip
    assert list(fit_reservations.reservation_machine(held([reserving(ONE)], one=FACTS))) == []
    assert list(fit_reservations.reservation_machine(alone(pools=[reserving(ONE)]))) == []


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


def asking(*machines: int, name: str = ONE) -> JobFacts:
    """Facts of another job with pools of so many machines of a reservation."""
    return JobFacts(
        reservation_requests=tuple(ReservationRequest((name,), *L4, each) for each in machines)
    )


@pytest.mark.parametrize(
    ("count", "at_once", "asked", "spare"),
    [
        (9, None, "", None),
        (8, None, "", 9),
        (7, None, "(this job: 3, 'a': 1, 'b': 4)", None),
        (8, 2, "", None),
        (7, 2, "", 8),
        (6, 2, "(this job: 3, 'a': 1, 'b': 4)", None),
        (5, 1, "", None),
        (4, 1, "", 5),
    ],
)
def test_all_that_ask_for_a_reservation_at_once_are_told_with_their_machines(
    count: int, at_once: int | None, asked: str, spare: int | None
) -> None:
    found = dataclasses.replace(FACTS, count=count, parallel_jobs=at_once)
    beside = {"b": asking(1, 3), "a": asking(1), "c": asking(5, name=TWO), "d": JobFacts()}
    given = held([reserving(ONE), reserving(ONE, count=2)], beside, one=found)
    what = f"'one' has fewer machines than jobs ask for at once {asked}"
    hint = "raise its count, or say in its parallelJobs how many of the jobs run at once"
    counted = [Finding(AFFINITY, what, f"count: {count}", hint)] if asked else []
    assert list(fit_reservations.reservation_count(given)) == counted
    what = "jobs use all machines of 'one' at once; Google advises to keep one spare"
    spared = [Finding(AFFINITY, what, f"count: {count}", f"count: {spare}")] if spare else []
    assert list(fit_reservations.reservation_spare(given)) == spared


def test_attached_ssds_of_a_reservation_are_told() -> None:
    with_ssds = dataclasses.replace(FACTS, local_ssds=2)
    what = "Vertex AI uses no machines with attached local SSDs, and 'one' has"
    hint = "remove localSsds, unless the machine type always has them"
    given = held([reserving(ONE)], one=with_ssds)
    assert list(fit_reservations.reservation_local_ssd(given)) == [
        Finding(AFFINITY, what, "2", hint)
    ]
    assert list(fit_reservations.reservation_local_ssd(held([reserving(ONE)], one=FACTS))) == []


OUTPUT = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")


def writing(uri: str, facts: Any = None, others: Any = (), **spec: Any) -> Job:
    return job(facts, others, baseOutputDirectory={"outputUriPrefix": uri}, **spec)


def test_jobs_that_write_to_one_folder_are_told_by_name() -> None:
    beside = {name: JobFacts(output="gs://b/x") for name in ("two", "one")}
    beside |= {"zero": JobFacts(output="gs://b/y")}
    hint = "give each job a folder, with ${job.name}; or each run, with ${job.requestId}"
    assert list(stack.output_shared(writing("gs://b/x/", None, beside))) == [
        Finding(OUTPUT, f"job '{name}' writes there too", "gs://b/x/", hint)
        for name in ("one", "two")
    ]


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


BUCKETS = {
    "buckets": {
        "reads": BucketFacts(readers=frozenset({ME})),
        "writes": BucketFacts(writers=frozenset({ME})),
        "private": BucketFacts(readers=frozenset({OTHER}), writers=frozenset({OTHER})),
    }
}


def test_buckets_that_the_account_may_not_use_are_told_at_each_place() -> None:
    container = {
        "command": ["gs://reads/x", "gs://writes", "gs://elsewhere/x"],
        "args": ["--in=gs://private/a,gs://private/b", "/gcs/private/c"],
    }
    package = {"packageUris": ["gs://reads/a.tar.gz", "gs://private/b.tar.gz"]}
    pools = [{"containerSpec": container}, {"pythonPackageSpec": package}]
    what = "the job's account may not read this bucket"
    hint = f"add the bucket to the account's reads or writes ({ME})"
    places = [
        (*IN_POOL, "containerSpec", "args", 0),
        (*IN_POOL, "containerSpec", "args", 1),
        ("jobSpec", "workerPoolSpecs", 1, "pythonPackageSpec", "packageUris", 1),
    ]
    assert list(stack.account_reads(job(BUCKETS, pools=pools))) == [
        Finding(place, what, "private", hint) for place in places
    ]
    of_others = job(BUCKETS, pools=pools, serviceAccount="x@elsewhere")
    assert list(stack.account_reads(of_others)) == []


@pytest.mark.parametrize(
    ("uri", "is_told"),
    [
        ("gs://writes/x", False),
        ("gs://reads/x", True),
        ("gs://private/x", True),
        ("gs://elsewhere/x", False),
        ("gs://writes/gs://private", False),
    ],
)
def test_the_output_is_where_the_account_may_write(uri: str, is_told: bool) -> None:
    what = "the job's account may not write to this bucket"
    hint = f"add the bucket to the account's writes ({ME})"
    wanted = [Finding(OUTPUT, what, uri.split("/")[2], hint)] * is_told
    assert list(stack.account_writes(writing(uri, BUCKETS))) == wanted
    assert list(stack.account_writes(writing(uri, BUCKETS, serviceAccount="x@elsewhere"))) == []


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


def test_an_account_of_others_is_told() -> None:
    what, hint = "not an account of this stack", "serviceAccount: ${serviceAccounts.NAME}"
    place = ("jobSpec", "serviceAccount")
    assert list(stack.account_foreign(job(serviceAccount="x@elsewhere"))) == [
        Finding(place, what, "x@elsewhere", hint)
    ]
    assert list(stack.account_foreign(job())) == []
    assert list(stack.account_foreign(job(serviceAccount=""))) == []
    assert list(stack.account_foreign(alone())) == []
