"""One call of every method that is served, with an answer that is no refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from localgcp.vertex.records import LIVE_STATES, JobState
from tests.contract import description
from tests.contract.cloud import BUCKET, REGION, Answer, ContractCloud
from tests.contract.served import Call, called
from tests.unit.localcloud.conftest import PROJECT, TRAINER, wait_until

POOL: Final = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": {"imageUri": "python:3.11", "command": ["true"]},
    "diskSpec": {"bootDiskSizeGb": 100},
}
JOB: Final = {
    "workerPoolSpecs": [POOL],
    "serviceAccount": TRAINER,
    "scheduling": {"timeout": "600.5s"},
    "baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/out"},
}
LABELS: Final = {"labels": {"team": "ml"}}
STUDY: Final = {
    "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
    "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
}
BUILD: Final = {
    "source": {"storageSource": {"bucket": BUCKET, "object": "source.tar.gz"}},
    "steps": [{"name": "gcr.io/cloud-builders/docker", "args": ["build", "."]}],
    "serviceAccount": f"projects/{PROJECT}/serviceAccounts/{TRAINER}",
    "options": {"logging": "NONE"},
    "timeout": "60s",
}
POINT: Final = {"step": "7", "wallTime": "2026-11-24T10:00:00Z", "scalar": {"value": 0.5}}
NETWORK: Final = f"projects/{PROJECT}/global/networks/vpc"
DEFINITION: Final = (
    "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
)
POLICY: Final = {
    "bindings": [
        {
            "role": "roles/viewer",
            "members": ["user:a@example.com"],
            "condition": {"title": "t", "expression": "true"},
        }
    ]
}
#: End of a path -> query and body of a call that is accepted. Others take an empty body.
REQUESTS: Final[dict[str, tuple[str, Any]]] = {
    "/customJobs": ("", {"displayName": "j", "jobSpec": JOB, **LABELS}),
    "/hyperparameterTuningJobs": ("", {
        "displayName": "t", "maxTrialCount": 2, "parallelTrialCount": 1, "trialJobSpec": JOB,
        "studySpec": STUDY, **LABELS,
    }),
    "/trainingPipelines": ("", {
        "displayName": "p", "trainingTaskDefinition": DEFINITION, "trainingTaskInputs": JOB,
    }),
    "/metadataStores": ("metadataStoreId=default", {"description": "d"}),
    "/artifacts": ("artifactId=a", {"displayName": "a", "metadata": {"x": 1.5}, **LABELS}),
    "/contexts": ("contextId=c", {"displayName": "c", "schemaTitle": "system.Run"}),
    "/executions": ("executionId=e", {"displayName": "e", "state": "RUNNING"}),
    "/tensorboards": ("", {"displayName": "b", **LABELS}),
    "/experiments": ("tensorboardExperimentId=x", {"displayName": "x"}),
    "/experiments/{}/runs": ("tensorboardRunId=r", {"displayName": "r"}),
    "/timeSeries": ("", {"displayName": "s", "valueType": "SCALAR"}),
    "/builds": ("", BUILD),
    "/v2/entries:list": ("", {
        "resourceNames": [f"projects/{PROJECT}"],
        "filter": 'resource.type="ml_job" AND resource.labels.job_id="1"',
    }),
    "IamPermissions": ("", {"permissions": ["resourcemanager.projects.get"]}),
    "/iam/testPermissions": ("permissions=storage.objects.get", None),
    "etIamPolicy": ("", {"policy": POLICY}),
    "/iam": ("", POLICY),
    ":getIamPolicy": ("", {}),
    "/firewalls": ("", {
        "name": "made", "network": NETWORK, "priority": 7, "sourceRanges": ["10.0.0.0/8"],
        "allowed": [{"IPProtocol": "tcp", "ports": ["80"]}], "logConfig": {"enable": True},
    }),
    "/routes": ("", {
        "name": "made", "network": NETWORK, "destRange": "10.1.0.0/16", "priority": 9,
    }),
    "/subnetworks": ("", {"name": "made", "network": NETWORK, "ipCidrRange": "10.2.0.0/24"}),
    "/addPeering": ("", {"name": "peer", "networkPeering": {"name": "peer", "network": NETWORK}}),
    "/removePeering": ("", {"name": "peer"}),
    "/serviceAccounts": ("", {"accountId": "third", "serviceAccount": {"displayName": "d"}}),
    ":batchEnable": ("", {"serviceIds": ["run.googleapis.com"]}),
    "/connections": (f"network={NETWORK}", None),
}  # fmt: skip
#: Served by a rule of its client, and here always refused: docs/local-stack.md has the reason.
NOT_ANSWERED: Final = frozenset({
    "google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion GET "
    "/v1/projects/{}/locations/{}/secrets/{}/versions/{}:access",
})  # fmt: skip


def request_of(cloud: ContractCloud, call: Call) -> tuple[str, Any]:
    """Query and body of a call that is accepted."""
    skeleton = description.skeleton(call.template)
    ends = [each for each in REQUESTS if skeleton.endswith(each)]
    found = REQUESTS[max(ends, key=len)] if ends and call.verb != "GET" else None
    if call.verb == "GET":
        found = REQUESTS.get(skeleton[skeleton.rfind("/") :]) if "etworking" in call.id else None
        found = REQUESTS["/iam/testPermissions"] if skeleton.endswith("testPermissions") else found
    query, body = found or ("", {} if call.described and call.described.body else None)
    if call.described and not call.described.body:
        body = None
    return query, _links(cloud, skeleton, body)


def _links(cloud: ContractCloud, skeleton: str, body: Any) -> Any:
    """Bodies that name what was made before."""

    def last(collection: str) -> str:
        return next(name for name in reversed(cloud.names) if name.split("/")[-2] == collection)

    if skeleton.endswith(":addContextArtifactsAndExecutions"):
        return {"artifacts": [last("artifacts")], "executions": [last("executions")]}
    if skeleton.endswith(":addExecutionEvents"):
        return {"events": [{"artifact": last("artifacts"), "type": "OUTPUT"}]}
    if skeleton.endswith("/experiments/{}:batchCreate"):
        series = {"displayName": "batched", "valueType": "SCALAR"}
        parent = last("runs")
        return {"requests": [{"parent": parent, "tensorboardTimeSeries": series}]}
    if skeleton.endswith("/runs:batchCreate"):
        run = {"displayName": "batched"}
        parent = last("experiments")
        one = {"parent": parent, "tensorboardRun": run, "tensorboardRunId": "batched"}
        return {"requests": [one]}
    if skeleton.endswith("/runs/{}:write"):
        return {"timeSeriesData": [_points(last("timeSeries"))]}
    if skeleton.endswith("/experiments/{}:write"):
        name = last("timeSeries")
        data = [_points(name)]
        run = name.partition("/timeSeries/")[0]
        return {"writeRunDataRequests": [{"tensorboardRun": run, "timeSeriesData": data}]}
    return body


def _points(series: str) -> dict[str, Any]:
    id_ = series.rpartition("/")[2]
    return {"tensorboardTimeSeriesId": id_, "valueType": "SCALAR", "values": [POINT]}


def tell(cloud: ContractCloud) -> Iterator[Answer]:
    """Call every method: what makes, then what reads and changes, then what deletes."""
    ended = False
    for call in sorted(called(), key=_turn):
        if call.id in NOT_ANSWERED:
            continue
        if call.verb == "DELETE" and not ended:
            ended = True
            _end_jobs(cloud)
        query, body = request_of(cloud, call)
        found: Answer | None = None
        for path in cloud.paths(call):
            found = cloud.send(call, f"{path}?{query}" if query else path, body)
            if found.status == 200:
                break
        yield found or Answer(call, "", 0, "nothing in the cloud has a path like this")


def _end_jobs(cloud: ContractCloud) -> None:
    """Jobs that were cancelled end, as if they had run."""

    def all_ended() -> bool:
        for job in cloud.jobs.list():
            cloud.jobs.move(job.job_id, JobState.CANCELLED, only_from=LIVE_STATES)
        parent = f"/v1/projects/{PROJECT}/locations/{REGION}/hyperparameterTuningJobs"
        found = cloud.session.get(cloud.url + parent).json()["hyperparameterTuningJobs"]
        return all(each["state"] == "JOB_STATE_CANCELLED" for each in found)

    wait_until(all_ended)


def _turn(call: Call) -> tuple[int, int]:
    skeleton = description.skeleton(call.template)
    end = skeleton.rpartition("/")[2]
    deep = skeleton.count("/")
    if call.verb == "DELETE":
        return 9, -deep
    if end in (":disable", "removePeering") or skeleton.endswith((":disable", ":cancel")):
        return 8, deep
    makes = call.verb == "POST" and ":" not in end and end != "{}"
    return (0 if makes else 5), deep
