"""The project of a stack: number, state, billing, APIs and Google's own accounts in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.preflight.documents import FORBIDDEN, PROJECT, context
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


OF = question(NAME, "number and state")
OF_NUMBER, OF_STATE = question(NAME, "number"), question(NAME, "state")
OF_BILLING = question(NAME, "billing")
PAID, OWN, ACTIVE = OF_BILLING.ok("billingAccounts/1"), OF_NUMBER.ok(NUMBER), OF_STATE.ok("ACTIVE")


@pytest.mark.parametrize(
    ("found", "answers"),
    [
        (FINE[GET], [OWN, ACTIVE]),
        (FORBIDDEN, [OF.unknown(
            f"{NAME} cannot be read: 403 Forbidden", "resourcemanager.projects.get")]),
        (None, [OF.refused(
            "it is not there", "every call for it is refused",
            f"gcloud projects create {PROJECT}, or name another in the stack file")]),
        ({"name": f"projects/{NUMBER}", "state": "DELETE_REQUESTED"}, [OWN, OF_STATE.refused(
            "DELETE_REQUESTED", "nothing can be made in a project that is deleted",
            f"gcloud projects undelete {PROJECT}")]),
        ({"name": f"projects/{NUMBER}"},
         [OWN, OF_STATE.unknown("no state, which says nothing of a deployment")]),
        ({"name": f"projects/{NUMBER}", "state": "NEW"},
         [OWN, OF_STATE.unknown("NEW, which says nothing of a deployment")]),
        ({"name": "projects/7", "state": "ACTIVE"}, [OF_NUMBER.refused(
            f"7, and the stack file says {NUMBER}",
            "grants go to service agents of another project, and IAM refuses them or they let it "
            "in", "set projectNumber in Pulumi.prod.yaml to 7"), ACTIVE]),
    ],
)  # fmt: skip
def test_a_project_is_there_alive_and_of_its_number(found: Any, answers: list[Answer]) -> None:
    assert asked({GET: found}) == [*answers, PAID]


OFF = OF_BILLING.refused(
    "off",
    "no API that costs can be switched on, and no bucket, machine or job is made",
    f"gcloud billing projects link {PROJECT} --billing-account=ACCOUNT_ID",
)


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        ({"billingEnabled": True}, OF_BILLING.ok("on")),
        ({"billingEnabled": False, "billingAccountName": "x"}, OFF),
        (None, OFF),
        (FORBIDDEN, OF_BILLING.unknown(
            f"{NAME} cannot be read: 403 Forbidden", "resourcemanager.projects.get")),
    ],
)  # fmt: skip
def test_somebody_pays(found: Any, answer: Answer) -> None:
    assert asked({BILLING: found})[-1] == answer


def api(name: str, project: str = PROJECT) -> DeclaredResource:
    inputs = {"project": project, "service": f"{name}.googleapis.com"}
    return DeclaredResource(identity.SERVICE, f"apis-{name}", inputs)


def on(*names: str) -> dict[str, Any]:
    return {"services": [{"config": {"name": f"{name}.googleapis.com"}} for name in names]}


def test_apis_are_on_or_the_stack_switches_them_on_by_those_that_are() -> None:
    resources = [api("storage"), api("compute"), api("serviceusage"), api("x", "other")]
    found = asked({listing(PROJECT): on("compute"), listing("other"): FORBIDDEN}, *resources)[3:]

    def of(name: str) -> Answer:
        return question(f"{NAME}/services/{name}.googleapis.com", "whether it is on")

    enable = f"gcloud services enable serviceusage.googleapis.com --project={PROJECT}"
    assert found == [
        of("compute").ok("on"),
        of("serviceusage").refused(
            "off", "no other API can be switched on by the stack", enable
        ),
        of("storage").ok("off: the stack switches it on"),
        question("projects/other", "APIs that are on").unknown(
            "projects/other cannot be read: 403 Forbidden", "serviceusage.services.list"
        ),
    ]  # fmt: skip
    first = [api("cloudresourcemanager")]
    assert asked({listing(PROJECT): {}}, *first)[-1].meets == (
        "no other API can be switched on by the stack"
    )


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


def test_agents_of_other_projects_and_accounts_of_people_are_not_asked_for() -> None:
    others = [grant(agent("gcp-sa-aiplatform", "7")), grant(f"trainer@{PROJECT}.iam")]
    documents = {listing(PROJECT): on("serviceusage")}
    assert len(asked(documents, api("serviceusage"), *others)) == 4
    unread = asked({listing(PROJECT): FORBIDDEN}, api("x"), grant(agent("gcp-sa-aiplatform")))
    assert [each.asked for each in unread] == ["number", "state", "billing", "APIs that are on"]
