"""Rules for jobs with ``backend: batch``: fields that Batch lacks or reads in another way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog.costs import whole_seconds
from vertex_training.customjob.rules.environment import REFERENCE
from vertex_training.customjob.rules.job import SPEC, Job, Pool
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.naming import SECRET_VALUE

BATCH: Final = "https://docs.cloud.google.com/batch/docs/"
VERTEX: Final = "backend: vertex has it"
#: Fields of a CustomJobSpec that name what only Vertex AI has -> what to write instead.
ONLY_VERTEX: Final = {
    "persistentResourceId": "without it every run gets machines of its own",
    "tensorboard": "write events to AIP_TENSORBOARD_LOG_DIR; `vt tensorboard` reads them",
    "experiment": "log to a tracker of your own from the code",
    "experimentRun": "log to a tracker of your own from the code",
    "enableWebAccess": "log into the machine with `gcloud compute ssh`",
    "enableDashboardAccess": "log into the machine with `gcloud compute ssh`",
    "reservedIpRanges": "machines take addresses of the stack's subnet: network mode psc",
    "network": "peering is Vertex AI's: network mode psc puts the machines into the stack's subnet",
    "protectedArtifactLocationId": "name images by digest",
    "models": "read the model from its bucket",
}
#: Longest run of a job, in days; the second with Flex-start machines
#: (batch/docs/job-states: RUNNING).
MOST_DAYS: Final = 14
MOST_DAYS_FLEX: Final = 7
#: Variables that a script writes when a task starts: no text of a request has their values.
LATE: Final = re.compile(r"CLUSTER_SPEC|TF_CONFIG|MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE")
#: Fields in which the pools of one job are equal.
EQUAL: Final = ("machineSpec", "diskSpec", "containerSpec")


@rule("batch-support", BATCH + "get-started")
def batch_support(job: Job) -> Iterator[Finding]:
    """A job with ``backend: batch`` asks for nothing that only Vertex AI has."""
    if job.context.backend != "batch":
        return
    yield from _of_spec(job)
    yield from _of_pools(job)
    yield from _of_scheduling(job)
    for pool in job.pools:
        yield from _of_pool(pool)


@rule("batch-differs", BATCH + "job-states", "warning")
def batch_differs(job: Job) -> Iterator[Finding]:
    """Fields of a job with ``backend: batch`` mean the same there."""
    if job.context.backend != "batch":
        return
    if "maxWaitDuration" in job.scheduling:
        what = "Batch waits two days for machines, whatever the file says"
        hint = "cancel it before by `vt jobs cancel`, or leave the field out"
        path = (*SPEC, "scheduling", "maxWaitDuration")
        yield Finding(path, what, str(job.scheduling["maxWaitDuration"]), hint)
    if job.context.stack and "pscInterfaceConfig" not in job.spec:
        what = "machines are in the project's default network, with external addresses"
        hint = "network mode psc in the stack, and pscInterfaceConfig: ${network.interface} here"
        yield Finding(SPEC, what, "", hint, "pscInterfaceConfig")


def _of_spec(job: Job) -> Iterator[Finding]:
    for field, hint in ONLY_VERTEX.items():
        if value := job.spec.get(field):
            what = f"only Vertex AI has {field}, and the job runs on Batch"
            yield Finding((*SPEC, field), what, _shown(value), f"{hint}; {VERTEX}")
    if not job.account:
        what = "serviceAccount is missing: Batch would run it as Compute Engine's default account"
        yield Finding(SPEC, what, "", "serviceAccount: ${serviceAccounts.NAME}", "serviceAccount")
    if "encryptionSpec" in job.request:
        what = "Batch encrypts disks with a key only through an instance template"
        key = str(job.request["encryptionSpec"].get("kmsKeyName", ""))
        hint = f"leave jobs out of encryption.covers, or {VERTEX}"
        yield Finding(("encryptionSpec",), what, key, hint)
    network, wanted = job.context.stack and job.context.stack.network, job.attachment
    if wanted and not (network and network.attachment == wanted and network.subnet):
        what = "no subnet of this attachment is known, and machines of Batch are in one themselves"
        hint = f"pscInterfaceConfig: ${{network.interface}} of a stack with a subnet; {VERTEX}"
        yield Finding((*SPEC, "pscInterfaceConfig", "networkAttachment"), what, wanted, hint)


def _of_pools(job: Job) -> Iterator[Finding]:
    for pool in job.pools:
        if pool.is_reduction_server:
            what = "Batch has no reduction servers"
            yield Finding(pool.path, what, pool.image, f"leave the pool out; {VERTEX}")
        elif pool.index > 1:
            what = "Batch runs equal machines: no parameter servers and no evaluators"
            hint = f"torch.distributed or workers of one kind, in the first two pools; {VERTEX}"
            yield Finding(pool.path, what, f"pool {pool.index}", hint)
        elif pool.index == 1 and job.pools[0].index == 0:
            first = job.pools[0].spec
            for field in (each for each in EQUAL if first.get(each) != pool.spec.get(each)):
                what = "Batch runs equal machines, and this is not as in the first pool"
                hint = f"the same {field} in both pools; {VERTEX}"
                yield Finding((*pool.path, field), what, "", hint)


def _of_pool(pool: Pool) -> Iterator[Finding]:
    if pool.task_name == "pythonPackageSpec":
        what = "Batch installs no packages into prebuilt images"
        hint = f"containerSpec with an image of your own, by images in the stack file; {VERTEX}"
        yield Finding((*pool.path, "pythonPackageSpec"), what, "", hint)
    for field in ("nfsMounts", "lustreMounts"):
        if pool.spec.get(field):
            what = "file systems are not mounted for a job on Batch"
            hint = f"read buckets below /gcs; {VERTEX}"
            yield Finding((*pool.path, field), what, "", hint)
    if pool.shape and pool.shape.tpu:
        what = "Batch has no TPUs"
        yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, VERTEX)
    if size := pool.machine.get("gpuPartitionSize"):
        what = "Batch does not divide GPUs"
        hint = f"a machine with a smaller GPU; {VERTEX}"
        yield Finding((*pool.machine_path, "gpuPartitionSize"), what, str(size), hint)
    named = (pool.affinity or {}).get("values", ())
    if len(named) > 1:
        what = "Batch takes machines of one reservation"
        path = (*pool.machine_path, "reservationAffinity", "values")
        yield Finding(path, what, str(len(named)), f"one value; {VERTEX}")
    filled = {name for _, name, value in pool.variables() if SECRET_VALUE.fullmatch(value)}
    for path, text in pool.texts():
        late = (m for m in REFERENCE.finditer(text) if LATE.fullmatch(m[1]) or m[1] in filled)
        if match := next(late, None):
            what = "Batch expands nothing, and this value is known only on the machine"
            yield Finding(path, what, match.group(), f"read the variable in the code; {VERTEX}")


def _of_scheduling(job: Job) -> Iterator[Finding]:
    most = MOST_DAYS_FLEX if job.strategy == "FLEX_START" else MOST_DAYS
    if whole_seconds(job.scheduling) > most * 86400:
        path, value = (*SPEC, "scheduling", "timeout"), str(job.scheduling["timeout"])
        what = f"Batch ends a job after {most} days"
        yield Finding(path, what, value, f"at most {most * 86400}s, and go on from a checkpoint")


def _shown(value: object) -> str:
    return "" if isinstance(value, (bool, dict, list)) else str(value)
