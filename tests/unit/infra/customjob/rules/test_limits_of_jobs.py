"""Both sides of each limit of a CustomJob: rule, place and value of what is just wrong."""

import pytest
import yaml

from tests.unit.infra.customjob.rules.test_limits import IMAGE, told
from tests.unit.infra.customjob.test_rules import gpu, job

POOL = "workerPoolSpecs[0]"
TASK = f"{POOL}.containerSpec"
BOARD = "projects/p/locations/us-central1/tensorboards/1"
OUTPUT = {"outputUriPrefix": "gs://bucket/x"}
MEGA = gpu("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8)
SPARE = {"persistentResourceId": "mine"}
T4 = gpu("n1-standard-4", "NVIDIA_TESLA_T4", 1)
PREBUILT = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
MOUNT = {"server": "10.0.0.2", "path": "/export", "mountPoint": "data"}
NETWORK = "projects/210987654321/global/networks/training"
SECRET = "projects/acme-ml-dev/secrets/token"


def running(*, fields=None, image=IMAGE, pools=(), **task):
    """A job with these fields of its container."""
    content = job(None, *pools, **(fields or {}))
    content["workerPoolSpecs"][0]["containerSpec"] = {"imageUri": image, **task}
    return content


def shell(script, *, program=("bash", "-c")):
    return running(command=list(program), args=[script])


def env(*pairs, **more):
    return running(env=[{"name": name, "value": value} for name, value in pairs], **more)


def worker(machine=None):
    machine = machine or {"machineType": "n1-standard-4"}
    return {"machineSpec": machine, "replicaCount": 1, "containerSpec": {"imageUri": IMAGE}}


def disk(**fields):
    content = job()
    content["workerPoolSpecs"][0]["diskSpec"] = fields
    return content


def scheduled(machine=None, **fields):
    return job(machine, scheduling=fields)


def flexible(**fields):
    return scheduled(gpu("g2-standard-4", "NVIDIA_L4", 1), strategy="FLEX_START", **fields)


def spot(**task):
    return running(fields={"scheduling": {"timeout": "60s", "strategy": "SPOT"}}, **task)


def mounting(mount, **fields):
    content = job(**fields)
    content["workerPoolSpecs"][0]["nfsMounts"] = [mount]
    return content


def packed(count, **task):
    """A job with so many packages in a prebuilt image."""
    content = job()
    content["workerPoolSpecs"][0].pop("containerSpec")
    content["workerPoolSpecs"][0]["pythonPackageSpec"] = {
        "executorImageUri": PREBUILT,
        "packageUris": [f"gs://bucket/{n}.tar.gz" for n in range(count)],
        "pythonModule": "titanic.task",
        **task,
    }
    return content


def affine(kind, *names):
    """A job whose machines ask for reservations of these names."""
    names = [f"projects/acme-ml-dev/zones/us-central1-a/reservations/{name}" for name in names]
    key = "compute.googleapis.com/reservation-name"
    affinity = {"reservationAffinityType": kind, "key": key, "values": names}
    return job({"machineType": "n1-standard-4", "reservationAffinity": affinity})


AFFINITY = f"{POOL}.machineSpec.reservationAffinity"
GOES_ON = [("script-goes-on", f"{TASK}.args[0]", "")]
RESERVED = f"{TASK}.env[0].name"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # 100 variables and 100,000 characters.
        (env(*((f"A{n}", "x") for n in range(100))), []),
        (env(*((f"A{n}", "x") for n in range(101))), [("env-count", f"{TASK}.env", "101")]),
        (running(args=["x" * 99_999, "y"]), []),
        (running(args=["x" * 99_999, "yz"]), [("args-length", f"{TASK}.args", "100,001")]),
        # What the service sets, and when.
        (env(("CLOUD_ML_PROJECT_ID", "x")), [("env-reserved", RESERVED, "CLOUD_ML_PROJECT_ID")]),
        (env(("CLOUD_ML_JOB_ID", "x")), [("env-reserved", RESERVED, "CLOUD_ML_JOB_ID")]),
        (
            env(("AIP_HTTP_HANDLER_PORT", "1")),
            [("env-reserved", RESERVED, "AIP_HTTP_HANDLER_PORT")],
        ),
        (env(("TF_CONFIG", "{}")), []),
        (
            env(("TF_CONFIG", "{}"), pools=[worker()]),
            [
                ("env-reserved", RESERVED, "TF_CONFIG"),
                ("pools-inherit-nothing", "workerPoolSpecs[1].containerSpec", "TF_CONFIG"),
            ],
        ),
        (env(("AIP_TENSORBOARD_API_URI", "x")), []),
        *(
            (
                env((name, "x"), fields={"tensorboard": BOARD, "baseOutputDirectory": OUTPUT}),
                [("env-reserved", RESERVED, name)],
            )
            for name in ("AIP_TENSORBOARD_API_URI", "AIP_TENSORBOARD_RESOURCE_NAME")
        ),
        (env(("AIP_MODEL_DIR", "gs://b/x")), []),
        (
            env(("AIP_MODEL_DIR", "gs://b/x"), fields={"baseOutputDirectory": OUTPUT}),
            [("env-reserved", RESERVED, "AIP_MODEL_DIR")],
        ),
        # A shell script whose failures nobody sees; lines that only print are none.
        (shell("python a.py\npython b.py"), GOES_ON),
        (shell("python a.py\necho done"), []),
        (shell("echo begin\npython a.py\nprintf done"), []),
        (shell("# all of it\n\npython a.py\n"), []),
        (shell("set -e\npython a.py\npython b.py"), []),
        (shell("set -uo pipefail\npython a.py\npython b.py"), []),
        (shell("python a.py &&\npython b.py"), []),
        (shell("python a.py\npython b.py &&\npython c.py"), GOES_ON),
        (shell("python a.py\npython b.py", program=("/bin/sh", "-ec")), []),
        (shell("python a.py\npython b.py", program=("/bin/sh", "-c")), GOES_ON),
        (shell("import a\na.main()", program=("python", "-c")), []),
        (running(command=["bash", "a.sh"], env=[{"name": "A", "value": "x y\nz"}]), []),
        # A rank that the script or the file gives is its own.
        (shell('echo "$RANK"'), [("rank-variables", f"{TASK}.args[0]", "RANK")]),
        (shell('RANK=0; echo "$RANK"'), []),
        (shell('read -r RANK < rank; echo "$RANK"'), []),
        (running(command=["bash", "-c", 'echo "$RANK"'], env=[{"name": "RANK", "value": "0"}]), []),
        (
            running(
                command=["bash", "-c", 'echo "$RANK"'], env=[{"name": "WORLD_SIZE", "value": "1"}]
            ),
            [("rank-variables", f"{TASK}.command[2]", "RANK")],
        ),
        # Boot disks have 100 to 64,000 GB.
        (disk(bootDiskSizeGb=100), []),
        (disk(bootDiskSizeGb=99), [("disk-size", f"{POOL}.diskSpec.bootDiskSizeGb", "99")]),
        (disk(bootDiskSizeGb=64_000), []),
        (disk(bootDiskSizeGb=64_001), [("disk-size", f"{POOL}.diskSpec.bootDiskSizeGb", "64001")]),
        (disk(bootDiskSizeGb=0), []),
        # Seven days with Flex-start machines; any time above none without.
        (flexible(timeout="604800s"), []),
        (
            flexible(timeout="604801s"),
            [("flex-start-timeout", "scheduling.timeout", "604801s")],
        ),
        (scheduled(timeout="604801s"), []),
        (flexible(timeout="60s", maxWaitDuration="315576000000s"), []),
        (scheduled(timeout="0.000000001s"), []),
        (scheduled(timeout="0s"), [("duration-range", "scheduling.timeout", "0s")]),
        (scheduled(timeout="315576000000s"), []),
        (
            scheduled(timeout="315576000001s"),
            [("duration-range", "scheduling.timeout", "315576000001s")],
        ),
        (
            scheduled(
                gpu("g2-standard-4", "NVIDIA_L4", 1),
                strategy="FLEX_START",
                timeout="60s",
                maxWaitDuration="0s",
            ),
            [],
        ),
        # Four pools, of which only later ones are empty.
        (job(None, *[worker()] * 3), []),
        (job(None, *[worker()] * 4), [("pool-count", "workerPoolSpecs[4]", "5")]),
        # Scarce machines: reserved, SPOT, there already, or a warning.
        (job(MEGA), [("scarce-accelerator", f"{POOL}.machineSpec", "NVIDIA_H100_MEGA_80GB")]),
        (job(MEGA | {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}), []),
        (
            job(MEGA | {"reservationAffinity": {"reservationAffinityType": "NO_RESERVATION"}}),
            [("scarce-accelerator", f"{POOL}.machineSpec", "NVIDIA_H100_MEGA_80GB")],
        ),
        (job(MEGA, **SPARE), []),
        # Names of a reservation say nothing to who takes none.
        *(
            (
                affine(kind, "spare"),
                [
                    ("reservation-values-unused", f"{AFFINITY}.key", ""),
                    ("reservation-values-unused", f"{AFFINITY}.values", ""),
                ],
            )
            for kind in ("ANY_RESERVATION", "NO_RESERVATION")
        ),
        # A name has 1,000 characters at most.
        (running(image=f"docker.io/a/{'x' * 986}:1"), []),
        (
            running(image=f"docker.io/a/{'x' * 987}:1"),
            [("image-name", f"{TASK}.imageUri", f"docker.io/a/{'x' * 987}:1")],
        ),
        # A hundred packages, each named in full; a module is written as Python imports it.
        (packed(100), []),
        (packed(101), [("package-count", f"{POOL}.pythonPackageSpec.packageUris", "101")]),
        # A preempted job keeps what it writes to a bucket by itself.
        (scheduled(timeout="60s", strategy="SPOT"), [("spot-output", "", "")]),
        (spot(args=["--out=gs://bucket/x"]), []),
        (spot(args=["--out=/gcs/bucket/x"]), []),
        (spot(args=["--out=/tmp/x"]), [("spot-output", "", "")]),
        # GPUs without a timeout: told at scheduling, or where it would be.
        (scheduled(T4), [("timeout-missing", "scheduling", "")]),
        (scheduled(T4, timeout="60s"), []),
        (
            {key: value for key, value in scheduled(T4).items() if key != "scheduling"},
            [("timeout-missing", "", "")],
        ),
        (
            {
                "schedulling" if key == "scheduling" else key: {} if key == "scheduling" else value
                for key, value in scheduled(T4).items()
            },
            [("unknown-field", "schedulling", "")],
        ),
        *(
            (job(serviceAccount=account), [("service-account-default", "serviceAccount", account)])
            for account in (
                "1-compute@developer.gserviceaccount.com",
                "acme-ml-dev@appspot.gserviceaccount.com",
            )
        ),
        # What only a shell expands, where none reads it; of an image's own entrypoint nobody knows.
        (running(args=["${HOME}/x"]), []),
        (running(command=["/bin/dash"], args=["-c", "ls ${HOME}"]), []),
        (running(command=["env"], args=["${HOME}"]), []),
        (
            running(command=["python"], args=["a.py", "${HOME}"]),
            [("shell-variable", f"{TASK}.args[1]", "${HOME}")],
        ),
        (
            packed(1, args=["${HOME}"]),
            [("shell-variable", f"{POOL}.pythonPackageSpec.args[0]", "${HOME}")],
        ),
        # A variable refers to those above it; one that lacks its name or value is told as that.
        (env(("A", "x"), ("B", "$(A)")), []),
        (env(("B", "$(A)"), ("A", "x")), [("env-unresolved", f"{TASK}.env[0].value", "$(A)")]),
        (env(("A", "$(A)")), [("env-unresolved", f"{TASK}.env[0].value", "$(A)")]),
        (env(("A", "$$(A)")), []),
        (running(env=[{"name": "A"}]), [("env-value", f"{TASK}.env[0]", "")]),
        (
            running(env=[{"value": "a"}, {"value": "b"}]),
            [
                ("env-name", f"{TASK}.env[0]", ""),
                ("env-name", f"{TASK}.env[1]", ""),
            ],
        ),
        # A mount without its server is one mistake, if the network is there.
        (
            mounting({"path": "/export", "mountPoint": "data"}, network=NETWORK),
            [("mount-needs", f"{POOL}.nfsMounts[0]", "")],
        ),
        (mounting(MOUNT, network=NETWORK), []),
        (mounting(MOUNT, pscInterfaceConfig={"networkAttachment": "mine"}), []),
        (mounting(MOUNT), [("mount-network", f"{POOL}.nfsMounts[0]", "")]),
        # A domain that is missing is one mistake; labels and names are counted.
        (
            job(
                pscInterfaceConfig={
                    "networkAttachment": "mine",
                    "dnsPeeringConfigs": [{"targetProject": "my-project", "targetNetwork": "vpc"}],
                }
            ),
            [("dns-peering-needs", "pscInterfaceConfig.dnsPeeringConfigs[0]", "")],
        ),
    ],
)
def test_a_file_at_a_limit(content, expected):
    assert told(yaml.safe_dump(content, sort_keys=False)) == expected


def beside(content, **fields):
    return {"displayName": "x", "jobSpec": content, **fields}
