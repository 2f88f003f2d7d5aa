"""What a job renders for Batch is imported as a job that renders the same."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.unit.infra.customjob.test_batch import DIGEST, PSC, REFERENCES, SUBNET
from tests.unit.infra.customjob.test_corpus import PROJECT, REGION, STACK, TRAINER
from tests.unit.infra.customjob.test_job_cases import BATCH
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.protocol.ports import JOB_LABEL, REQUEST_ID_LABEL
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobRequest, Submission
from vertex_training.customjob.rules import Context, StackFacts
from vertex_training_cli import render
from vertex_training_cli.importing import batch_jobs, batch_messages, proposal


def whole_stack(text: str) -> tuple[StackFacts, dict[str, Any]]:
    """A stack that has everything that a file names, and its references."""
    found = dict(REFERENCES)
    for name in re.findall(r"\$\{([a-zA-Z0-9.-]+)\}", text):
        kind, _, key = name.partition(".")
        if kind == "images":
            found[name] = DIGEST
        elif kind == "packages":
            found[name] = f"gs://acme-ml-dev-staging-dev/packages/{key}-0.tar.gz"
        elif kind == "reservations":
            found[name] = {"reservationAffinityType": "ANY_RESERVATION"}
        elif name == "stack.project":
            found[name] = PROJECT
    secrets = {name: frozenset({TRAINER}) for name in STACK.secrets}
    network = dataclasses.replace(PSC, subnet=SUBNET)
    return dataclasses.replace(STACK, network=network, secrets=secrets, reservations={}), found


def request(text: str, around: str, name: str) -> JobRequest:
    stack, table = whole_stack(around)
    context = Context(region=REGION, stack=stack)
    who = Submission(PROJECT, REGION, "dev", name, 1)
    table = {**table, "stack.project": PROJECT}
    result = job_file.check_job_file(text.encode(), "x.yaml", who, table, context, BATCH_JOB)
    assert result.request is not None, [str(each) for each in result.errors]
    return result.request


def sent(one: JobRequest) -> dict[str, Any]:
    """What is sent, with one word for the request's id wherever it stands."""
    labels = {JOB_LABEL: one.submission.job, REQUEST_ID_LABEL: one.request_id}
    message = batch_jobs.replaced(one.sent(labels), one.request_id, "ID")
    return batch_jobs.replaced(message, one.request_id.removeprefix(BATCH_JOB.id_prefix), "ID")


def hold(text: str, name: str, write: Callable[[dict[str, Any]], str]) -> None:
    first = request(text, text, name)
    labels = {JOB_LABEL: name, REQUEST_ID_LABEL: first.request_id}
    printed = yaml.safe_load(write(first.sent(labels)))
    job = batch_jobs.imported(batch_messages.parsed(printed), "other")
    assert (job.name, job.backend) == (name, "batch")
    assert sent(request(proposal.job_text(job), text, name)) == sent(first)
    told = [each for each in job.remarks if "subnet" not in each]
    assert not told, "nothing of a job of our own is lost"


#: Kinds of messages whose default values an import writes otherwise.
WRITTEN_OTHERWISE = ("subnet and topics", "any reservation", "no accelerator")


@pytest.mark.parametrize(
    "case",
    [case["given"] for case in BATCH if case["name"] not in WRITTEN_OTHERWISE],
)
def test_a_message_of_each_kind_comes_back(case: dict[str, Any]) -> None:
    hold(json.dumps(case["job"]), "x", render.as_yaml)
