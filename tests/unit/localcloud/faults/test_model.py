"""Which faults make sense, and when they happen."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault, Kind, Service


def refusal(**given: Any) -> str:
    """What is said to a fault that makes no sense."""
    with pytest.raises(LocalCloudError) as caught:
        Fault.parse(**given)
    return caught.value.message


def parse(kind: str = "error", service: str = "jobs", **given: Any) -> Fault:
    return Fault.parse(service=service, kind=kind, **({"code": "INTERNAL"} | given))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"service": "jobs", "kind": "error", "code": "503"}, "'503' is no gRPC code"),
        ({"service": "jobs", "kind": "error"}, "an error needs a code, like UNAVAILABLE"),
        ({"service": "storage", "kind": "error"}, "an error needs a code, like 503"),
        ({"service": "jobs", "kind": "error", "code": "data-loss"}, r"gRPC code \(DATA_LOSS\)"),
        ({"service": "storage", "kind": "error", "code": "200"}, "no HTTP status from 400 to 599"),
        ({"service": "storage", "kind": "stale", "seconds": 3}, "strongly consistent"),
        ({"service": "storage", "kind": "preempt"}, "preempt is a fault of jobs"),
        ({"service": "jobs", "kind": "delay"}, "delay needs seconds"),
        ({"service": "jobs", "kind": "delay", "seconds": -1}, "seconds: .*greater than or equal"),
        ({"service": "jobs", "kind": "drop", "seconds": 3}, "drop takes no seconds"),
        ({"service": "jobs", "kind": "drop", "code": "INTERNAL"}, "drop takes no code"),
        ({"service": "jobs", "kind": "truncate", "when": "after"}, "neither before nor after"),
        ({"service": "jobs", "kind": "drop", "method": "Creat"}, "has no method 'Creat'"),
        ({"service": "jobs", "kind": "stale", "seconds": 1, "method": "GetCustomJob"},
         "applies to ListCustomJobs"),
        ({"service": "jobs", "kind": "stockout", "method": "GetCustomJob"}, "leave the method out"),
        ({"service": "jobs", "kind": "preempt", "nth": 2}, "neither nth nor probability"),
        ({"service": "jobs", "kind": "drop", "probability": 0}, "probability: "),
        ({"service": "moon", "kind": "drop"}, "service: "),
        ({"service": "jobs", "kind": "kill", "replica": "worker-1"}, "replica: "),
        ({"service": "jobs", "kind": "error", "code": "INTERNAL", "typo": 1}, "typo: "),
        ({"service": "jobs", "kind": "explode"}, "kind: "),
    ],
)  # fmt: skip
def test_a_fault_that_makes_no_sense_is_refused_in_words(given: dict[str, Any], text: str) -> None:
    with pytest.raises(LocalCloudError, match=text):
        Fault.parse(**given)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(LocalCloudError) as caught:
        Fault.parse(service="storage", kind="stale", method="nothing", code="503")
    for text in ("strongly consistent", "no method 'nothing'", "takes no code", "needs seconds"):
        assert text in caught.value.message


@pytest.mark.parametrize(
    ("fault", "calls", "happened"),
    [
        (parse(), 3, [1]),
        (parse(nth=2), 4, [2]),
        (parse(times=2), 4, [1, 2]),
        (parse(times=0), 4, [1, 2, 3, 4]),
        (parse(times=2, nth=3), 6, [3, 4]),
    ],
)
def test_it_happens_from_the_nth_call_on_as_often_as_asked(
    fault: Fault, calls: int, happened: list[int]
) -> None:
    fired: list[int] = []
    for seen in range(1, calls + 1):
        if fault.happens(seen, len(fired)):
            fired.append(seen)
    assert fired == happened


def test_the_same_seed_gives_the_same_choices_and_another_seed_others() -> None:
    def choices(seed: int) -> list[bool]:
        fault = parse(times=0, probability=0.5, seed=seed)
        return [fault.happens(seen, 0) for seen in range(1, 101)]

    assert choices(1) == choices(1) != choices(2)
    assert 30 < sum(choices(1)) < 70


@pytest.mark.parametrize(
    ("given", "subjects", "fits"),
    [
        ({}, [], True),
        ({"method": "Create*"}, [], True),
        ({"method": "GetCustomJob"}, [], False),
        ({"match": "titanic"}, ["local-titanic"], True),
        ({"match": "titanic"}, ["other"], False),
    ],
)
def test_it_fits_by_method_and_by_text(
    given: dict[str, Any], subjects: list[str], fits: bool
) -> None:
    assert parse(**given).fits(Service.JOBS, "CreateCustomJob", subjects) is fits
    assert not parse(**given).fits(Service.STORAGE, "CreateCustomJob", subjects)


def test_it_is_described_in_the_words_of_the_command() -> None:
    described = parse(when="after", method="CreateCustomJob").describe()
    assert described == "jobs error --method CreateCustomJob --when after --code INTERNAL"


@pytest.mark.parametrize(
    "method",
    [
        *("CreateCustomJob", "GetCustomJob", "ListCustomJobs", "CancelCustomJob"),
        *("DeleteCustomJob", "GetOperation", "WaitOperation"),
    ],
)
def test_a_fault_may_be_for_any_call_of_the_job_service(method: str) -> None:
    assert Fault.parse(service="jobs", kind="drop", method=method).method == method


#: https://grpc.io/docs/guides/status-codes, without OK.
CODES = """
CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED
RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE
DATA_LOSS UNAUTHENTICATED
"""


@pytest.mark.parametrize("service", ["jobs", "models", "operations"])
def test_a_service_of_grpc_fails_with_each_of_its_codes_but_ok(service: str) -> None:
    for code in CODES.split():
        assert Fault.parse(service=service, kind="error", code=code).code == code
    assert "'OK' is no gRPC code" in refusal(service=service, kind="error", code="OK")


OF_CALLS = {"error", "drop", "delay", "reset", "truncate", "hold"}
OF_JOBS = {"stale", "short-pages", "lost-page", "lost-record", "stockout", "preempt", "kill"}
ASKED = {"deny", "patch", "error", "delay"}
#: What can go wrong with each service, and with the one call of Cloud Storage that only asks.
KINDS = {
    ("jobs", "*"): OF_CALLS | OF_JOBS,
    ("models", "*"): OF_CALLS,
    ("operations", "*"): {"error", "delay", "hold"},
    ("storage", "*"): OF_CALLS,
    ("storage", "buckets.get"): ASKED,
    ("iam", "*"): ASKED,
    ("compute", "*"): ASKED,
    ("monitoring", "*"): ASKED | {"reset", "hold", "utilization"},
    ("serviceusage", "*"): ASKED,
    ("cloudresourcemanager", "*"): ASKED,
    ("cloudbilling", "*"): ASKED,
    ("billingbudgets", "*"): ASKED,
    ("artifactregistry", "*"): ASKED,
    ("secretmanager", "*"): ASKED,
    ("cloudkms", "*"): ASKED,
    ("orgpolicy", "*"): ASKED,
    ("servicenetworking", "*"): ASKED,
    ("dns", "*"): ASKED,
    ("bigquery", "*"): ASKED | {"reset", "hold"},
}
#: What a kind needs beside its name.
NEEDED: dict[str, dict[str, Any]] = {
    "delay": {"seconds": 2},
    "stale": {"seconds": 2},
    "utilization": {"seconds": 2, "value": 0.5},
    "patch": {"patch": {"billingEnabled": False}},
}


@pytest.mark.parametrize(("service", "method"), KINDS)
def test_each_service_has_the_faults_that_can_happen_to_it(service: str, method: str) -> None:
    code = "UNAVAILABLE" if service in ("jobs", "models", "operations") else "503"
    allowed = set[str]()
    for kind in Kind:
        given = {"code": code} if kind == "error" else NEEDED.get(kind, {})
        with suppress(LocalCloudError):
            Fault.parse(service=service, kind=kind, method=method, **given)
            allowed.add(kind)
    assert allowed == KINDS[service, method]
    assert {key for key, _ in KINDS} == {*Service}


#: As the APIs name them; ``operations`` are what goes on after a call of ``models``.
METHODS = {
    "jobs": """
        CancelCustomJob CancelHyperparameterTuningJob CancelJob CreateCustomJob
        CreateHyperparameterTuningJob CreateJob DeleteCustomJob DeleteHyperparameterTuningJob
        DeleteJob GetCustomJob GetHyperparameterTuningJob GetJob GetOperation GetTask ListCustomJobs
        ListHyperparameterTuningJobs ListJobs ListOperations ListTasks WaitOperation""",
    "models": """
        CreateEndpoint DeleteEndpoint DeleteModel DeleteModelVersion DeployModel GetEndpoint
        GetModel ListEndpoints ListModelVersions ListModels MergeVersionAliases MutateDeployedModel
        Predict RawPredict UndeployModel UpdateEndpoint UpdateModel UploadModel""",
    "operations": "DeployModel MutateDeployedModel UndeployModel UploadModel",
    "storage": """
        buckets buckets.get objects.delete objects.download objects.get objects.insert objects.list
        objects.other""",
    "iam": "GetIamPolicy SetIamPolicy TestIamPermissions serviceAccounts.get",
    "compute": """
        firewalls.list globalAddresses.list networkAttachments.get networks.get projects.get
        projects.getXpnHost regions.get reservations.get routes.list subnetworks.aggregatedList""",
    "monitoring": """
        projects.alertPolicies.list projects.dashboards.list projects.notificationChannels.get
        projects.notificationChannels.list projects.timeSeries.list""",
    "serviceusage": "consumerQuotaMetrics.get services.list",
    "cloudresourcemanager": "projects.get",
    "cloudbilling": "projects.getBillingInfo",
    "billingbudgets": "billingAccounts.budgets.list",
    "artifactregistry": "repositories.get",
    "secretmanager": "secrets.get versions.get",
    "cloudkms": "cryptoKeys.get",
    "orgpolicy": "projects.policies.getEffectivePolicy",
    "servicenetworking": "services.connections.list",
    "dns": "managedZones.list",
    "bigquery": """
        datasets.get datasets.insert extract jobs.get jobs.getQueryResults jobs.insert jobs.list
        jobs.query load query tabledata.list tables.delete tables.get tables.insert tables.list""",
}


@pytest.mark.parametrize("service", Service)
def test_an_unknown_method_is_answered_with_those_there_are(service: str) -> None:
    code = "UNAVAILABLE" if service in ("jobs", "models", "operations") else "503"
    known = ", ".join(METHODS[service].split())
    assert refusal(service=service, kind="error", code=code, method="nope") == (
        f"{service} has no method 'nope' (there are: {known})."
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "error"}, "an error needs a code, like UNAVAILABLE"),
        ({"service": "models", "kind": "error"}, "an error needs a code, like UNAVAILABLE"),
        ({"service": "iam", "kind": "error"}, "an error needs a code, like 503"),
        ({"kind": "error", "code": "ZZ"}, "'ZZ' is no gRPC code (UNAVAILABLE, …)"),
        ({"kind": "error", "code": "internal"}, "'internal' is no gRPC code (INTERNAL)"),
        ({"service": "iam", "kind": "error", "code": "399"},
         "'399' is no HTTP status from 400 to 599"),
        ({"service": "iam", "kind": "error", "code": "600"},
         "'600' is no HTTP status from 400 to 599"),
        ({"service": "iam", "kind": "error", "code": "ABORTED"},
         "'ABORTED' is no HTTP status from 400 to 599"),
        ({"service": "models", "kind": "kill"}, "kill is no fault of models"),
        ({"service": "storage", "kind": "kill"},
         "kill is a fault of jobs; Cloud Storage lists and reads are strongly consistent"),
        ({"kind": "lost-page", "method": "GetJob"},
         "lost-page applies to ListCustomJobs and ListHyperparameterTuningJobs and ListJobs, "
         "not to GetJob"),
        ({"kind": "kill", "method": "GetJob"},
         "kill happens to jobs that run, not to calls: leave the method out"),
        ({"kind": "drop", "code": "INTERNAL"}, "drop takes no code"),
        ({"kind": "truncate", "when": "after"}, "truncate is neither before nor after"),
        ({"kind": "drop", "patch": {"a": 1}}, "drop takes no patch"),
        ({"service": "iam", "kind": "patch"}, "patch needs a patch, a JSON object"),
        ({"kind": "drop", "value": 0.0}, "drop takes no value"),
        ({"service": "monitoring", "kind": "utilization", "seconds": 60},
         "utilization needs a value"),
        ({"service": "monitoring", "kind": "utilization", "value": 1},
         "utilization needs seconds"),
        ({"kind": "stale"}, "stale needs seconds"),
        ({"kind": "hold", "seconds": 0}, "hold takes no seconds"),
        ({"kind": "kill", "nth": 2},
         "kill takes neither nth nor probability: it happens to the jobs it fits"),
        ({"kind": "preempt", "probability": 0.5},
         "preempt takes neither nth nor probability: it happens to the jobs it fits"),
        ({"kind": "stockout", "replica": "workerpool0-0"}, "stockout takes no replica"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_words(given: dict[str, Any], said: str) -> None:
    assert refusal(**({"service": "jobs"} | given)) == f"{said}."


def test_a_wrong_value_is_named_with_what_was_given() -> None:
    with pytest.raises(LocalCloudError) as caught:
        Fault.parse(service="jobs", kind="drop", nth=0, times=-1)
    assert caught.value.message == (
        "nth: Input should be greater than or equal to 1 (got 0); "
        "times: Input should be greater than or equal to 0 (got -1)."
    )
    assert caught.value.hint == (
        "`vt local fault add --help` lists kinds and options; docs/local-stack.md has examples."
    )


@pytest.mark.parametrize(
    "given",
    [
        {"service": "iam", "kind": "error", "code": "400"},
        {"service": "iam", "kind": "error", "code": "599"},
        *({"kind": kind, "when": "after"} for kind in ("drop", "reset", "hold")),
        {"kind": "delay", "when": "after", "seconds": 0},
        *({"kind": kind, "seconds": 5} for kind in ("stockout", "preempt", "kill")),
        *({"kind": "kill", "replica": name} for name in ("workerpool3-12", "task-0")),
        {"kind": "stockout", "nth": 2, "probability": 0.5},
        *(
            {"kind": "lost-page", "method": method}
            for method in ("ListCustomJobs", "ListHyperparameterTuningJobs", "ListJobs", "*")
        ),
        {"service": "monitoring", "kind": "utilization", "seconds": 60, "value": 0},
        {"service": "monitoring", "kind": "utilization", "seconds": 60, "value": 1},
    ],
)
def test_what_makes_sense_is_taken(given: dict[str, Any]) -> None:
    assert Fault.parse(**({"service": "jobs"} | given))


@pytest.mark.parametrize(
    ("kind", "times", "limit"),
    [
        *((kind, None, 1) for kind in ("drop", "hold", "kill", "preempt", "stockout")),
        *((kind, None, 0) for kind in ("stale", "short-pages", "lost-page", "lost-record")),
        ("lost-page", 3, 3),
        ("drop", 0, 0),
    ],
)
def test_a_condition_lasts_and_an_event_happens_once_unless_told(
    kind: str, times: int | None, limit: int
) -> None:
    fault = Fault.parse(service="jobs", kind=kind, times=times, **NEEDED.get(kind, {}))
    assert fault.limit == limit


def test_patches_and_utilizations_last_too() -> None:
    patch = Fault.parse(service="iam", kind="patch", patch={"a": 1})
    idle = Fault.parse(service="monitoring", kind="utilization", seconds=60, value=0)
    assert (patch.limit, idle.limit) == (0, 0)


def test_a_fault_of_lists_is_met_by_lists_alone() -> None:
    fault = Fault.parse(service="jobs", kind="lost-page")
    methods = ("ListCustomJobs", "ListHyperparameterTuningJobs", "ListJobs", "GetCustomJob")
    assert [fault.fits(Service.JOBS, each, []) for each in methods] == [True, True, True, False]


def test_a_patch_is_described_so_that_a_shell_takes_it() -> None:
    fault = Fault.parse(service="dns", kind="patch", patch={"a": "b c"}, match="zone")
    assert fault.describe() == """dns patch --match zone --patch '{"a": "b c"}'"""
