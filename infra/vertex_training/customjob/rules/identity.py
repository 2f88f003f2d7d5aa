"""Rules about a job's account, key, region, TensorBoard, experiment, name and labels."""

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.protocol.ports import JOB_LABELS, LABEL_PREFIX
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

ACCESS: Final = GUIDES + "general/access-control"
CMEK: Final = GUIDES + "general/cmek"
EMAIL: Final = re.compile(r"[a-z0-9][a-z0-9._-]*@[a-z0-9][a-z0-9.-]*\.gserviceaccount\.com\Z")
KEY: Final = re.compile(
    r"projects/[^/]+/locations/([a-z0-9-]+)/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}\Z"
)
KMS: Final[Path] = ("encryptionSpec", "kmsKeyName")


@rule("service-account", ACCESS)
def service_account(job: Job) -> Iterator[Finding]:
    """Check that a job has a serviceAccount: the default account can read and write all buckets.

    Without a stack this is a note: the service accepts such a job, a stack does not.
    """
    if not job.account:
        hint = "add serviceAccount: ${serviceAccounts.NAME}"
        what = "serviceAccount is missing"
        level = "note" if job.context.stack is None else None
        yield Finding(SPEC, what, "", hint, missing="serviceAccount", level=level)


@rule("service-account-email", TYPES + "custom_job.py")
def service_account_email(job: Job) -> Iterator[Finding]:
    """Check that a serviceAccount is the email address of a service account."""
    if job.account and not EMAIL.match(job.account):
        hint = "write NAME@PROJECT.iam.gserviceaccount.com, or ${serviceAccounts.NAME}"
        what = "serviceAccount must be the email address of a service account"
        yield Finding((*SPEC, "serviceAccount"), what, job.account, hint)


@rule("service-account-default", ACCESS, "warning")
def service_account_default(job: Job) -> Iterator[Finding]:
    """Check that the job's account is neither a default service account nor a service agent."""
    defaults = ("@developer.gserviceaccount.com", "@appspot.gserviceaccount.com")
    if job.account.endswith(defaults) or "@gcp-sa-" in job.account:
        hint = "write serviceAccount: ${serviceAccounts.NAME}"
        what = "a default service account or service agent has more roles than a job needs"
        yield Finding((*SPEC, "serviceAccount"), what, job.account, hint)


@rule("encryption-key", TYPES + "encryption_spec.py")
def encryption_key(job: Job) -> Iterator[Finding]:
    """Check that an encryption key is written with its full name."""
    spec = job.request.get("encryptionSpec")
    name = spec and spec.get("kmsKeyName")
    hint = "write projects/P/locations/REGION/keyRings/RING/cryptoKeys/KEY"
    if spec is not None and not name:
        yield Finding(KMS[:1], "kmsKeyName is missing", "", hint, missing="kmsKeyName")
    elif name and not KEY.match(name):
        yield Finding(KMS, "kmsKeyName must be the full name of a key", name, hint)


@rule("encryption-region", CMEK)
def encryption_region(job: Job) -> Iterator[Finding]:
    """Check that the encryption key is in the job's region."""
    match = KEY.match(str(job.request.get("encryptionSpec", {}).get("kmsKeyName")))
    if not match:
        return
    if match[1] not in machines.regions():
        what = "the key must be in the job's region, and is in a multi-region"
        yield Finding(KMS, what, match[1], "name a key of a key ring in the job's region")
    elif job.region and match[1] != job.region:
        what = f"the key must be in the job's region {job.region}"
        yield Finding(KMS, what, match[1], f"name a key of a key ring in {job.region}")


@rule("job-region", GUIDES + "general/locations")
def job_region(job: Job) -> Iterator[Finding]:
    """Check that the stack's region supports training jobs."""
    if job.region and job.region not in machines.regions():
        what = "the stack's region does not support training jobs"
        hint = f"set gcp:region to one of {', '.join(sorted(machines.regions()))}"
        yield Finding((), what, job.region, hint)


@rule("artifact-location", TYPES + "custom_job.py")
def artifact_location(job: Job) -> Iterator[Finding]:
    """Check that protectedArtifactLocationId is a region other than the job's region."""
    field = "protectedArtifactLocationId"
    location = job.spec.get(field)
    if location and location not in machines.regions():
        hint = "write a region such as europe-west4"
        yield Finding((*SPEC, field), f"{field} must be a region", location, hint)
    elif location and location == job.region:
        what = f"{field} must differ from the job's region"
        yield Finding((*SPEC, field), what, location, f"remove {field}")


TENSORBOARD: Final = re.compile(
    r"projects/[^/]+/locations/([a-z]+-[a-z]+[0-9]+)/tensorboards/[0-9]+\Z"
)
CONTEXT: Final = re.compile(
    r"projects/[^/]+/locations/([a-z]+-[a-z]+[0-9]+)/metadataStores/[^/]+/contexts/[^/]+\Z"
)
FORMS: Final = {
    "tensorboard": (TENSORBOARD, "projects/P/locations/REGION/tensorboards/ID"),
    "experiment": (CONTEXT, "projects/P/locations/REGION/metadataStores/default/contexts/NAME"),
    "experimentRun": (
        CONTEXT,
        "projects/P/locations/REGION/metadataStores/default/contexts/NAME-RUN",
    ),
}


@rule("tracking-name", TYPES + "custom_job.py")
def tracking_name(job: Job) -> Iterator[Finding]:
    """Check that a TensorBoard, an experiment and its run are written with their full names."""
    for field, (form, hint) in FORMS.items():
        value = job.spec.get(field)
        if value is not None and not form.match(value):
            what = f"{field} must be a full resource name"
            yield Finding((*SPEC, field), what, value, f"write {hint}")


@rule("tracking-region", GUIDES + "experiments/tensorboard-training")
def tracking_region(job: Job) -> Iterator[Finding]:
    """Check that a TensorBoard, an experiment and its run are in the job's region."""
    for field, (form, _) in FORMS.items():
        match = form.match(str(job.spec.get(field)))
        if match and job.region and match[1] != job.region:
            what = f"{field} must be in the job's region {job.region}"
            yield Finding((*SPEC, field), what, match[1], f"name a resource in {job.region}")


@rule("tensorboard-output", "https://github.com/kubeflow/pipelines/issues/7123", "warning")
def tensorboard_output(job: Job) -> Iterator[Finding]:
    """Check that a job with a TensorBoard has a baseOutputDirectory for its logs."""
    if job.spec.get("tensorboard") and not job.output:
        what = "baseOutputDirectory is missing, so that AIP_TENSORBOARD_LOG_DIR is not set"
        hint = "add baseOutputDirectory: {outputUriPrefix: ${buckets.NAME}/folder}"
        yield Finding(SPEC, what, "", hint, missing="baseOutputDirectory")


@rule("tensorboard-account", GUIDES + "experiments/tensorboard-training")
def tensorboard_account(job: Job) -> Iterator[Finding]:
    """Check that a job with a TensorBoard has a serviceAccount."""
    if job.spec.get("tensorboard") and not job.spec.get("serviceAccount"):
        what = "a job with a TensorBoard requires a serviceAccount"
        yield Finding(SPEC, what, "", "add serviceAccount: EMAIL", missing="serviceAccount")


@rule("tensorboard-or-experiment", "google-cloud-aiplatform 2.7.0 google/cloud/aiplatform/jobs.py")
def tensorboard_or_experiment(job: Job) -> Iterator[Finding]:
    """Check that a job has a TensorBoard or an experiment, not both."""
    if job.spec.get("tensorboard") and job.spec.get("experiment"):
        what = "a job cannot have both tensorboard and experiment"
        yield Finding((*SPEC, "experiment"), what, "", "remove tensorboard or experiment")


@rule("experiment-run", TYPES + "custom_job.py")
def experiment_run(job: Job) -> Iterator[Finding]:
    """Check that the context of an experiment run is EXPERIMENT-RUN."""
    experiment, run = (str(job.spec.get(field)) for field in ("experiment", "experimentRun"))
    forms = CONTEXT.match(experiment) and CONTEXT.match(run)
    if forms and not run.startswith(experiment + "-"):
        what = "experimentRun must be a run of the job's experiment"
        yield Finding((*SPEC, "experimentRun"), what, run, f"write {experiment}-RUN")


@rule("models-unused", TYPES + "custom_job.py", "warning")
def models_unused(job: Job) -> Iterator[Finding]:
    """Check that a job with your own code has no models: only some of Google's jobs use them."""
    if job.spec.get("models"):
        what = "models has no effect on a job that runs your own code"
        yield Finding((*SPEC, "models"), what, "", "remove models")


MAX_NAME: Final = 128
MAX_LABELS: Final = 64
MAX_LENGTH: Final = 64
MAX_BYTES: Final = 128


@rule("display-name", TYPES + "custom_job.py")
def display_name(job: Job) -> Iterator[Finding]:
    """Check that displayName has 1 to 128 characters."""
    name = job.request.get("displayName", "x")
    if not 1 <= len(name) <= MAX_NAME:
        what = f"displayName must have 1 to {MAX_NAME} characters"
        hint = "remove displayName to use the default name STACK-JOB"
        yield Finding(("displayName",), what, name, hint)


@rule("label", TYPES + "custom_job.py")
def label(job: Job) -> Iterator[Finding]:
    """Check that labels have up to 64 lowercase letters of any language, digits, '_' and '-'."""
    limit = f"must have at most {MAX_LENGTH} lowercase letters, digits, '_' and '-'"
    for key, value in job.request.get("labels", {}).items():
        if not key or not _is_label(key):
            what = f"label key '{key}' {limit}"
            yield Finding(("labels", key), what, "", "write a key such as cost-center")
        elif not _is_label(value):
            what = f"the value of label '{key}' {limit}"
            yield Finding(("labels", key), what, value, "write a value such as ml-1")


@rule(
    "label-limits", "https://docs.cloud.google.com/resource-manager/docs/labels-overview", "warning"
)
def label_limits(job: Job) -> Iterator[Finding]:
    """Check that labels have less than 64 characters and 128 bytes, and no '_' or '-' first."""
    for key, value in job.request.get("labels", {}).items():
        if not _is_label(key) or not _is_label(value):
            continue  # the rule `label` reports this label
        long = any(len(t) >= MAX_LENGTH or len(t.encode()) >= MAX_BYTES for t in (key, value))
        if long or key[:1] in ("_", "-"):
            what = f"Vertex AI may refuse label '{key}'"
            hint = "use at most 63 characters, and begin the key with a letter or digit"
            yield Finding(("labels", key), what, value, hint)


def _is_label(text: str) -> bool:
    marks = all(c in "_-" or (c.isalnum() and c == c.lower()) for c in text)
    return marks and len(text) <= MAX_LENGTH


@rule("label-reserved", "docs/job-files.md")
def label_reserved(job: Job) -> Iterator[Finding]:
    """Check that no label begins with vt-: the stack uses such labels to find its jobs.

    Without a stack this is a warning: the service accepts such a job.
    """
    level = "warning" if job.context.stack is None else None
    for key in job.request.get("labels", {}):
        if key.startswith(LABEL_PREFIX):
            what = f"labels that begin with {LABEL_PREFIX} are reserved for the stack"
            yield Finding(("labels", key), what, key, "rename the label", level=level)


@rule(
    "label-count", "https://docs.cloud.google.com/resource-manager/docs/labels-overview", "warning"
)
def label_count(job: Job) -> Iterator[Finding]:
    """Check that a job has at most 64 labels, including the labels of the stack."""
    count = len(job.request.get("labels", {}))
    if count > MAX_LABELS - len(JOB_LABELS):
        most = MAX_LABELS - len(JOB_LABELS)
        what = f"a job file can have at most {most} labels; the stack adds {len(JOB_LABELS)}"
        yield Finding(("labels",), what, str(count), f"keep at most {most} labels")
