"""All of a small stack: each component, what is in it, its inputs, and what it waits for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE, PSC
from vertex_training import program
from vertex_training.stack import from_raw

KEY = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/k"
ZEROS = "0" * 64
JOB = f"""\
serviceAccount: ${{serviceAccounts.trainer}}
scheduling: {{timeout: 3600s}}
baseOutputDirectory: {{outputUriPrefix: "${{buckets.theirs}}/${{job.name}}"}}
pscInterfaceConfig: ${{network.interface}}
workerPoolSpecs:
- machineSpec: {{machineType: n1-standard-8, acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 1}}
  containerSpec: {{imageUri: "us-central1-docker.pkg.dev/acme-ml-prod/x/y@sha256:{ZEROS}"}}
"""
STACK: dict[str, Any] = {
    "labels": {"org": "ml"},
    "teams": {"vision": {"labels": {"cost": "7"}, "submitters": ["group:v@example.com"]}},
    "deployers": ["group:ops@example.com"],
    "buckets": {"data": {"team": "vision"}, "theirs": {"existing": "acme-theirs"}},
    "secrets": {
        "token": {
            "team": "vision", "description": "of a tracker", "labels": {"kind": "key"},
            "protect": True,
        },
        "plain": {},
        "there": {"existing": "projects/acme-ml-prod/secrets/x"},
    },
    "serviceAccounts": {
        "trainer": {
            "team": "vision", "reads": ["data"], "writes": ["theirs"],
            "secrets": ["token", "there"], "description": "trains",
        },
        "given": {"existing": "given-1@acme-ml-prod.iam.gserviceaccount.com", "reads": ["theirs"]},
    },
    "encryption": {"key": KEY},
    "tensorboard": "training",
    "snapshots": {"clicks": {"query": "q.sql", "maxBytesBilled": 10**9}},
    "models": {
        "titanic": {
            "run": [1, 2], "team": "vision", "onDelete": "delete",
            "container": f"us-central1-docker.pkg.dev/acme/serving/x@sha256:{ZEROS}",
        }
    },
    "jobs": {
        "titanic": {"file": "t.yaml", "run": 2},
        "weekly": {
            "file": "t.yaml", "schedule": {"cron": "0 6 * * 1"}, "idleStop": "5% for 30m"
        },
    },
    "endpoints": {
        "titanic": {
            "machine": "n1-standard-2", "split": {"run 1": 90, "run 2": 10}, "team": "vision",
            "public": True,
        },
        "inside": {
            "model": "titanic", "machine": "n1-standard-2", "split": {"run 2": 100},
            "team": "vision", "account": "trainer",
        },
    },
    "network": PSC,
}  # fmt: skip
LABELS = {"managed-by": "pulumi", "stack": "prod", "org": "ml"}
OF_TEAM = LABELS | {"team": "vision", "cost": "7"}
TRAINER = "trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"


@dataclass
class Made:
    """What was registered, by name."""

    types: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    waits: dict[str, set[str]] = field(default_factory=dict)
    requests: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def of(self, component: str) -> dict[str, Any]:
        """Inputs of what is in a component."""
        return {name: self.inputs[name] for name, in_ in self.parents.items() if in_ == component}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    root = tmp_path_factory.mktemp("checkout")
    (root / "q.sql").write_text("SELECT 1")
    (root / "t.yaml").write_text(JOB)
    with pytest.MonkeyPatch.context() as patch:
        yield _registered(root, STACK, patch)


def _registered(root: Path, raw: dict[str, Any], patch: pytest.MonkeyPatch) -> Made:
    found, recorder, register = Made(), Recorder(), MockMonitor.RegisterResource
    register_outputs = MockMonitor.RegisterResourceOutputs

    def record(self: MockMonitor, request: Any) -> Any:
        found.requests[request.name] = request
        found.parents[request.name] = request.parent.rpartition("::")[2]
        found.waits[request.name] = {urn.rpartition("::")[2] for urn in request.dependencies}
        return register(self, request)

    def end(self: MockMonitor, request: Any) -> Any:
        outputs = MessageToDict(request.outputs)
        found.outputs[request.urn.rpartition("::")[2]] = outputs
        return register_outputs(self, request)

    patch.setattr(MockMonitor, "RegisterResource", record)
    patch.setattr(MockMonitor, "RegisterResourceOutputs", end)
    patch.setattr(pulumi.log, "info", lambda text, *_, **__: found.said.append(text))
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "training", "prod", preview=True)

    @pulumi.runtime.test
    def run() -> None:
        program.deploy(from_raw(BASE | raw, root))

    run()
    for name, (type_, inputs) in recorder.registered.items():
        found.types[name] = type_
        found.inputs[name] = {key: value for key, value in inputs.items() if key != "__provider"}
    return found


def test_components_have_the_types_and_names_that_states_have(made: Made) -> None:
    found = {n: t for n, t in made.types.items() if t.startswith("vertextraining:")}
    assert found == {
        "apis": "vertextraining:apis:Apis",
        "encryption": "vertextraining:encryption:KeyAccess",
        "storage": "vertextraining:storage:Storage",
        "registry": "vertextraining:registry:Registry",
        "secrets": "vertextraining:secrets:Secrets",
        "trainer": "vertextraining:identities:TrainingAccount",
        "given": "vertextraining:identities:TrainingAccount",
        "packages": "vertextraining:packages:Packages",
        "network": "vertextraining:network:Network",
        "network-psc": "vertextraining:network:PscInterface",
        "snapshots": "vertextraining:snapshots:Snapshots",
        "tensorboard": "vertextraining:tensorboard:Tensorboard",
        "training": "vertextraining:training:Training",
        "serving": "vertextraining:serving:Serving",
        "protection": "vertextraining:protection:Protection",
    }
    around = {name: made.parents[name] for name in found if name != "network-psc"}
    assert len(set(around.values())) == 1
    assert made.parents["network-psc"] == "network"


def test_what_is_protected_is_the_secret_and_so_the_stack(made: Made) -> None:
    protected = {name for name, request in made.requests.items() if request.protect}
    assert protected == {"secrets-token", "protection"}
    # The grants on the key, and a part of the network, have others that wait for them.
    rest = {name for name in made.types if name.startswith("encryption")}
    assert made.waits["protection"] == set(made.types) - rest - {"network-psc", "protection"}


def test_secrets_are_in_the_region_with_the_stacks_key(made: Made) -> None:
    replica = {"location": "us-central1", "customerManagedEncryption": {"kmsKeyName": KEY}}
    common = {"project": "acme-ml-prod", "replication": {"userManaged": {"replicas": [replica]}}}
    assert made.of("secrets") == {
        "secrets-token": common | {
            "secretId": "token-prod",
            "labels": OF_TEAM | {"kind": "key"},
            "annotations": {"description": "of a tracker"},
        },
        "secrets-plain": common | {"secretId": "plain-prod", "labels": LABELS},
    }  # fmt: skip
    assert "apis-secretmanager" in made.waits["secrets-plain"]


def test_an_account_is_made_or_given_and_has_each_grant_once(made: Made) -> None:
    of_trainer = {"member": f"serviceAccount:{TRAINER}"}
    account = {"serviceAccountId": f"projects/acme-ml-prod/serviceAccounts/{TRAINER}"}
    acts = {"role": "roles/iam.serviceAccountUser"}
    reads = {"role": "roles/secretmanager.secretAccessor"}
    assert made.of("trainer") == {
        "trainer-account": {
            "project": "acme-ml-prod",
            "accountId": "trainer-prod",
            "displayName": "Training jobs: trainer (prod)",
            "description": "trains",
        },
        "trainer-reads-data": of_trainer
        | {"bucket": "acme-ml-prod-data-prod", "role": "roles/storage.objectViewer"},
        "trainer-writes-theirs": of_trainer
        | {"bucket": "acme-theirs", "role": "roles/storage.objectUser"},
        "trainer-reads-secret-token": of_trainer
        | reads
        | {"secretId": "projects/acme-ml-prod/secrets/token-prod"},
        "trainer-reads-secret-there": of_trainer
        | reads
        | {"secretId": "projects/acme-ml-prod/secrets/x"},
        "trainer-logs": of_trainer | {"project": "acme-ml-prod", "role": "roles/logging.logWriter"},
        "trainer-submitter-group:v@example.com": account | acts | {"member": "group:v@example.com"},
        "trainer-submitter-group:ops@example.com": account
        | acts
        | {"member": "group:ops@example.com"},
    }
    assert made.waits["trainer-logs"] == {"trainer-account"}
    assert made.waits["trainer-reads-data"] == {"trainer-account", "storage-data"}
    assert set(made.of("given")) == {
        "given-reads-theirs",
        "given-logs",
        "given-submitter-group:ml@example.com",
        "given-submitter-group:ops@example.com",
    }


def test_services_that_use_the_key_have_their_accounts_first(made: Made) -> None:
    agents = {
        f"encryption-{service}-agent": {
            "project": "acme-ml-prod",
            "service": f"{service}.googleapis.com",
        }
        for service in ("storage", "artifactregistry", "secretmanager")
    }
    assert made.of("encryption") == agents
    assert "apis-storage" in made.waits["encryption-storage-agent"]


def test_a_tensorboard_is_made_with_the_key_of_jobs_and_its_cost_is_told(made: Made) -> None:
    assert made.of("tensorboard") == {
        "tensorboard-instance": {
            "project": "acme-ml-prod",
            "region": "us-central1",
            "displayName": "training",
            "description": "Logs of training jobs of stack prod",
            "encryptionSpec": {"kmsKeyName": KEY},
            "labels": LABELS,
        }
    }
    told = [line for line in made.said if line.startswith("TensorBoard 'training' is billed by")]
    assert len(told) == 1


def test_jobs_reach_the_network_by_an_interface(made: Made) -> None:
    assert made.of("network-psc") == {
        "network-psc-attachment": {
            "project": "acme-ml-prod",
            "region": "us-central1",
            "name": "training-prod",
            "description": "Training jobs of stack prod",
            "connectionPreference": "ACCEPT_AUTOMATIC",
            "subnetworks": ["network-subnet-id"],
        }
    }
    assert made.inputs["network-attaches"] == {
        "project": "acme-ml-prod",
        "role": "roles/compute.networkAdmin",
        "member": AGENT,
    }
    assert made.inputs["network-subnet"] == {
        "project": "acme-ml-prod",
        "region": "us-central1",
        "name": "training-prod",
        "network": "network-vpc-id",
        "ipCidrRange": "10.20.0.0/26",
        "privateIpGoogleAccess": True,
        "logConfig": {
            "aggregationInterval": "INTERVAL_10_MIN",
            "flowSampling": 0.5,
            "metadata": "INCLUDE_ALL_METADATA",
        },
    }
    assert made.inputs["network-vpc"] == {
        "project": "acme-ml-prod",
        "name": "training-prod",
        "description": "Training jobs of stack prod",
        "autoCreateSubnetworks": False,
        "routingMode": "REGIONAL",
    }
    assert made.inputs["network-allow-workers"] == {
        "project": "acme-ml-prod",
        "name": "training-prod-workers",
        "network": "network-vpc-id",
        "description": "Machines of training jobs among themselves",
        "direction": "INGRESS",
        "sourceRanges": ["10.20.0.0/26"],
        "destinationRanges": ["10.20.0.0/26"],
        "allows": [{"protocol": protocol} for protocol in ("tcp", "udp", "icmp")],
    }


def request_of(job: str, directory: str) -> dict[str, Any]:
    return {
        "displayName": f"prod-{job}",
        "encryptionSpec": {"kmsKeyName": KEY},
        "jobSpec": {
            "serviceAccount": TRAINER,
            "scheduling": {"timeout": "3600s"},
            "baseOutputDirectory": {"outputUriPrefix": directory},
            "pscInterfaceConfig": {
                "networkAttachment": (
                    "projects/acme-ml-prod/regions/us-central1/networkAttachments/training-prod"
                )
            },
            "workerPoolSpecs": [
                {
                    "machineSpec": {
                        "machineType": "n1-standard-8",
                        "acceleratorType": "NVIDIA_TESLA_T4",
                        "acceleratorCount": 1,
                    },
                    "containerSpec": {
                        "imageUri": f"us-central1-docker.pkg.dev/acme-ml-prod/x/y@sha256:{ZEROS}"
                    },
                }
            ],
        },
    }


def test_a_job_and_a_schedule_have_request_identity_and_options(made: Made) -> None:
    job, schedule = made.inputs["training-titanic"], made.inputs["training-weekly-schedule"]
    assert json.loads(job.pop("request")) == request_of("titanic", "gs://acme-theirs/titanic")
    assert json.loads(schedule.pop("request")) == request_of(
        "weekly", "gs://acme-theirs/weekly/${job.slot}"
    )
    assert len(job.pop("requestId")) == len(schedule.pop("requestId")) == 20
    place = {"project": "acme-ml-prod", "region": "us-central1", "stack": "prod"}
    options = {
        "controlBucket": "acme-ml-prod-control-prod",
        "labels": {"org": "ml", "team": "vision", "cost": "7"},
        "onDelete": "keep",
    }
    assert job == {"submission": place | {"job": "titanic", "run": 2}, "options": options}
    assert schedule == {
        "submission": place | {"job": "weekly", "run": 1, "section": "jobs"},
        "options": options | {"idleStop": "5% for 30m"},
        "schedule": {
            "cron": "0 6 * * 1",
            "timeZone": "Etc/UTC",
            "paused": False,
            "missed": "latest",
        },
    }
    assert (
        made.parents["training-titanic"] == made.parents["training-weekly-schedule"] == "training"
    )


def test_jobs_wait_for_all_that_they_may_need(made: Made) -> None:
    assert made.waits["training-titanic"] == {
        *("apis", "storage", "registry", "trainer", "given", "packages", "network", "snapshots"),
        "tensorboard",
    }
    assert made.waits["training-titanic"] == made.waits["training-weekly-schedule"]
    assert "storage-data" not in made.waits["training-titanic"]
    assert made.waits["training"] >= {"storage-data", "trainer-logs", "apis-aiplatform"}


def test_a_snapshot_is_read_as_declared_and_kept_in_the_stacks_bucket(made: Made) -> None:
    snapshot = made.inputs["snapshots-clicks"]
    assert json.loads(snapshot.pop("request")) == {
        "sql": "SELECT 1", "parameters": {}, "asOf": None, "format": "parquet",
        "location": "us-central1",
    }  # fmt: skip
    assert len(snapshot.pop("requestId")) == 20
    assert snapshot == {
        "snapshot": {
            "project": "acme-ml-prod", "stack": "prod", "name": "clicks", "run": 1,
            "bucket": "acme-ml-prod-data-prod",
        },
        "options": {"controlBucket": "acme-ml-prod-control-prod", "maxBytesBilled": str(10**9)},
    }  # fmt: skip
    assert made.waits["snapshots-clicks"] >= {"apis-bigquery", "storage-data"}


def test_models_are_made_one_version_after_the_other(made: Made) -> None:
    first, second = (made.inputs[f"serving-titanic-run-{run}"] for run in (1, 2))
    container = {
        "imageUri": f"us-central1-docker.pkg.dev/acme/serving/x@sha256:{ZEROS}",
        "predictRoute": "/predict", "healthRoute": "/health", "ports": [{"containerPort": 8080}],
    }  # fmt: skip
    assert json.loads(first.pop("container")) == json.loads(second.pop("container")) == container
    ids = [first.pop("requestId"), second.pop("requestId")]
    assert len(set(ids)) == 2
    for run, version in ((1, first), (2, second)):
        assert version == {
            "model": {
                "project": "acme-ml-prod", "region": "us-central1", "stack": "prod",
                "model": "titanic", "id": "titanic-prod", "job": "titanic", "run": run,
            },
            "artifacts": "model",
            "files": [],
            "options": {
                "controlBucket": "acme-ml-prod-control-prod",
                "key": KEY,
                "labels": OF_TEAM | {"vt-program": "training_prod"},
                "onDelete": "delete",
            },
        }  # fmt: skip
    assert "serving-titanic-run-1" in made.waits["serving-titanic-run-2"]
    assert made.waits["serving-titanic-run-1"] >= {"training", "storage"}


def test_an_endpoint_is_public_or_inside_of_the_project(made: Made) -> None:
    public = made.inputs["serving-titanic-endpoint"]
    inside = made.inputs["serving-inside-endpoint"]
    own = {"vt-stack": "prod"}
    assert public.pop("labels") == OF_TEAM | own | {"vt-endpoint": "titanic", "vt-public": "named"}
    assert inside.pop("labels") == OF_TEAM | own | {"vt-endpoint": "inside"}
    ids = [public.pop("name"), inside.pop("name")]
    place = {"project": "acme-ml-prod", "location": "us-central1", "region": "us-central1"}
    key = {"encryptionSpec": {"kmsKeyName": KEY}}
    assert public == place | key | {"displayName": "titanic-prod", "dedicatedEndpointEnabled": True}
    connect = {"enablePrivateServiceConnect": True, "projectAllowlists": ["acme-ml-prod"]}
    assert inside == place | key | {
        "displayName": "inside-prod",
        "privateServiceConnectConfig": connect,
    }
    for name, id_ in zip(("titanic", "inside"), ids, strict=True):
        request = made.requests[f"serving-{name}-endpoint"]
        assert list(request.ignoreChanges) == ["trafficSplit"]
        assert made.inputs[f"serving-{name}-cleanup"] == {
            "shell": f"serving-{name}-endpoint-id",
            "options": {},
            "endpoint": {
                "project": "acme-ml-prod", "region": "us-central1", "stack": "prod", "key": name,
                "id": id_,
            },
        }  # fmt: skip


def test_traffic_names_each_version_with_its_machines_and_share(made: Made) -> None:
    traffic = made.inputs["serving-titanic-traffic"]
    deployed = traffic.pop("deployed")
    for run in (1, 2):
        version = deployed[f"run {run}"]
        assert version.pop("deployedModelId").isdecimal()
        assert version == {
            "model": f"serving-titanic-run-{run}-id",
            "requestId": version["requestId"],
            "machine": {"machineType": "n1-standard-2"},
            "min": 1,
            "max": 1,
        }
    assert traffic == {
        "shell": "serving-titanic-endpoint-id",
        "split": {"run 1": 90, "run 2": 10},
        "options": {},
        "endpoint": {
            "project": "acme-ml-prod", "region": "us-central1", "stack": "prod", "key": "titanic",
            "name": "titanic", "model": "titanic", "team": "vision", "public": True,
            "private": False, "id": traffic["endpoint"]["id"],
        },
    }  # fmt: skip
    assert "serving-titanic-cleanup" in made.waits["serving-titanic-traffic"]
    inside = made.inputs["serving-inside-traffic"]
    deployed = inside.pop("deployed")["run 2"]
    assert (deployed["model"], deployed["account"]) == ("serving-titanic-run-2-id", TRAINER)
    assert inside == {
        "shell": "serving-inside-endpoint-id",
        "split": {"run 2": 100},
        "options": {},
        "endpoint": {
            "project": "acme-ml-prod", "region": "us-central1", "stack": "prod", "key": "inside",
            "name": "inside", "model": "titanic", "team": "vision", "public": False,
            "private": True, "account": TRAINER, "id": inside["endpoint"]["id"],
        },
    }  # fmt: skip
