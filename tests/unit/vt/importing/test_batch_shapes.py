"""Shapes of public specs of Google Batch, written anew: each is carried over, told, or refused.

What is expected is by Google's reference of the message and of gcloud, not by what the tool says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.vt.importing.test_public_shapes import C0, M0, P0, at
from vertex_training.errors import CommandError
from vertex_training_cli.importing import sources

IMAGE = "us-docker.pkg.dev/acme-ml/images/train:1"
SUBMIT = "gcloud batch jobs submit train --location us-central1 "
LOGS = {"logsPolicy": {"destination": "CLOUD_LOGGING"}}
CPU = {"machineType": "n2-standard-8"}


def container(**more: Any) -> dict[str, Any]:
    return {"container": {"imageUri": IMAGE, **more}}


def job(
    *steps: dict[str, Any],
    task: dict[str, Any] | None = None,
    group: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    instance: dict[str, Any] | None = None,
    place: dict[str, Any] | None = None,
    **top: Any,
) -> dict[str, Any]:
    """A message with these parts; ``policy`` is the machine."""
    spec = {"runnables": list(steps or [container()]), "maxRunDuration": "3600s", **(task or {})}
    machine = [{"policy": CPU if policy is None else policy, **(instance or {})}]
    policy_of = {"instances": machine, **(place or {})}
    return {
        "taskGroups": [{"taskSpec": spec, **(group or {})}], "allocationPolicy": policy_of,
        **LOGS, **top,
    }  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """A source; values by their path in the job's spec; words that are said, and not said."""

    source: Any
    values: dict[str, Any] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    name: str = "train.json"
    jobs: int = 1


@dataclass(frozen=True)
class Refused:
    """A source of which no job is made, and words of all its reasons."""

    source: Any
    why: tuple[str, ...]
    name: str = "train.json"


def told(source: Any, *words: str, **values: Any) -> Spec:
    return Spec(source, values, words)


RETRY = {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}
T4 = [{"type": "nvidia-tesla-t4", "count": 1}]
SCHEDULE = "scheduling."
MOUNT = {"gcs": {"remotePath": "acme-data"}, "mountPath": "/mnt/disks/share"}
SHAPES: dict[str, Spec | Refused] = {
    "a container and nothing else, by a heredoc": Spec(
        f"#!/bin/bash\n{SUBMIT} \\\n  --config - <<EOF\n"
        + json.dumps(
            {
                "taskGroups": [
                    {
                        "taskSpec": {"runnables": [container(commands=["python", "t.py"])]},
                        "taskCount": 1,
                    }
                ],
                **LOGS,
            },
            indent=2,
        )
        + "\nEOF\n",
        {
            C0 + "args": ["python", "t.py"],
            M0 + "machineType": "<MACHINE_TYPE>",
            SCHEDULE + "disableRetries": True,
        },
        ("Batch chooses its machine", "no maxRunDuration", "default account"),
        name="run.sh",
    ),
    "a T4 with variables of the step and commas too many": Spec(
        '{"taskGroups": [{"taskCount": "1", "parallelism": "1", "taskSpec": {"computeResource": '
        '{"cpuMilli": "2000", "memoryMib": "8192"}, "runnables": [{"container": {"imageUri": "'
        + IMAGE
        + '", "entrypoint": "", "volumes": []}, "environment": {"variables": {'
        '"DEVICE": "cuda", "THREADS": "4",},}}], "volumes": []}}], "allocationPolicy": '
        '{"instances": '
        '[{"installGpuDrivers": true, "policy": {"provisioningModel": "STANDARD", "machineType": '
        '"n1-standard-4", "accelerators": [{"type": "nvidia-tesla-t4", "count": 1}]}}]}, '
        '"logsPolicy": {"destination": "CLOUD_LOGGING"}}',
        {
            M0 + "acceleratorType": "NVIDIA_TESLA_T4",
            M0 + "acceleratorCount": 1,
            C0 + "env": [{"name": "DEVICE", "value": "cuda"}, {"name": "THREADS", "value": "4"}],
        },
        untold=("GPU drivers", "computeResource", "several of its tasks"),
    ),
    "a message in a variable, sent by a pipe": Spec(
        "#!/bin/bash\nVERSION=2\nbatch_json=$(cat <<EOD\n"
        + json.dumps(
            job(
                {
                    "container": {
                        "imageUri": "us-docker.pkg.dev/acme-ml/images/train:$VERSION",
                        "entrypoint": "/usr/local/bin/entrypoint",
                    }
                }
            )
        )
        + f"\nEOD\n)\n\necho $batch_json | {SUBMIT} --config -\n",
        {
            C0 + "imageUri": "us-docker.pkg.dev/acme-ml/images/train:2",
            C0 + "command": ["/usr/local/bin/entrypoint"],
        },
        name="run.sh",
    ),
    "a file of a script's with names and numbers that it counts": Spec(
        "#!/bin/bash\nMACHINE=e2-standard-4\nCOUNT=$(gcloud storage cat gs://x/m | wc -l)\n"
        'SPEC="out/${JOB}.json"\ncat > "$SPEC" <<JSON\n'
        + json.dumps(job(policy={"machineType": "${MACHINE}"})).replace(
            '"taskSpec"', '"taskCount": ${COUNT}, "taskSpec"'
        )
        + f'\nJSON\n{SUBMIT} --config="$SPEC" || exit 1\n',
        {M0 + "machineType": "e2-standard-4", "workerPoolSpecs[1].replicaCount": "<YOUR_L> - 1"},
        ("how many tasks it has is open",),
        name="run.sh",
    ),
    "the service's own template with everything open": Spec(
        job(
            {
                "container": {
                    "imageUri": "${CONTAINER_IMAGE}",
                    "commands": ["bash", "-c", "${COMMAND}"],
                    "options": "--shm-size=${SHM_SIZE}",
                },
                "environment": {"secretVariables": {"HF_TOKEN": "${HF_TOKEN_SECRET}"}},
            },
            task={"computeResource": {"cpuMilli": "${CPU_MILLI}", "memoryMib": "${MEMORY_MIB}"}},
            policy={
                "bootDisk": {"sizeGb": "${BOOT_DISK_SIZE_GB}"},
                "machineType": "${MACHINE_TYPE}",
                "reservation": "${RESERVATION}",
            },
            logsPolicy={"destination": "${LOGS_DESTINATION}"},
        ),
        {
            P0 + "diskSpec.bootDiskSizeGb": "<BOOT_DISK_SIZE_GB>",
            M0 + "machineType": "${MACHINE_TYPE}",
            C0 + "imageUri": "${CONTAINER_IMAGE}",
        },
        ("docker's options `--shm-size` are left out", "logsPolicy"),
    ),
    "arguments in a field that containers do not have": Spec(
        job(
            container(commands=["python3", "t.py"], args=["--shard", "$(BATCH_TASK_INDEX)"]),
            group={"taskCount": 4, "parallelism": 4},
            policy={
                "machineType": "a2-highgpu-1g",
                "accelerators": [{"type": "nvidia-tesla-a100", "count": 1}],
            },
            place={
                "location": {"allowedLocations": ["zones/us-central1-a", "zones/us-central1-b"]}
            },
            task={"maxRetryCount": 1},
        ),
        {
            M0 + "acceleratorType": "NVIDIA_TESLA_A100",
            "workerPoolSpecs[1].replicaCount": 3,
            SCHEDULE + "restartJobOnWorkerRestart": True,
        },
        (
            "taskGroups[0].taskSpec.runnables[0].container.args is no field of Batch's",
            "us-central1-a, us-central1-b alone",
            "tried again 1 times at most",
            "no GPU drivers",
        ),
    ),
    "YAML that lost an indentation": Spec(
        "taskGroups:\n- taskSpec:\n    runnables:\n    - container:\n        imageUri: "
        + IMAGE
        + "\nallocationPolicy:\ninstances:\n- policy:\n    machineType: g2-standard-96\n"
        "logsPolicy:\n"
        "destination: CLOUD_LOGGING\n",
        {M0 + "machineType": "<MACHINE_TYPE>"},
        (
            "instances is no field of Batch's",
            "destination is no field of Batch's",
            "whatever logsPolicy",
        ),
        name="train.yaml",
    ),
    "variables by the old name, with a token": Spec(
        f"#!/bin/bash\n{SUBMIT}--config=- <<EOF\n"
        + json.dumps(
            job(
                task={"environments": {"HF_TOKEN": "${HF_TOKEN}", "LEVEL": "1"}},
                policy={"machineType": "e2-standard-16", "provisioningModel": "SPOT"},
            )
        )
        + "\nEOF\n",
        {C0 + "env[0]": {"name": "HF_TOKEN", "value": "<HF_TOKEN>"}, SCHEDULE + "strategy": "SPOT"},
        ("environments is an old name",),
        name="run.sh",
    ),
    "drivers at the wrong place": told(
        job(policy={"machineType": "g2-standard-8", "installGpuDrivers": True}),
        "allocationPolicy.instances[0].policy.installGpuDrivers is no field of Batch's",
        "no GPU drivers",
        **{M0 + "acceleratorType": "NVIDIA_L4", M0 + "acceleratorCount": 1},
    ),
    "a check of the image, then the work": Refused(
        job(container(commands=["verify"]), container(commands=["work"])),
        ("it runs 2 containers",),
    ),
    "a script that fetches, then a container": Refused(
        job({"script": {"text": "gsutil cp gs://acme-data/x /tmp"}}, container()),
        ("runs a script on the machine beside its container",),
    ),
    "a step that is a container and a script": Refused(
        job(
            {**container(), "script": {"text": "pip install x"}},
            policy={"machineType": "e2-standard-2", "provisioningModel": "PREEMPTIBLE"},
        ),
        ("this is no job of Batch", 'multiple "executable"', "runnables[0]"),
    ),
    "preemptible machines": told(
        job(policy={"machineType": "e2-standard-2", "provisioningModel": "PREEMPTIBLE"}),
        "PREEMPTIBLE is no longer supported",
        **{SCHEDULE + "strategy": "SPOT"},
    ),
    "a template and a machine": Refused(
        job(instance={"instanceTemplate": "projects/acme/global/instanceTemplates/gpu"}),
        ("this is no job of Batch", 'multiple "policy_template"'),
    ),
    "a template": told(
        {
            "taskGroups": [{"taskSpec": {"runnables": [container()], "maxRunDuration": "60s"}}],
            **LOGS,
            "allocationPolicy": {"instances": [{"instanceTemplate": "acme-gpu"}]},
        },
        "the instance template acme-gpu",
        **{M0 + "machineType": "<MACHINE_TYPE>"},
    ),
    "variables of each task": Refused(
        job(
            group={
                "taskCount": 2,
                "taskEnvironments": [{"variables": {"S": "1"}}, {"variables": {"S": "2"}}],
            }
        ),
        ("BATCH_TASK_INDEX",),
    ),
    "500 tasks, 50 at once": Refused(
        job(group={"taskCount": 500, "parallelism": 50}), ("500 tasks, 50 at once",)
    ),
    "four tasks on a machine": Refused(
        job(group={"taskCount": "8", "taskCountPerNode": "4"}), ("4 tasks on one machine",)
    ),
    "small tasks that Batch packs": told(
        job(
            group={"taskCount": "3"},
            task={"computeResource": {"cpuMilli": "2000", "memoryMib": "2048"}},
        ),
        "several of its tasks on one machine",
        **{"workerPoolSpecs[1].replicaCount": 2},
    ),
    "again after a preemption alone": told(
        job(
            task={"maxRetryCount": 3, "lifecyclePolicies": [RETRY]},
            policy={
                "machineType": "n1-standard-8",
                "provisioningModel": "SPOT",
                "accelerators": T4,
            },
            instance={"installGpuDrivers": True},
            group={"taskCountPerNode": 1, "parallelism": 1},
        ),
        "tried again 3 times at most; here 6",
        "RETRY_TASK after 50001): here only after 50001 to 50004",
    ),
    "again after codes of its own": told(
        job(
            task={
                "maxRetryCount": "3",
                "lifecyclePolicies": [
                    {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [1, 2, 50001]}}
                ],
            }
        ),
        "RETRY_TASK after 1, 2, 50001",
    ),
    "again after anything": told(job(task={"maxRetryCount": 3}), "exit codes of its own (any)"),
    "NFS for a container": Spec(
        job(
            task={
                "volumes": [
                    {
                        "nfs": {"server": "10.0.0.2", "remotePath": "/share"},
                        "mountPath": "/mnt/disks/llm",
                    }
                ]
            }
        ),
        {P0 + "nfsMounts": [{"server": "10.0.0.2", "path": "/share", "mountPoint": "llm"}]},
    ),
    "scripts on NFS with a secret": Refused(
        job({"script": {"text": "pip3 install torch"}}, {"script": {"text": "python3 t.py"}}),
        ("it runs no container", "`vt new image`"),
    ),
    "a script by a flag": Refused(
        f"#!/bin/sh\n{SUBMIT}--script-text='echo hello' --machine-type=e2-standard-4\n",
        ("it runs no container", "line 2"),
        "run.sh",
    ),
    "everything by flags": Spec(
        "#!/bin/sh\nprintf -- '-m\\ntrain\\n' > words.txt\n"
        + SUBMIT
        + "--container-image-uri="
        + IMAGE
        + " --container-entrypoint=python --machine-type=c2-standard-8 --provisioning-model=SPOT "
        "--priority=9\n",
        {
            C0 + "imageUri": IMAGE,
            C0 + "command": ["python"],
            M0 + "machineType": "c2-standard-8",
            SCHEDULE + "strategy": "SPOT",
        },
        ("priority is left out",),
        name="run.sh",
    ),
    "a prefix, and a larger disk for each task": Spec(
        "#!/bin/sh\ngcloud batch jobs submit --job-prefix acme --location us-central1 --config "
        "- <<EOD\n"
        + json.dumps(
            job(
                container(entrypoint="/bin/sh", commands=["-c", 'poetry run python m.py "x?"']),
                task={
                    "computeResource": {
                        "cpuMilli": "4000",
                        "memoryMib": "32000",
                        "bootDiskMib": "200000",
                    }
                },
                policy={"accelerators": [{"type": "nvidia-l4", "count": 1}]},
                instance={"installGpuDrivers": True},
            ).copy()
        ).replace('\\"', '\\\\"')
        + "\nEOD\n",
        {
            P0 + "diskSpec.bootDiskSizeGb": 196,
            C0 + "command": ["/bin/sh"],
            C0 + "args[1]": 'poetry run python m.py "x?"',
            M0 + "acceleratorType": "NVIDIA_L4",
        },
        ("for 4 vCPUs, 31.25 GiB of memory, 1 nvidia-l4",),
        name="run.sh",
    ),
    "a private network by flags": Spec(
        "#!/bin/sh\ngcloud batch jobs submit \\\n"
        " --no-external-ip-address --network global/networks/default "
        "\\\n --subnetwork regions/us-central1/subnetworks/default --location=us-central1 "
        "--config c.json\n",
        {"pscInterfaceConfig": "${network.interface}"},
        name="run.sh",
    ),
    "a network with external addresses": told(
        job(place={"network": {"networkInterfaces": [{"network": "n", "subnetwork": "s"}]}}),
        "it is in s with external addresses",
    ),
    "MPI with barriers": Refused(
        job(
            {"script": {"text": "setup"}},
            {"barrier": {}},
            {"script": {"text": "mpirun hello"}},
            group={
                "taskCount": 3,
                "taskCountPerNode": 1,
                "requireHostsFile": True,
                "permissiveSsh": True,
            },
        ),
        ("it runs no container",),
    ),
    "containers that meet at a barrier": Refused(
        job({"barrier": {}}, container(), group={"taskCount": 2, "permissiveSsh": True}),
        ("wait at a barrier", "torch.distributed"),
    ),
    "what describe prints, in YAML": Spec(
        "allocationPolicy:\n  instances:\n  - policy:\n      machineType: n2d-standard-4\n"
        "      provisioningModel: SPOT\n  labels:\n    batch-job-id: transcode\n  location:\n"
        "    allowedLocations:\n    - regions/europe-west4\n    - zones/europe-west4-a\n"
        "  serviceAccount:\n    email: 123456789012-compute@developer.gserviceaccount.com\n"
        "    scopes:\n"
        "    - https://www.googleapis.com/auth/cloud-platform\n"
        "createTime: '2026-07-11T18:09:08.328Z'\n"
        "labels:\n  env: testing\nlogsPolicy:\n  destination: CLOUD_LOGGING\n"
        "name: projects/acme/locations/europe-west4/jobs/transcode\nstatus:\n"
        "  runDuration: 189.9s\n"
        "  state: SUCCEEDED\n  statusEvents:\n  - description: Job state is set\n"
        "    eventTime: '2026-07-11T18:09:13.685Z'\n    type: STATUS_CHANGED\n  taskGroups:\n"
        "    group0:\n"
        "      counts:\n        SUCCEEDED: '1'\n      instances:\n"
        "      - machineType: n2d-standard-4\n"
        "        taskPack: '1'\ntaskGroups:\n"
        "- name: projects/1/locations/europe-west4/jobs/transcode/taskGroups/group0\n"
        "  parallelism: '1'\n"
        "  taskCount: '1'\n  taskSpec:\n    maxRunDuration: 3600s\n    runnables:\n"
        "    - container:\n"
        f"        imageUri: {IMAGE}\nuid: transcode-7e152098\n"
        f"updateTime: '2026-07-11T18:09:13.685Z'\n",
        {M0 + "machineType": "n2d-standard-4", SCHEDULE + "timeout": "3600s"},
        ("default account",),
        ("left out", "no field", "alone"),
        "job.yaml",
    ),
    "what describe prints, in JSON": Spec(
        job(
            name="projects/acme/locations/us-central1/jobs/bert",
            uid="bert-1",
            createTime="2026-07-11T18:09:08.328228956Z",
            status={"state": "RUNNING"},
            place={"serviceAccount": {"email": "bert@acme-ml.iam.gserviceaccount.com"}},
        ),
        {"serviceAccount": "bert@acme-ml.iam.gserviceaccount.com"},
        (),
        ("default account", "left out"),
    ),
    "a local disk for scratch files": told(
        job(
            policy={
                **CPU,
                "disks": [{"newDisk": {"type": "local-ssd", "sizeGb": 375}, "deviceName": "s"}],
            },
            task={
                "volumes": [
                    {"deviceName": "s", "mountPath": "/mnt/disks/s", "mountOptions": "rw,async"}
                ]
            },
        ),
        "policy.disks is left out",
        "the disk s at /mnt/disks/s is left out",
    ),
    "logs on a disk, messages, and a platform": told(
        job(
            policy={**CPU, "minCpuPlatform": "Intel Ice Lake"},
            priority=7,
            notifications=[
                {"pubsubTopic": "projects/acme/topics/t", "message": {"type": "JOB_STATE_CHANGED"}}
            ],
            logsPolicy={"destination": "PATH", "logsPath": "/mnt/disks/share/logs"},
        ),
        "notifications is left out",
        "messages of the job in the stack file",
        "logsPath is left out",
        "minCpuPlatform is left out",
        "priority is left out",
        "whatever logsPolicy",
    ),
    "streaming, a closed network and a registry's password": Spec(
        job(
            container(
                enableImageStreaming=True,
                blockExternalNetwork=True,
                username="u",
                password="hunter2-Secret-99",
            )
        ),
        {},
        (
            "enableImageStreaming is left out",
            "blockExternalNetwork is left out",
            "password is left out",
        ),
        ("hunter2",),
    ),
    "a bucket at a path of the machine": Spec(
        job(
            container(commands=["--in=/mnt/disks/share/in.csv", "--tmp=/mnt/disks/shared/x"]),
            task={
                "volumes": [MOUNT],
                "environment": {"variables": {"OUT": "/mnt/disks/share/out"}},
            },
        ),
        {
            C0 + "args": ["--in=/gcs/acme-data/in.csv", "--tmp=/mnt/disks/shared/x"],
            C0 + "env[0].value": "/gcs/acme-data/out",
        },
        ("/mnt/disks/share is /gcs/acme-data here",),
    ),
    "a folder of a bucket inside of the container, and one that nobody names": Spec(
        job(
            container(
                commands=["--in=/data/in.csv"],
                volumes=["/mnt/disks/share:/data:rw", "/mnt/disks/other:/other", "/var/lib/x:/x"],
            ),
            task={
                "volumes": [
                    {"gcs": {"remotePath": "acme-data/v1"}, "mountPath": "/mnt/disks/share"},
                    {
                        "gcs": {"remotePath": "acme-other"},
                        "mountPath": "/mnt/disks/other",
                        "mountOptions": ["--uid=1000"],
                    },
                ]
            },
        ),
        {C0 + "args": ["--in=/gcs/acme-data/v1/in.csv"]},
        (
            "no argument or variable names /other",
            "/var/lib/x:/x of the machine is not mounted",
            "mount options --uid=1000 are left out",
        ),
    ),
    "one bucket's mount below another's, read only": Spec(
        job(
            container(
                commands=["--d=/data/x", "--e=/data/deep/y", "--f=/all/c/z"],
                volumes=["/mnt/a/b:/data:ro", "/mnt/a:/data/deep", "/mnt:/all:rw"],
            ),
            task={
                "volumes": [
                    {"gcs": {"remotePath": "one"}, "mountPath": "/mnt/a"},
                    {"gcs": {"remotePath": "two"}, "mountPath": "/mnt/a/b"},
                    {"gcs": {"remotePath": "three"}, "mountPath": "/mnt/c/"},
                ]
            },
        ),
        {C0 + "args": ["--d=/gcs/two/x", "--e=/gcs/one/y", "--f=/gcs/three/z"]},
        (
            "/data is /gcs/two here",
            "/data/deep is /gcs/one here",
            "/mnt/a/b:/data:ro is read-only",
            "no argument or variable names /data/deep/b, where it has a bucket",
        ),
        ("/all:rw is read-only", "is not mounted"),
    ),
    "one bucket's mount below another's, as Batch mounts both": Spec(
        job(
            container(commands=["--d=/mnt/a/b/x"]),
            task={
                "volumes": [
                    {"gcs": {"remotePath": "one"}, "mountPath": "/mnt/a"},
                    {"gcs": {"remotePath": "two"}, "mountPath": "/mnt/a/b"},
                ]
            },
        ),
        {C0 + "args": ["--d=/gcs/two/x"]},
        ("no argument or variable names /mnt/a, where", "/mnt/a/b is /gcs/two here"),
        ("/mnt/a is /gcs/one here",),
    ),
    "options of docker with values": Spec(
        job(
            container(
                options='-e "DB_PASSWORD=my secret pass" -u root:pw -wsecretly --add-host a:pass '
                "--label=secret --privileged"
            )
        ),
        {},
        ("docker's options `-e -u -w --add-host --label --privileged` are left out",),
        ("secret pass", "my", "root", "pw", "secretly", "a:pass", "=secret"),
    ),
    "options of docker that nobody can read": Spec(
        job(container(options='-e "DB_PASSWORD=hunter2')),
        {},
        ("docker's options are left out",),
        ("hunter2", "DB_PASSWORD"),
    ),
    "options of docker in a variable": Spec(
        job(container(options="$OPTIONS")), {}, ("docker's options are left out",)
    ),
    "a machine's memory and network on one without GPUs": Spec(
        job(container(options="--ipc=host --runtime=nvidia --gpus all --network=host")),
        {},
        (
            "docker's options `--ipc` are left out: shared memory is docker's 64 MB",
            "docker's options `--runtime --gpus --network` are left out",
        ),
    ),
    "a machine's memory and network on one with GPUs": Spec(
        job(
            container(options="--ipc host --shm-size=8g --runtime nvidia --gpus all --net host"),
            policy={"machineType": "g2-standard-4"},
            instance={"installGpuDrivers": True},
        ),
        {},
        (
            "docker's options `--ipc --shm-size` are left out: shared memory is docker's 64 MB",
            "docker's options `--net` are left out",
        ),
        ("--runtime", "--gpus"),
    ),
    "a machine's network on two machines": Spec(
        job(
            container(options="--network host --runtime=nvidia --gpus=2"),
            group={"taskCount": 2},
            policy={"machineType": "g2-standard-24"},
            instance={"installGpuDrivers": True},
        ),
        {},
        ("docker's options `--gpus` are left out",),
        ("--network", "--runtime"),
    ),
    "secrets by no name of Secret Manager's": Spec(
        job(
            task={
                "environment": {
                    "secretVariables": {
                        "A": "projects/acme-ml/secrets/a",
                        "B": "projects/acme-ml/locations/us-east1/secrets/b/versions/1",
                        "C": "hunter2-pass",
                        "D": "projects/acme-ml/secrets/d/versions/1",
                    }
                }
            }
        ),
        {C0 + "env[0].value": "<SECRET_OF_A>", C0 + "env[1].value": "<SECRET_OF_B>"},
        (
            "A is the secret projects/acme-ml/secrets/a, which",
            "B is the secret projects/acme-ml/locations/us-east1/secrets/b/versions/1, which",
            "C is a secret, which is no projects/PROJECT/secrets/SECRET/versions/VERSION: "
            "write ${secrets.KEY.value}",
        ),
        ("hunter2", "D is"),
    ),
    "a template of another language in YAML": Refused(
        "taskGroups:\n- taskSpec:\n    runnables:\n    - container: {imageUri: " + IMAGE + "}\n"
        "allocation_policy:\n  instances:\n  - policy:\n      machine_type: {machine_type}\n",
        ("this is no job of Batch",),
        "train.yaml",
    ),
    "snake case": Spec(
        "task_groups:\n- task_count: 1\n  task_spec:\n    max_run_duration: 60s\n    runnables:\n"
        "    - container: {image_uri: "
        + IMAGE
        + ", commands: [a]}\nallocation_policy:\n  instances:\n"
        "  - install_gpu_drivers: true\n    policy:\n      machine_type: g2-standard-4\n"
        "      boot_disk: {size_gb: 200, type: pd-ssd}\n"
        "logs_policy: {destination: CLOUD_LOGGING}\n",
        {
            C0 + "args": ["a"],
            P0 + "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
            M0 + "acceleratorType": "NVIDIA_L4",
        },
        untold=("no field", "GPU drivers"),
        name="train.yaml",
    ),
    "a Makefile": Spec(
        f"IMAGE ?= {IMAGE}\nrun:\n"
        f"\t{SUBMIT} --container-image-uri=$(IMAGE) --machine-type=n1-standard-4\n",
        {C0 + "imageUri": IMAGE},
        ("is the default of IMAGE",),
        name="Makefile",
    ),
    "a page with the file and the command": Spec(
        "# Guide\n\nCreate `batch_job.json`:\n```json\n"
        + json.dumps(job(), indent=2)
        + f"\n```\n\n```bash\n# Submit\n{SUBMIT} --config=batch_job.json\n```\n",
        {M0 + "machineType": "n2-standard-8"},
        ("batch_job.json",),
        name="page.md",
    ),
    "two jobs of one script": Spec(
        "#!/bin/bash\nfor s in a; do :; done\n"
        + "".join(
            f"gcloud batch jobs submit {name} --location=us-east1 --config=c.json "
            f"--machine-type={machine}\n"
            for name, machine in (("small", "c2-standard-8"), ("large", "c2-standard-16"))
        ),
        {M0 + "machineType": "c2-standard-8"},
        jobs=2,
        name="run.sh",
    ),
    "flexible start": Spec(
        job(
            policy={"machineType": "a3-highgpu-8g", "provisioningModel": "FLEX_START"},
            instance={"installGpuDrivers": True},
            task={"maxRunDuration": "86400s"},
        ),
        {SCHEDULE + "strategy": "FLEX_START", M0 + "acceleratorCount": 8},
        (),
        ("GPU drivers",),
    ),
    "a reservation": Spec(
        job(
            policy={
                "machineType": "a3-highgpu-8g",
                "reservation": "projects/acme/reservations/h100",
                "provisioningModel": "RESERVATION_BOUND",
            },
            instance={"installGpuDrivers": True},
            place={"location": {"allowedLocations": ["zones/us-central1-a"]}},
        ),
        {
            M0 + "reservationAffinity.values": [
                "projects/acme/zones/us-central1-a/reservations/h100"
            ]
        },
        ("RESERVATION_BOUND is left out",),
    ),
    "Python that calls gcloud": Spec(
        "import subprocess\nsubprocess.run(['gcloud', 'batch', 'jobs', 'submit', 'x', "
        "'--location', 'us-east1',"
        f" '--container-image-uri', '{IMAGE}', '--machine-type', 'n1-standard-4'], check=True)\n",
        {C0 + "imageUri": IMAGE, M0 + "machineType": "n1-standard-4"},
        name="submit.py",
    ),
    "a duration in hours": Refused(
        job(task={"maxRunDuration": "2h"}), ("this is no job of Batch", "maxRunDuration")
    ),
    "numbers and switches as variables": Spec(
        "taskGroups:\n- taskSpec:\n    runnables:\n    - container: {imageUri: " + IMAGE + "}\n"
        "    environment: {variables: {EPOCHS: 12, LR: 1e-4, DEBUG: true, EMPTY: ''}}\n",
        {
            C0 + "env": [
                {"name": "EPOCHS", "value": "12"},
                {"name": "LR", "value": "1e-4"},
                {"name": "DEBUG", "value": "true"},
                {"name": "EMPTY", "value": ""},
            ]
        },
        name="train.yaml",
    ),
    "a job after another one": told(
        job(dependencies=[{"items": {"first": "SUCCEEDED"}}]), "dependencies is no field of Batch's"
    ),
    "a step that may fail, in the background": told(
        job({**container(), "background": True, "ignoreExitStatus": True, "timeout": "60s"}),
        "background is left out",
        "ignoreExitStatus is left out",
        "the timeout of its step",
    ),
    "a count of tasks below none": Refused(job(group={"taskCount": -1}), ("it has -1 tasks",)),
    "the file of another service": Refused(
        f"#!/bin/sh\necho 'workerPoolSpecs: []' > job.yaml\n{SUBMIT}--config job.yaml\n",
        ("it has no runnables in taskGroups",),
        "run.sh",
    ),
    "a status that is newer than the client": Spec(
        job(status={"state": "PAUSED", "reason": {"x": 1}}, uid="u"), untold=("no field",)
    ),
    "variables and buckets inside of the container": Refused(
        job(
            container(
                environment={"A": "1"},
                volumes=[{"gcs": {"remotePath": "gs://acme/x"}, "mountPath": "/app"}],
            )
        ),
        ("this is no job of Batch", "volumes"),
    ),
    "a folder of one's own for the model": Spec(
        job(task={"environment": {"variables": {"AIP_MODEL_DIR": "gs://acme-out/m"}}}),
        {C0 + "env": [{"name": "AIP_MODEL_DIR", "value": "gs://acme-out/m"}]},
    ),
    "the folders of Vertex AI": Spec(
        job(task={"environment": {"variables": {"AIP_MODEL_DIR": "gs://acme-out/m/model"}}}),
        {"baseOutputDirectory.outputUriPrefix": "gs://acme-out/m"},
    ),
    "no group": Refused({"taskGroups": [], **LOGS}, ("it has no runnables in taskGroups",)),
    "two groups": Refused(
        {"taskGroups": [{"taskSpec": {"runnables": [container()]}}] * 2}, ("2 task groups",)
    ),
    "dollars of the shell": Spec(
        job(
            container(entrypoint="bash", commands=["-c", "echo $(OUT) $(date) ${HOME}"]),
            task={"environment": {"variables": {"OUT": "x"}}},
        ),
        {C0 + "args[1]": "echo $$(OUT) $(date) ${HOME}"},
    ),
}


READ = {name: each for name, each in SHAPES.items() if isinstance(each, Spec)}
REFUSED = {name: each for name, each in SHAPES.items() if isinstance(each, Refused)}


def write(source: Any, name: str, folder: Path) -> Path:
    (folder / "c.json").write_text(json.dumps(job()))
    text = source if isinstance(source, str) else json.dumps(source, indent=2)
    (folder / name).write_text(text)
    return folder / name


def test_there_are_at_least_thirty_shapes() -> None:
    assert len(SHAPES) >= 30


@pytest.mark.parametrize("shape", READ.values(), ids=READ)
def test_a_spec_is_carried_over_and_what_is_not_is_told(tmp_path: Path, shape: Spec) -> None:
    found = sources.read(write(shape.source, shape.name, tmp_path))
    assert [each.backend for each in found.jobs] == ["batch"] * shape.jobs
    for path, value in shape.values.items():
        assert at(found.jobs[0].spec, path) == value, path
    said = [*found.remarks, *(x for j in found.jobs for x in (*j.remarks, *map(str, j.notes)))]
    for words in shape.told:
        assert any(words in each for each in said), (words, said)
    for words in shape.untold:
        assert not any(words in each for each in said), said


@pytest.mark.parametrize("shape", REFUSED.values(), ids=REFUSED)
def test_a_spec_that_would_be_another_job_is_refused(tmp_path: Path, shape: Refused) -> None:
    with pytest.raises(CommandError) as refused:
        sources.read(write(shape.source, shape.name, tmp_path))
    for words in shape.why:
        assert words in str(refused.value), str(refused.value)
