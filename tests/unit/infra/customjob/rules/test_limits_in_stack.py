"""Both sides of each limit of a job in its stack, and of one on Batch."""

import dataclasses
import datetime

import pytest
import yaml

from tests.unit.infra.customjob.rules.test_limits import WHO
from tests.unit.infra.customjob.rules.test_limits_of_jobs import (
    AFFINITY,
    BOARD,
    OUTPUT,
    SECRET,
    SPARE,
    TASK,
    affine,
    beside,
    env,
    flexible,
    running,
    scheduled,
    worker,
)
from tests.unit.infra.customjob.test_rules import gpu, job
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.rules import (
    BucketFacts,
    Context,
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from vertex_training.errors import dotted

ACCOUNT = "trainer@acme-ml-dev.iam.gserviceaccount.com"
STACK = StackFacts(
    "acme-ml-dev", "210987654321", "us-central1", frozenset({ACCOUNT}), {"bucket": BucketFacts()}
)
ATTACHMENT = "projects/acme-ml-dev/regions/us-central1/networkAttachments/training"


def judged(content, **context):
    """Rule, place and value of each problem of a job in a context."""
    text = yaml.safe_dump(content, sort_keys=False).encode()
    today = datetime.date(2026, 11, 26)
    result = spec.check_job_file(text, "x.yaml", WHO, {}, Context(today=today, **context))
    return [(p.rule, dotted(p.path), p.value) for p in result.problems]


WRITES = f"{SECRET}/versions/latest#value"


@pytest.mark.parametrize(
    ("content", "backend", "expected"),
    [
        (env(("A", WRITES)), "batch", []),
        (env(("A", f"x{WRITES}")), "batch", [("secret-value", f"{TASK}.env[0].value", WRITES)]),
        (running(args=[WRITES]), "batch", [("secret-value", f"{TASK}.args[0]", WRITES)]),
        (env(("A", WRITES)), "vertex", []),
        (
            env(("A", f"{SECRET}#value")),
            "vertex",
            [("secret-value", f"{TASK}.env[0].value", f"{SECRET}#value")],
        ),
    ],
)
def test_the_value_of_a_secret_is_that_of_a_whole_variable_of_a_job_on_batch(
    content, backend, expected
):
    assert judged(content, backend=backend) == expected


def test_on_vertex_ai_no_job_of_a_stack_is_given_the_value_of_a_secret():
    granted = dataclasses.replace(STACK, secrets={SECRET: frozenset({ACCOUNT})})
    told_so = [("secret-value", f"{TASK}.env[0].value", WRITES)]
    assert judged(env(("A", WRITES)), stack=granted, region="us-central1") == told_so
    assert judged(env(("A", WRITES)), region="us-central1") == []


KEY = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (beside(job(), encryptionSpec={"kmsKeyName": KEY}), [("encryptionSpec", KEY)]),
        (affine("SPECIFIC_RESERVATION", "one"), []),
        (affine("SPECIFIC_RESERVATION", "one", "two"), [(f"{AFFINITY}.values", "2")]),
        (scheduled(timeout="1209600s"), []),
        (scheduled(timeout="1209601s"), [("scheduling.timeout", "1209601s")]),
        (flexible(timeout="604800s"), []),
        (flexible(timeout="604801s"), [("scheduling.timeout", "604801s")]),
        (job(tensorboard=BOARD, baseOutputDirectory=OUTPUT), [("tensorboard", BOARD)]),
        (job(enableWebAccess=True), [("enableWebAccess", "")]),
        (job(**SPARE), [("persistentResourceId", "mine")]),
        (job(serviceAccount=""), [("serviceAccount", "")]),
        (
            job(pscInterfaceConfig={"networkAttachment": "mine"}),
            [("pscInterfaceConfig.networkAttachment", "mine")],
        ),
        # Values that a script writes on the machine, and secrets that Batch reads there.
        (env(("A", "$(MASTER_ADDR)")), [(f"{TASK}.env[0].value", "$(MASTER_ADDR)")]),
        (env(("B", "x"), ("A", "$(B)")), []),
        (
            env(("B", f"{SECRET}/versions/latest#value"), ("A", "$(B)")),
            [(f"{TASK}.env[1].value", "$(B)")],
        ),
    ],
)
def test_what_batch_cannot_do_is_told_at_its_place(content, expected):
    found = judged(content, backend="batch", region="us-central1")
    assert [(place, value) for rule, place, value in found if rule == "batch-support"] == expected


PEERED = "projects/210987654321/global/networks/training"


def peered(*, nodes=1, ranges=(18,), at_once=None, network=PEERED):
    """A peered job of so many nodes, and its stack, whose ranges have these prefixes."""
    pools = [worker() | {"replicaCount": nodes - 1}] if nodes > 1 else []
    named = {f"range-{n}": prefix for n, prefix in enumerate(ranges)}
    facts = NetworkFacts("peering", PEERED, ranges=named, parallel_jobs=at_once)
    return job(None, *pools, network=network), dataclasses.replace(STACK, network=facts)


def others(*sizes, **fields):
    """Other jobs of the stack, by nodes and how many run at once."""
    return {
        f"job-{n}": JobFacts(nodes=nodes, parallel=parallel, **fields)
        for n, (nodes, parallel) in enumerate(sizes)
    }


@pytest.mark.parametrize(
    ("given", "beside_it", "full"),
    [
        # Google's table: 15 jobs of 8 nodes in a /18, 7 of 16, 3 of 32.
        ({"nodes": 8}, others(*[(8, 1)] * 14, network=PEERED), False),
        ({"nodes": 8}, others(*[(8, 1)] * 15, network=PEERED), True),
        ({"nodes": 9}, others(*[(8, 1)] * 6, network=PEERED), False),
        ({"nodes": 9}, others(*[(8, 1)] * 7, network=PEERED), True),
        ({"nodes": 8}, others((17, 1), (8, 1), network=PEERED), False),
        ({"nodes": 8}, others((17, 1), (8, 1), (1, 1), network=PEERED), True),
        # Trials that run at once count, the largest first where only some jobs do.
        ({"nodes": 8}, others((8, 14), network=PEERED), False),
        ({"nodes": 8}, others((8, 15), network=PEERED), True),
        ({"nodes": 8, "at_once": 1}, others((8, 15), network=PEERED), False),
        ({"nodes": 8, "at_once": 1}, others((8, 16), network=PEERED), True),
        ({"nodes": 8, "at_once": 2}, others((8, 1), (8, 15), network=PEERED), True),
        # Jobs of another network, and of none, take no room.
        ({"nodes": 8}, others(*[(8, 1)] * 15), False),
        # Two ranges add up, a range below Google's table adds nothing, of a larger one or more
        # nodes than it has nothing is concluded.
        ({"nodes": 8, "ranges": (18, 17)}, others((8, 45), network=PEERED), False),
        ({"nodes": 8, "ranges": (18, 17)}, others((8, 46), network=PEERED), True),
        ({"nodes": 8, "ranges": (18, 19)}, others((8, 14), network=PEERED), False),
        ({"nodes": 8, "ranges": (18, 19)}, others((8, 15), network=PEERED), True),
        ({"nodes": 8, "ranges": (16,)}, others((8, 63), network=PEERED), True),
        ({"nodes": 8, "ranges": (15,)}, others((8, 63), network=PEERED), False),
        ({"nodes": 8, "ranges": (18, None)}, others((8, 63), network=PEERED), False),
        ({"nodes": 33}, others((8, 63), network=PEERED), False),
    ],
)
def test_a_peering_range_has_room_for_as_many_jobs_as_googles_table_says(given, beside_it, full):
    content, stack = peered(**given)
    found = judged(content, stack=stack, others=beside_it, region="us-central1")
    assert found == ([("peering-room", "network", "")] if full else [])


@pytest.mark.parametrize(
    ("nodes", "at_once", "beside_it", "full"),
    [
        # A /28 has 16 addresses, of which Google keeps four.
        (12, None, {}, False),
        (13, None, {}, True),
        (4, None, others((4, 2), attachment=ATTACHMENT), False),
        (5, None, others((4, 2), attachment=ATTACHMENT), True),
        (5, None, others((4, 2), attachment="elsewhere"), False),
        (12, 1, others((4, 3), (2, 1), attachment=ATTACHMENT), False),
        (2, 1, others((4, 1), (13, 1), attachment=ATTACHMENT), True),
    ],
)
def test_a_subnet_has_an_address_for_each_node_at_once(nodes, at_once, beside_it, full):
    facts = NetworkFacts("psc", "", ATTACHMENT, subnet_prefix=28, parallel_jobs=at_once)
    pools = [worker() | {"replicaCount": nodes - 1}]
    content = job(None, *pools, pscInterfaceConfig={"networkAttachment": ATTACHMENT})
    stack = dataclasses.replace(STACK, network=facts)
    found = judged(content, stack=stack, others=beside_it, region="us-central1")
    place = "pscInterfaceConfig.networkAttachment"
    assert found == ([("interface-room", place, "/28")] if full else [])


ONE = "projects/acme-ml-dev/zones/us-central1-a/reservations/one"


def test_a_job_that_takes_any_reservation_is_told_if_no_open_one_has_its_machines():
    any_one = {"reservationAffinityType": "ANY_RESERVATION"}
    content = job(gpu("g2-standard-4", "NVIDIA_L4", 1) | {"reservationAffinity": any_one})
    place = f"{AFFINITY}.reservationAffinityType"
    found = {}
    for name, specific, kind in (
        ("a", True, "NVIDIA_L4"),
        ("b", False, "NVIDIA_L4"),
        ("c", False, ""),
    ):
        facts = ReservationFacts("x", "g2-standard-4", kind, 1, 9, specific)
        stack = dataclasses.replace(STACK, reservations={ONE: facts})
        found[name] = judged(content, stack=stack, region="us-central1")
    told_so = [("reservation-any", place, "g2-standard-4 with 1 x NVIDIA_L4")]
    assert found == {"a": told_so, "b": [], "c": told_so}
