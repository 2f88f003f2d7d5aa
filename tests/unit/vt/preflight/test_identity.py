"""The project of a stack: number, state, billing, APIs and Google's own accounts in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.preflight.documents import PROJECT, context
from vertex_training.catalog.resource_types import AGENT
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight import identity
from vertex_training_cli.preflight.answers import Answer, question

NAME = f"projects/{PROJECT}"
NUMBER = "109876543210"
GET = f"https://cloudresourcemanager.googleapis.com/v3/{NAME}"
BILLING = f"https://cloudbilling.googleapis.com/v1/{NAME}/billingInfo"
FINE = {
    GET: {"name": f"projects/{NUMBER}", "state": "ACTIVE"},
    BILLING: {"billingEnabled": True, "billingAccountName": "billingAccounts/1"},
}


def listing(project: str) -> str:
    base = "https://serviceusage.googleapis.com/v1/projects"
    return f"{base}/{project}/services?filter=state:ENABLED&pageSize=200"


def asked(documents: dict[str, Any], *resources: DeclaredResource) -> list[Answer]:
    return list(identity.ask(context(FINE | documents, *resources)))


OF_NUMBER, OF_STATE = question(NAME, "number"), question(NAME, "state")
OF_BILLING = question(NAME, "billing")
PAID, OWN, ACTIVE = OF_BILLING.ok("billingAccounts/1"), OF_NUMBER.ok(NUMBER), OF_STATE.ok("ACTIVE")


def api(name: str, project: str = PROJECT) -> DeclaredResource:
    inputs = {"project": project, "service": f"{name}.googleapis.com"}
    return DeclaredResource(identity.SERVICE, f"apis-{name}", inputs)


def on(*names: str) -> dict[str, Any]:
    return {"services": [{"config": {"name": f"{name}.googleapis.com"}} for name in names]}


def grant(email: str) -> DeclaredResource:
    return DeclaredResource("x:y:Z", "g", {"member": f"serviceAccount:{email}"})


def agent(service: str, number: str = NUMBER) -> str:
    return f"service-{number}@{service}.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("service", "api_of"),
    [
        ("gcp-sa-aiplatform", "aiplatform"),
        ("gcp-sa-aiplatform-cc", "aiplatform"),
        ("gs-project-accounts", "storage"),
        ("compute-system", "compute"),
    ],
)
def test_an_agent_exists_by_its_api_or_by_the_stack(service: str, api_of: str) -> None:
    of = question(agent(service), "whether the service agent exists")
    made = DeclaredResource(AGENT, "a", {"service": f"{api_of}.googleapis.com"})

    def told(enabled: dict[str, Any], *more: DeclaredResource) -> Answer:
        documents = {listing(PROJECT): enabled}
        return asked(documents, api("serviceusage"), grant(agent(service)), *more)[-1]

    assert told(on("serviceusage", api_of)) == of.ok(f"{api_of}.googleapis.com is on")
    assert told(on("serviceusage"), made) == of.ok("the stack has it made")
    assert told(on("serviceusage")) == of.refused(
        f"{api_of}.googleapis.com is off, and the stack does not have it made",
        "IAM refuses grants to it",
        f"gcloud beta services identity create --service={api_of}.googleapis.com "
        f"--project={PROJECT}",
    )
