"""Grants that jobs and models need: for a key, a TensorBoard, images of another project. Pure.

Google's service agents encrypt the disks of a job and pull its image; the account that the job runs
as does neither. On Batch it is the account that pulls images, and that reports what tasks do. The
stack makes the grant on a key of its own project. Owners of other projects make theirs
(``external_grants``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from vertex_training.customjob.rules.identity import KEY
from vertex_training.customjob.rules.images import GOOGLES
from vertex_training.naming import project_of_account
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings

#: An image in Artifact Registry: location, project, repository.
IMAGE: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/:@]+)/.")


def job_grants(settings: Settings, messages: Iterable[Mapping[str, Any]]) -> list[GrantRequest]:
    """What the service agents need for these requests, each grant once.

    ``messages`` are CustomJobs in REST's form with their references resolved.
    """
    found: dict[str, GrantRequest] = {}
    for message in messages:
        derived = (_key_grants(settings, message), _tensorboard_grants(settings, message))
        for grant in (*chain(*derived), *image_grants(settings, images(message))):
            found.setdefault(grant.key, grant)
    return list(found.values())


def batch_grants(settings: Settings, messages: Iterable[Mapping[str, Any]]) -> list[GrantRequest]:
    """What accounts and submitters of jobs on Batch need, each grant once.

    https://docs.cloud.google.com/batch/docs/get-started#project-prerequisites; what an account
    writes to Cloud Logging, every account of the stack may.
    """
    names = settings.names
    keys = {names.account_email(key): key for key in settings.service_accounts}
    found: dict[str, GrantRequest] = {}

    def add(key: str, type_: str, role: str, member: str, *where: str, ours: bool = True) -> None:
        project, resource = where or (settings.project, "")
        grant = GrantRequest(key, type_, role, member, project, resource, ours=ours)
        found.setdefault(key, grant)

    for message in messages:
        account = str(message.get("jobSpec", {}).get("serviceAccount") or "")
        name, member = _name_in_keys(settings, account), f"serviceAccount:{account}"
        add(f"batch-reports-{name}", grants.ON_PROJECT, grants.REPORT_STATES, member)
        for submitter in settings.members_acting_as(keys[account]) if account in keys else ():
            key = f"batch-submits-{submitter}"
            add(key, grants.ON_PROJECT, grants.SUBMIT_TO_BATCH, submitter)
        for image in images(message):
            match = IMAGE.match(image)
            if not match or GOOGLES.match(image):
                continue
            location, project, repository = match.groups()
            own = project in (settings.project, settings.project_number)
            project = settings.project if own else project
            path = f"projects/{project}/locations/{location}/repositories/{repository}"
            key = f"batch-pulls-{project}-{location}-{repository}-{name}"
            role = grants.PULL_IMAGES
            add(key, grants.ON_REPOSITORY, role, member, project, path, ours=own)
    return list(found.values())


def image_grants(
    settings: Settings, names: Iterable[str], *, of_models: bool = False
) -> Iterator[GrantRequest]:
    """Grants to pull these images, where another project has them.

    An agent may read the repositories of its own project. "The default service account" pulls
    images, says general/custom-service-account, whatever account the job runs as; that is the
    custom code agent for the containers of training, and the service agent checks the image first.
    Images of models are pulled by the service agent (predictions/custom-container-requirements).
    """
    agents = [settings.names.vertex_agent()]
    agents += [] if of_models else [settings.names.custom_code_agent()]
    own = (settings.project, settings.project_number)
    for name in names:
        image = IMAGE.match(name)
        if not image or image[2] in own or GOOGLES.match(name):
            continue
        location, project, repository = image.groups()
        path = f"projects/{project}/locations/{location}/repositories/{repository}"
        for agent in agents:
            kind = agent.partition("@")[2].partition(".")[0]
            yield GrantRequest(
                f"pulls-{project}-{location}-{repository}-{kind}",
                grants.ON_REPOSITORY,
                grants.PULL_IMAGES,
                f"serviceAccount:{agent}",
                project,
                ours=False,
                resource=path,
            )


def images(message: Mapping[str, Any]) -> Iterator[str]:
    """Names of the images that a job runs."""
    for pool in message.get("jobSpec", {}).get("workerPoolSpecs") or []:
        for task, field in (
            ("containerSpec", "imageUri"),
            ("pythonPackageSpec", "executorImageUri"),
        ):
            if name := (pool.get(task) or {}).get(field):
                yield name


def _tensorboard_grants(settings: Settings, message: Mapping[str, Any]) -> Iterator[GrantRequest]:
    """The grant to write to a TensorBoard, as the account of the job, unless it may anyway.

    experiments/tensorboard-setup asks for roles/aiplatform.user; for logs, the right to write to
    the job's output folder does.
    """
    spec, names = message.get("jobSpec", {}), settings.names
    account = str(spec.get("serviceAccount") or "")
    accounts = settings.service_accounts.items()
    may = {names.account_email(key) for key, given in accounts if given.calls_vertex}
    if spec.get("tensorboard") and account and account not in may:
        yield GrantRequest(
            f"tensorboard-{_name_in_keys(settings, account)}",
            grants.ON_PROJECT,
            grants.CALL_VERTEX,
            f"serviceAccount:{account}",
            settings.project,
        )


def _name_in_keys(settings: Settings, account: str) -> str:
    """An account in keys of grants: by its id, or its address, since ids are a project's own."""
    name, _, _ = account.partition("@")
    return name if project_of_account(account) == settings.project else account


def _key_grants(settings: Settings, message: Mapping[str, Any]) -> Iterator[GrantRequest]:
    """The grant on a job's key. Its region is judged by the rule ``encryption-region``."""
    name = (message.get("encryptionSpec") or {}).get("kmsKeyName", "")
    if not KEY.match(name):
        return
    _, project, _, location, _, ring, _, key = name.split("/")
    own = project in (settings.project, settings.project_number)
    yield GrantRequest(
        f"encrypts-{project}-{location}-{ring}-{key}",
        grants.ON_KEY,
        grants.USE_KEY,
        f"serviceAccount:{settings.names.vertex_agent()}",
        settings.project if own else project,
        ours=own,
        resource=name,
    )
