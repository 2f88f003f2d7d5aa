"""TensorBoard and experiments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule

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
    """A TensorBoard, an experiment and its run are named in full."""
    for field, (form, hint) in FORMS.items():
        given = job.spec.get(field)
        if given is not None and not form.match(given):
            yield Finding((*SPEC, field), "not a full resource name", given, hint)


@rule("tracking-region", GUIDES + "experiments/tensorboard-training")
def tracking_region(job: Job) -> Iterator[Finding]:
    """A TensorBoard, an experiment and its run are in the job's region."""
    for field, (form, _) in FORMS.items():
        match = form.match(str(job.spec.get(field)))
        if match and job.region and match[1] != job.region:
            what = f"must be in the job's region {job.region}"
            yield Finding((*SPEC, field), what, match[1], "name one of that region")


@rule("tensorboard-output", "https://github.com/kubeflow/pipelines/issues/7123", "warning")
def tensorboard_output(job: Job) -> Iterator[Finding]:
    """A job with a TensorBoard has a baseOutputDirectory, where its logs are read from."""
    if job.spec.get("tensorboard") and not job.output:
        what = "baseOutputDirectory is missing: AIP_TENSORBOARD_LOG_DIR is not set"
        hint = "baseOutputDirectory: {outputUriPrefix: ${buckets.NAME}/folder}"
        yield Finding(SPEC, what, "", hint, missing="baseOutputDirectory")


@rule("tensorboard-account", GUIDES + "experiments/tensorboard-training")
def tensorboard_account(job: Job) -> Iterator[Finding]:
    """A job with a TensorBoard names the account that writes to it."""
    if job.spec.get("tensorboard") and not job.spec.get("serviceAccount"):
        what = "serviceAccount is missing, and a TensorBoard needs it"
        yield Finding(SPEC, what, "", "serviceAccount: EMAIL", missing="serviceAccount")


@rule("tensorboard-or-experiment", "google-cloud-aiplatform 2.7.0 google/cloud/aiplatform/jobs.py")
def tensorboard_or_experiment(job: Job) -> Iterator[Finding]:
    """A job has a TensorBoard or an experiment, not both."""
    if job.spec.get("tensorboard") and job.spec.get("experiment"):
        what = "tensorboard is given as well"
        yield Finding((*SPEC, "experiment"), what, "", "remove one of the two")


@rule("experiment-run", TYPES + "custom_job.py")
def experiment_run(job: Job) -> Iterator[Finding]:
    """The context of an experiment's run is NAME-RUN of its experiment."""
    experiment, run = (str(job.spec.get(field)) for field in ("experiment", "experimentRun"))
    forms = CONTEXT.match(experiment) and CONTEXT.match(run)
    if forms and not run.startswith(experiment + "-"):
        yield Finding(
            (*SPEC, "experimentRun"), "not a run of this experiment", run, experiment + "-RUN"
        )


@rule("models-unused", TYPES + "custom_job.py", "warning")
def models_unused(job: Job) -> Iterator[Finding]:
    """models is for some jobs that Google provides; code of one's own has no use for it."""
    if job.spec.get("models"):
        yield Finding((*SPEC, "models"), "has no effect on custom code", "", "remove it")
