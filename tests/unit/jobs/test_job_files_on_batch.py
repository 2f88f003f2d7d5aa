"""Every job file of the repository becomes a job of Batch, or says why not."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from google.cloud import batch_v1
from google.protobuf.json_format import ParseDict

from tests.fixture_project import SAMPLE_JOBS, sample
from tests.unit.infra.customjob.batch.test_message import DIGEST, PSC, REFERENCES, SUBNET
from tests.unit.infra.customjob.test_corpus import PROJECT, REGION, STACK, TRAINER
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules import Context, StackFacts

#: Files of jobs/ that do not become a job of Batch -> words of the reason.
WHY_NOT = {
    "arr-coc-a100-reduction.yaml": "no reduction servers",
    "arr-coc-cpu.yaml": "installs no packages",
    "ddp.yaml": "installs no packages",
    "parameter-server.yaml": "no parameter servers",
    "titanic.yaml": "installs no packages",
    "titanic-tuning.yaml": "the file is a HyperparameterTuningJob",
}


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


@pytest.mark.parametrize("name", SAMPLE_JOBS)
def test_every_job_file_renders_or_says_why_not(name: str) -> None:
    file = sample(f"{name}.yaml")
    text = file.read_text("utf-8")
    stack, table = whole_stack(text)
    who = Submission(PROJECT, REGION, "dev", file.stem, 1)
    around = Context(region=REGION, stack=stack)
    data = text.encode()
    result = job_file.check_job_file(data, file.name, who, table, around, BATCH_JOB)
    told = "\n".join(str(each) for each in result.errors)
    if file.name in WHY_NOT:
        assert result.request is None
        assert WHY_NOT[file.name] in told
    else:
        assert result.request is not None, told
        ParseDict(result.request.sent({}), batch_v1.Job.pb(batch_v1.Job()))
