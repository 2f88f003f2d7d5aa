"""What a job costs on each service, against sums made by hand; and whom Batch refuses, and why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.catalog import costs
from vertex_training.customjob.batch.offers import Offer, offers

#: The most one flex-start machine's fee was off 15 % of today's price, on the bill below.
BILL = 0.01


def job(*pools: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"jobSpec": {"workerPoolSpecs": list(pools), "serviceAccount": "a@b.c", **spec}}


def pool(machine: str, replicas: int = 1, **machine_spec: Any) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": machine, **machine_spec},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": "x"},
    }


def priced(message: dict[str, Any], region: str, backend: str = "vertex") -> dict[str, float]:
    found = offers([message], region, backend)
    assert found[0].backend == backend
    assert all(each.cost is not None for each in found), found
    return {each.backend: each.cost.worst_case or 0.0 for each in found if each.cost}


@pytest.mark.parametrize("backend", ["vertex", "batch"])
def test_a_standard_job_by_hand(backend: str) -> None:
    """Eight H100 for a day.

    a3-highgpu-8g, us-central1: 88.49 an hour (Cyclenerd pricing.yml, 2026-07-30). Vertex's fee is
    inside of its price: 88.49 x 1.15 = 101.7635, x 24 h = 2442.324; a bill of August 2025 has
    101.01 an hour. Batch: 88.49 x 24 h = 2123.76 an attempt, and four of them: 8495.04.
    """
    message = job(pool("a3-highgpu-8g"), scheduling={"timeout": "86400s"})
    assert priced(message, "us-central1", backend) == pytest.approx(
        {"vertex": 2442.324, "batch": 8495.04}
    )


def test_the_fee_is_as_on_the_bill() -> None:
    """a3-highgpu-8g with flex-start, us-central1, August 2025: 38.32 an hour and a fee of 13.17;
    on demand 101.01, with the fee inside. Fees of the catalogue: 88.49 x 0.15 = 13.2735."""
    with_fee, without = (
        costs.hourly("a3-highgpu-8g", None, 0, "us-central1", "SPOT", fee=fee)
        for fee in (True, False)
    )
    assert with_fee
    assert without
    assert with_fee.usd - without.usd == pytest.approx(13.17, rel=BILL)
    standard = costs.hourly("a3-highgpu-8g", None, 0, "us-central1")
    assert standard
    assert standard.usd == pytest.approx(101.01, rel=BILL)


def test_a_spot_job_by_hand() -> None:
    """Two T4 on n1-standard-8 for six hours, in europe-west4 (skypilot's catalog v8, vms.csv).

    On demand 0.41834 + 2 x 0.3675 = 1.15334 an hour, Spot 0.16734 + 2 x 0.175 = 0.51734.
    Vertex: 0.51734 + 0.15 x 1.15334 = 0.690341, x 6 h = 4.142046; 1.15 x Spot is 3.569646, too
    low. Batch: 0.51734 x 6 h x 7 attempts = 21.72828.
    """
    gpus = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
    message = job(
        pool("n1-standard-8", **gpus), scheduling={"strategy": "SPOT", "timeout": "21600s"}
    )
    found = priced(message, "europe-west4")
    assert found == pytest.approx({"vertex": 4.142046, "batch": 21.72828}, abs=2e-3)


def test_a_job_on_batch_with_retries_by_hand() -> None:
    """Three n1-standard-4 for two hours, tried again.

    us-central1: 0.189999 an hour (Cyclenerd pricing.yml, 2026-07-30). Batch: 3 x 0.189999 x 2 h =
    1.139994 an attempt, four of them: 4.559976. Vertex has one timeout for all attempts, and
    0.21849885 an hour (its price page, read 2026-09-08): 3 x 0.21849885 x 2 h = 1.3109931. Without
    retries, Batch is an attempt.
    """
    pools = (pool("n1-standard-4"), pool("n1-standard-4", 2))
    found = priced(job(*pools, scheduling={"timeout": "7200s"}), "us-central1", "batch")
    assert found == pytest.approx({"batch": 4.559976, "vertex": 1.3109931})
    once = job(*pools, scheduling={"timeout": "7200s", "disableRetries": True})
    assert priced(once, "us-central1", "batch")["batch"] == pytest.approx(1.139994)


def test_on_batch_every_attempt_has_the_whole_timeout() -> None:
    message = job(pool("n1-standard-4", 3), scheduling={"strategy": "SPOT", "timeout": "3600s"})
    assert str(costs.of_job(message, "us-central1", "batch")) == "$1.41 in 7 attempts of 1 h"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"trialJobSpec": {}}, "it has no tuning"),
        (job(pool("ct5lp-hightpu-1t")), "it has no TPUs"),
        (job(pool("n1-standard-4"), tensorboard="t"), "only Vertex AI has tensorboard"),
        (job(pool("n1-standard-4"), network="n"), "only Vertex AI has network"),
        (
            job(pool("n1-standard-4"), tensorboard="t", experiment="e"),
            "only Vertex AI has tensorboard, and 1 more",
        ),
        (job(pool("n1-standard-4"), pool("n1-standard-8")), "it runs equal machines"),
        (job(pool("n1-standard-4"), serviceAccount=""), "serviceAccount is missing"),
        (
            job(
                pool("n1-standard-4"),
                scheduling={"strategy": "FLEX_START", "timeout": "700000s"},
            ),
            "it ends a job after 7 days",
        ),
        (
            job(pool("n1-standard-4"), pscInterfaceConfig={"networkAttachment": "n"}),
            "no subnet of this attachment is known",
        ),
    ],
)
def test_whom_batch_refuses_it_says_why_in_few_words(message: dict[str, Any], words: str) -> None:
    here, other = offers([message], "us-central1", "vertex")
    assert here.cost is not None
    assert (other.cost, other.refusal, str(other)) == (None, words, f"not Batch: {words}")


def test_vertex_ai_gives_no_job_the_value_of_a_secret() -> None:
    env = [{"name": "TOKEN", "value": "projects/p/secrets/token/versions/latest#value"}]
    with_secret = pool("n1-standard-4")
    with_secret["containerSpec"]["env"] = env
    here, other = offers([job(with_secret)], "us-central1", "batch")
    assert here.cost is not None
    assert str(other) == "not Vertex: it gives no job the value of a secret"


def test_an_attachment_with_a_known_subnet_is_taken_and_a_ladder_is_not() -> None:
    message = job(pool("n1-standard-4"), pscInterfaceConfig={"networkAttachment": "n"})
    assert not offers([message], "us-central1", "vertex", subnet=True)[1].refusal
    rungs = [message, job(pool("n1-standard-8"))]
    here, other = offers(rungs, "us-central1", "vertex", subnet=True)
    assert other.refusal == "it has no ladder"
    assert here.cost == costs.of_job(rungs[1], "us-central1")  # the dearest


def test_what_is_asked_beside_the_request_is_said_before_its_own_reasons() -> None:
    message = job(pool("n1-standard-4"), tensorboard="t", scheduling={"timeout": "7200s"})
    here, other = offers([message], "us-central1", "vertex", lacks="idleStop")
    assert (other.cost, str(other)) == (None, "not Batch: it has no idleStop")
    assert here.text(", twice a day") == "Vertex $0.44 (2 h, twice a day)"
    assert other.text(", twice a day") == "not Batch: it has no idleStop"
    _, vertex = offers([job(pool("n1-standard-4"))], "us-central1", "batch", lacks="messages")
    assert str(vertex) == "not Vertex: it has no messages"


def test_only_the_attachment_of_the_job_itself_needs_a_subnet() -> None:
    taken = job(pool("n1-standard-4"), pscInterfaceConfig={"networkAttachment": ""})
    for subnet in (False, True):
        assert not offers([taken], "us-central1", "vertex", subnet=subnet)[1].refusal
    both = job(
        pool("n1-standard-4"), tensorboard="t", pscInterfaceConfig={"networkAttachment": "n"}
    )
    assert [
        offers([both], "us-central1", "vertex", subnet=s)[1].refusal for s in (False, True)
    ] == [
        "only Vertex AI has tensorboard, and 1 more",
        "only Vertex AI has tensorboard",
    ]


def test_what_is_not_known_is_neither_priced_nor_refused() -> None:
    assert [str(each) for each in offers([{}], "us-central1", "vertex")] == [
        "Vertex no price (168 h)",
        "Batch no price (4 attempts of 168 h)",
    ]
    assert str(Offer("batch", None, "x")) == "not Batch: x"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
    st.sampled_from(["labels", "tensorboard", "network", "experiment", "enableWebAccess"]),
)
def test_no_value_breaks_the_line(value: Any, field: str) -> None:
    """Fields that a job of somebody else's state may have, of any type."""
    _, other = offers([job(pool("n1-standard-4"), **{field: value})], "us-central1", "vertex")
    assert re.fullmatch(r"not Batch: only Vertex AI has \w+|Batch \$\d+\.\d\d \(.*\)", str(other))
