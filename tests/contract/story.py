"""One call of every method that is served, with an answer that is no refusal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from localgcp.vertex.records import LIVE_STATES, JobState
from tests.contract import description
from tests.contract.cloud import BUCKET, REGION, Answer, ContractCloud
from tests.contract.served import Call, calls
from tests.unit.localcloud.conftest import PROJECT, TRAINER, wait_until
from tests.unit.localcloud.serving.conftest import IMAGE, PROGRAM

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
BATCH_JOB: Final = {
    "taskGroups": [{
        "taskCount": "2", "requireHostsFile": True,
        "taskSpec": {
            "runnables": [
                {"container": {"imageUri": "python:3.11", "commands": ["true"]}, "timeout": "9.5s"},
                {"barrier": {"name": "b"}},
                {"script": {"text": "true"}, "alwaysRun": True},
            ],
            "maxRetryCount": 3, "maxRunDuration": "600s",
            "lifecyclePolicies": [
                {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}
            ],
            "environment": {"variables": {"A": "b"}},
            "volumes": [{"gcs": {"remotePath": BUCKET}, "mountPath": "/gcs/data"}],
        },
    }],
    "allocationPolicy": {
        "serviceAccount": {"email": TRAINER},
        "instances": [{"policy": {
            "machineType": "n1-standard-4", "provisioningModel": "SPOT",
            "accelerators": [{"type": "nvidia-tesla-t4", "count": "1"}],
        }}],
    },
    "logsPolicy": {"destination": "CLOUD_LOGGING"}, "priority": "7", "labels": {"team": "ml"},
}  # fmt: skip
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
RESOURCES: Final = {
    "machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1, "maxReplicaCount": 2,
}  # fmt: skip
MODEL: Final = {
    "displayName": "m", "versionAliases": ["first"], "versionDescription": "d", **LABELS,
    "containerSpec": {
        "imageUri": IMAGE, "command": [sys.executable, str(PROGRAM), "tell"],
        "env": [{"name": "MY_WORD", "value": "7"}], "ports": [{"containerPort": 8080}],
        "predictRoute": "/p", "healthRoute": "/h", "deploymentTimeout": "60s",
    },
}  # fmt: skip
DATASET: Final = {"projectId": PROJECT, "datasetId": "facts"}
LOADED: Final = {**DATASET, "tableId": "loaded"}
SQL: Final = "SELECT name, age, DATE '2026-11-24' AS day FROM facts.loaded WHERE age > @least"
QUERY: Final = {
    "query": SQL, "useLegacySql": False, "parameterMode": "NAMED",
    "queryParameters": [{
        "name": "least", "parameterType": {"type": "INT64"}, "parameterValue": {"value": "7"},
    }],
}  # fmt: skip
LOAD: Final = {
    "sourceUris": [f"gs://{BUCKET}/rows.csv"], "skipLeadingRows": 1, "autodetect": True,
    "destinationTable": LOADED,
}  # fmt: skip
EXPORT: Final = {"sourceTable": LOADED, "destinationUris": [f"gs://{BUCKET}/out-*.csv"]}
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
    "/v3/projects/{}/timeSeries": (
        'filter=metric.type="ml.googleapis.com/training/accelerator/utilization"', None,
    ),
    "/timeSeries": ("", {"displayName": "s", "valueType": "SCALAR"}),
    "/builds": ("", BUILD),
    "/v1/projects/{}/locations/{}/jobs": (
        "jobId=job&requestId=0e1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", BATCH_JOB,
    ),
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
    "/models:upload": ("", {"modelId": "m", "model": MODEL, "serviceAccount": TRAINER}),
    "/models/{}": ("updateMask=description", {"description": "d"}),
    ":mergeVersionAliases": ("", {"versionAliases": ["other"]}),
    "/endpoints": ("endpointId=77", {
        "displayName": "e", "dedicatedEndpointEnabled": True, **LABELS,
    }),
    "/endpoints/{}": ("updateMask=displayName", {"displayName": "f"}),
    ":mutateDeployedModel": ("", {
        "updateMask": "dedicatedResources.minReplicaCount",
        "deployedModel": {"id": "1", "dedicatedResources": {"minReplicaCount": 2}},
    }),
    ":undeployModel": ("", {"deployedModelId": "1"}),
    ":predict": ("", {"instances": [1, {"a": ["b"]}], "parameters": {"c": 1.5}}),
    ":rawPredict": ("", {"instances": [1]}),
    "/datasets": ("", {"datasetReference": DATASET, "location": "us-central1", **LABELS}),
    "/datasets/{}/tables": ("", {
        "tableReference": {**DATASET, "tableId": "made"},
        "schema": {"fields": [{"name": "id", "type": "INTEGER", "mode": "REQUIRED"}]},
    }),
    "/v2/projects/{}/jobs": ("", {"configuration": {"load": LOAD, **LABELS}}),
    "/queries": ("", QUERY),
}  # fmt: skip
#: The same, of further calls of a method.
FURTHER: Final[dict[str, tuple[Any, ...]]] = {
    "/models:upload": ({"parentModel": f"projects/{PROJECT}/locations/{REGION}/models/m",
                        "model": MODEL},),
    "/v2/projects/{}/jobs": tuple(
        {"configuration": {**each, **LABELS}}
        for each in ({"extract": EXPORT}, {"query": QUERY}, {"query": QUERY, "dryRun": True})
    ),
    "/queries": ({**QUERY, "dryRun": True},),
}  # fmt: skip
#: Served by a rule of its client, and here always refused: ``differences`` has the reason.
NOT_ANSWERED: Final = frozenset({
    "google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion GET "
    "/v1/projects/{}/locations/{}/secrets/{}/versions/{}:access",
    *(
        f"google.cloud.aiplatform.v1.PredictionService/{method[0].upper()}{method[1:]} POST "
        f"/v1/projects/{{}}/locations/{{}}/publishers/{{}}/models/{{}}:{method}"
        for method in ("predict", "rawPredict")
    ),
})  # fmt: skip


def _key(call: Call, table: Mapping[str, object]) -> str | None:
    skeleton = description.skeleton(call.template)
    return max((each for each in table if skeleton.endswith(each)), key=len, default=None)


def request_of(cloud: ContractCloud, call: Call) -> tuple[str, Any]:
    """Query and body of a call that is accepted."""
    skeleton = description.skeleton(call.template)
    end = _key(call, REQUESTS)
    found = REQUESTS[end] if end and call.verb not in ("GET", "DELETE") else None
    if call.verb == "GET":
        found = REQUESTS.get(skeleton[skeleton.rfind("/") :]) if "etworking" in call.id else None
        asked = ("/iam/testPermissions", "/v3/projects/{}/timeSeries")
        found = REQUESTS[end] if end in asked else found
    query, body = found or ("", {} if call.described and call.described.body else None)
    if call.described and not call.described.body:
        body = None
    return query, _links(cloud, skeleton, body)


def _links(cloud: ContractCloud, skeleton: str, body: Any) -> Any:
    """Bodies that name what was made before."""

    def last(collection: str) -> str:
        return next(name for name in reversed(cloud.names) if name.split("/")[-2] == collection)

    if skeleton.endswith(":deployModel"):
        deployed = {"id": "1", "model": last("models"), "dedicatedResources": RESOURCES}
        return {"deployedModel": deployed, "trafficSplit": {"0": 100}}
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
    for call in sorted(calls(), key=_turn):
        if call.id in NOT_ANSWERED:
            continue
        if call.verb == "DELETE" and not ended:
            ended = True
            _end_jobs(cloud)
        query, body = request_of(cloud, call)
        further = FURTHER.get(_key(call, FURTHER) or "", ()) if call.verb == "POST" else ()
        for each in (body, *further):
            found = Answer(call, "", 0, "nothing in the cloud has a path like this")
            for path in cloud.paths(call):
                found = cloud.send(call, f"{path}?{query}" if query else path, each)
                if found.status == 200:
                    break
            yield found
            yield from _ended(cloud, found)


def _ended(cloud: ContractCloud, answer: Answer) -> Iterator[Answer]:
    """The operation or the job of BigQuery that was answered, when it has ended."""
    document, kind = answer.document, answer.call.described and answer.call.described.response
    if answer.status != 200:
        return
    if kind == "GoogleLongrunningOperation" and not document.get("done"):
        path = f"/v1/{document['name']}"
    elif kind == "Job" and "jobReference" in document and document["status"]["state"] != "DONE":
        path = f"/bigquery/v2/projects/{PROJECT}/jobs/{document['jobReference']['jobId']}"
    else:
        return
    get = replace(answer.call, verb="GET")

    def has_ended() -> bool:
        found = cloud.send(get, path).document
        return found.get("done") or found.get("status", {}).get("state") == "DONE"

    wait_until(has_ended)
    found = cloud.send(get, path)
    failure = found.document.get("error") or found.document.get("status", {}).get("errors")
    yield replace(found, call=answer.call, status=500 if failure else found.status)


def _end_jobs(cloud: ContractCloud) -> None:
    """Jobs that were cancelled end, as if they had run."""

    def all_ended() -> bool:
        for job in cloud.jobs.list():
            cloud.jobs.move(job.job_id, JobState.CANCELLED, only_from=LIVE_STATES)
        parent = f"/v1/projects/{PROJECT}/locations/{REGION}/hyperparameterTuningJobs"
        found = cloud.session.get(cloud.url + parent).json()["hyperparameterTuningJobs"]
        return all(each["state"] == "JOB_STATE_CANCELLED" for each in found)

    wait_until(all_ended)


def _turn(call: Call) -> tuple[int, int, bool]:
    skeleton = description.skeleton(call.template)
    end = skeleton.rpartition("/")[2]
    deep = skeleton.count("/")
    if call.verb == "DELETE":
        return 9, -deep, ":" not in end  # a version before its model
    if end == "removePeering" or end.endswith((":disable", ":cancel", ":undeployModel")):
        return 8, deep, False
    makes = call.verb == "POST" and (":" not in end or end == "models:upload") and end != "{}"
    return (0 if makes else 5), deep, False
