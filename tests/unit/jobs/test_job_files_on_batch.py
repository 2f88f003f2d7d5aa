"""Every job file of the repository becomes a job of Batch, or says why not."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from tests.unit.infra.customjob.test_batch import DIGEST, PSC, REFERENCES, SUBNET
from tests.unit.infra.customjob.test_corpus import PROJECT, STACK, TRAINER
from vertex_training.customjob.rules import StackFacts

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
