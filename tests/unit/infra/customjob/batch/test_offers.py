"""What a job costs on each service, against sums made by hand; and whom Batch refuses, and why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.catalog import costs
from vertex_training.customjob.batch.offers import Offer, offers


def job(*pools: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"jobSpec": {"workerPoolSpecs": list(pools), "serviceAccount": "a@b.c", **spec}}


def pool(machine: str, replicas: int = 1, **machine_spec: Any) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": machine, **machine_spec},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": "x"},
    }


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"trialJobSpec": {}}, "it has no tuning"),
        (job(pool("ct5lp-hightpu-1t")), "it has no TPUs"),
        (job(pool("n1-standard-4"), tensorboard="t"), "only Vertex AI has tensorboard"),
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


def test_an_attachment_with_a_known_subnet_is_taken_and_a_ladder_is_not() -> None:
    message = job(pool("n1-standard-4"), pscInterfaceConfig={"networkAttachment": "n"})
    assert not offers([message], "us-central1", "vertex", subnet=True)[1].refusal
    rungs = [message, job(pool("n1-standard-8"))]
    here, other = offers(rungs, "us-central1", "vertex", subnet=True)
    assert other.refusal == "it has no ladder"
    assert here.cost == costs.of_job(rungs[1], "us-central1")  # the dearest


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
