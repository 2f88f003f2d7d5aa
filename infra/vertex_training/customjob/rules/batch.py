"""Rules about ``backend: batch``: fields that Batch lacks or interprets differently."""

from collections.abc import Iterator
from typing import Final

from vertex_training import catalog
from vertex_training.catalog.costs import whole_seconds
from vertex_training.customjob.rules.environment import REFERENCE
from vertex_training.customjob.rules.job import SPEC, Job, Pool
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.naming import SECRET_VALUE

BATCH: Final = "https://docs.cloud.google.com/batch/docs/"
VERTEX: Final = "or set backend: vertex"
#: Maximum days of a job, and of a job on Flex-start machines (batch/docs/job-states: RUNNING).
MOST_DAYS: Final = 14
MOST_DAYS_FLEX: Final = 7
#: Variables that a script sets when a task starts: a request cannot include their values.
LATE: Final = ("CLUSTER_SPEC", "TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
#: Fields that must be equal in all pools of a job.
EQUAL: Final = ("machineSpec", "diskSpec", "containerSpec")


@rule("batch-support", BATCH + "get-started")
def batch_support(job: Job) -> Iterator[Finding]:
    """Check that a job with ``backend: batch`` uses no feature that only Vertex AI supports."""
    if job.context.backend != "batch":
        return
    yield from _of_spec(job)
    yield from _of_pools(job)
    most = MOST_DAYS_FLEX if job.strategy == "FLEX_START" else MOST_DAYS
    if whole_seconds(job.scheduling) > most * 86400:
        path, value = (*SPEC, "scheduling", "timeout"), str(job.scheduling["timeout"])
        what = f"the timeout is longer than Batch's limit of {most} days"
        hint = f"write {most * 86400}s or less, and resume from a checkpoint"
        yield Finding(path, what, value, hint)
    for pool in job.pools:
        yield from _of_pool(pool)


@rule("batch-differs", BATCH + "job-states", "warning")
def batch_differs(job: Job) -> Iterator[Finding]:
    """Check that all fields of a job with ``backend: batch`` have the same effect on Batch."""
    if job.context.backend != "batch":
        return
    if "maxWaitDuration" in job.scheduling:
        what = "Batch ignores maxWaitDuration and waits two days for machines"
        hint = "remove maxWaitDuration; to stop waiting earlier, run `vt jobs cancel`"
        path = (*SPEC, "scheduling", "maxWaitDuration")
        yield Finding(path, what, str(job.scheduling["maxWaitDuration"]), hint)
    if job.context.stack and "pscInterfaceConfig" not in job.spec:
        what = "without pscInterfaceConfig, Batch uses the default network and external addresses"
        hint = (
            "set network.mode: psc in the stack file and pscInterfaceConfig: "
            "${network.interface} here"
        )
        yield Finding(SPEC, what, "", hint, "pscInterfaceConfig")


def _of_spec(job: Job) -> Iterator[Finding]:
    for field, hint in catalog.load("batch.yaml")["only_vertex"].items():
        if value := job.spec.get(field):
            what = f"Batch does not support {field}"
            got = "" if isinstance(value, (bool, dict, list)) else str(value)
            yield Finding((*SPEC, field), what, got, f"{hint}; {VERTEX}")
    if not job.account:
        what = "serviceAccount is missing: Batch would use Compute Engine's default service account"
        hint = "add serviceAccount: ${serviceAccounts.NAME}"
        yield Finding(SPEC, what, "", hint, "serviceAccount")
    if "encryptionSpec" in job.request:
        what = "Batch does not support encryptionSpec: a key for disks needs an instance template"
        key = str(job.request["encryptionSpec"].get("kmsKeyName", ""))
        hint = f"remove jobs from encryption.covers, {VERTEX}"
        yield Finding(("encryptionSpec",), what, key, hint)
    network, attachment = job.context.stack and job.context.stack.network, job.attachment
    if attachment and not (network and network.attachment == attachment and network.subnet):
        what = "the subnet of this network attachment is unknown, and Batch needs a subnet"
        hint = f"set network.subnet in the stack file and use ${{network.interface}}; {VERTEX}"
        yield Finding((*SPEC, "pscInterfaceConfig", "networkAttachment"), what, attachment, hint)


def _of_pools(job: Job) -> Iterator[Finding]:
    for pool in job.pools:
        if pool.is_reduction_server:
            what = "Batch does not support reduction servers"
            yield Finding(pool.path, what, pool.image, f"remove the pool; {VERTEX}")
        elif pool.index > 1:
            what = "Batch requires equal machines: no parameter servers and no evaluators"
            hint = f"use only the first two pools, with equal workers (torch.distributed); {VERTEX}"
            yield Finding(pool.path, what, f"pool {pool.index}", hint)
        elif pool.index == 1 and job.pools[0].index == 0:
            first = job.pools[0].spec
            for field in (name for name in EQUAL if first.get(name) != pool.spec.get(name)):
                what = f"{field} differs from the first pool: Batch requires equal machines"
                hint = f"write the same {field} in both pools; {VERTEX}"
                yield Finding((*pool.path, field), what, "", hint)


def _of_pool(pool: Pool) -> Iterator[Finding]:
    if pool.task_name == "pythonPackageSpec":
        what = "Batch does not support pythonPackageSpec: it installs no packages"
        hint = f"build an image (images in the stack file) and use containerSpec; {VERTEX}"
        yield Finding((*pool.path, "pythonPackageSpec"), what, "", hint)
    for field in ("nfsMounts", "lustreMounts"):
        if pool.spec.get(field):
            what = f"Batch does not support {field}"
            hint = f"read data from buckets below /gcs; {VERTEX}"
            yield Finding((*pool.path, field), what, "", hint)
    if pool.shape and pool.shape.tpu:
        path, got = (*pool.machine_path, "machineType"), pool.machine_type
        yield Finding(path, "Batch does not support TPUs", got, "set backend: vertex")
    if size := pool.machine.get("gpuPartitionSize"):
        what = "Batch does not support gpuPartitionSize: a job uses whole GPUs"
        hint = f"use a machine type with a smaller GPU; {VERTEX}"
        yield Finding((*pool.machine_path, "gpuPartitionSize"), what, str(size), hint)
    named = (pool.affinity or {}).get("values", ())
    if len(named) > 1:
        what = "a Batch job can use only one reservation"
        path = (*pool.machine_path, "reservationAffinity", "values")
        yield Finding(path, what, str(len(named)), f"keep one value; {VERTEX}")
    filled = {name for _, name, value in pool.variables() if SECRET_VALUE.fullmatch(value)}
    for path, text in pool.texts():
        late = (m for m in REFERENCE.finditer(text) if m[1] in LATE or m[1] in filled)
        if match := next(late, None):
            what = "Batch does not expand this variable: its value exists only on the machine"
            yield Finding(path, what, match.group(), f"read the variable in the code; {VERTEX}")
