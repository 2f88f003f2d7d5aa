"""The sections ``models`` and ``endpoints``: what they name is there, and fits together. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.customjob.request import references
from vertex_training.customjob.rules.images import NAME
from vertex_training.errors import Path, Problem, UnknownReferenceError, did_you_mean
from vertex_training.plan import serving
from vertex_training.settings.model import Settings
from vertex_training.settings.serving import Endpoint, Model
from vertex_training.stack_rules import rule

#: An image where a container may be of: location, project.
_IMAGE: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/[^/]+/.")
#: Locations of Artifact Registry that have the regions whose names begin with them.
_MULTI_REGIONS: Final = ("us", "europe", "asia")
#: Google's prebuilt serving images, and until when they are there. Source:
#: predictions/pre-built-containers; sklearn 1.6 alone stays until 2027-10-14.
_PREBUILT: Final = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai/prediction/([a-z0-9.-]+)")
_PREBUILT_UNTIL: Final = datetime.date(2027, 1, 14)
_LATEST: Final = re.compile(r"sklearn-[a-z]+\.1-6")


@rule()
def models_and_endpoints(settings: Settings) -> Iterator[Problem]:
    """Models and endpoints name what there is, and it fits together."""
    for key, model in settings.models.items():
        yield from _model(settings, key, model)
    ids: dict[str, str] = {}
    for key, endpoint in settings.endpoints.items():
        path = ("endpoints", key)
        name = settings.names.endpoint_id(key)
        if (other := ids.setdefault(name, key)) != key:
            what = f"has the same id as endpoint '{other}'"
            yield Problem(what, name, "choose another name", path)
        yield from _endpoint(settings, key, endpoint)


@rule("warning")
def serving_machines(settings: Settings) -> Iterator[Problem]:
    """Images of models last, and machines of endpoints are known with their prices."""
    for key, model in settings.models.items():
        image = _PREBUILT.match(model.container.image)
        if image and not _LATEST.match(image[1]):
            what = f"Google's prebuilt serving images are there until {_PREBUILT_UNTIL}"
            path = ("models", key, "container", "image")
            yield Problem(what, image[1], "an image of your own: ${images.NAME}", path)
    for key, endpoint in settings.endpoints.items():
        yield from tpu_warnings(endpoint, settings.region, ("endpoints", key))
        machine = machines.serving_machine_type(endpoint.machine)
        path = ("endpoints", key, "machine")
        if machine is None:
            what = "not in the catalogue: neither its price nor its accelerators are known"
            hint = did_you_mean(endpoint.machine, machines.machine_types())
            yield Problem(what, endpoint.machine, hint, path)
        elif machine.price is None:
            what = "no source has its price: nothing that counts costs counts this endpoint"
            yield Problem(what, endpoint.machine, "", path)


def _model(settings: Settings, key: str, model: Model) -> Iterator[Problem]:
    path = ("models", key)
    name = settings.names.model_id(key)
    if not naming.MODEL_ID.match(name):
        what = "makes a model id that is not 1 to 63 lowercase letters, digits, '-' and '_'"
        yield Problem(what, name, "shorten the key or the stack's name", path)
    job = settings.jobs.get(model.job or key)
    if job is None:
        hint = did_you_mean(model.job or key, settings.jobs) or "declare the job in jobs"
        place = (*path, "job")
        yield Problem("this stack has no such job", model.job or key, hint, place)
    if (model.job or key) in settings.schedules:
        what = "has a schedule: its jobs are slots, and a version is made of a run"
        hint = "name a job without a schedule; one with the same file will do"
        yield Problem(what, model.job or key, hint, (*path, "job"))
    for index, run in enumerate(model.run):
        if job is not None and run > job.run:
            what = f"job '{model.job or key}' has had {job.run} run{'s'[: job.run - 1]}"
            hint = "train first: raise run on the job, and name it here once it has succeeded"
            yield Problem(what, str(run), hint, (*path, "run", index))
    yield from _image(settings, model, (*path, "container", "image"))


def _image(settings: Settings, model: Model, path: Path) -> Iterator[Problem]:
    """The image is known, and in the region: predictions/custom-container-requirements."""
    given = model.container.image
    try:
        image = serving.image_of(settings, model)
    except UnknownReferenceError as unknown:
        yield Problem("names what this stack does not have", given, unknown.hint, path)
        return
    match = _IMAGE.match(image)
    if match is None or not NAME.match(image) or references.names_in(image):
        hint = "${images.NAME}, or REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME@sha256:…"
        yield Problem("not an image in Artifact Registry", given, hint, path)
        return
    location, region = match[1], settings.region
    if location != region and not (
        location in _MULTI_REGIONS and region.startswith(f"{location}-")
    ):
        what = f"the image is in {location}, and a model is served from {region} alone"
        yield Problem(what, image, f"push it to a repository in {region}", path)


def _endpoint(settings: Settings, key: str, endpoint: Endpoint) -> Iterator[Problem]:
    path = ("endpoints", key)
    name = endpoint.model or key
    model = settings.models.get(name)
    if model is None:
        hint = did_you_mean(name, settings.models) or "declare the model in models"
        yield Problem("this stack has no such model", name, hint, (*path, "model"))
    else:
        yield from _runs(name, model, endpoint, path)
        if model.team not in (None, endpoint.team):
            hint = f"give the endpoint team: {model.team}, or share the model: remove its team"
            what = f"belongs to team {model.team}"
            yield Problem(what, name, hint, (*path, "model"))
    yield from _accelerator(endpoint, (*path, "accelerator"))
    yield from tpu_problems(endpoint, settings.region, path)
    if endpoint.account is None:
        return
    account, place = settings.service_accounts.get(endpoint.account), (*path, "account")
    if account is None:
        hint = did_you_mean(endpoint.account, settings.service_accounts)
        what = "this stack has no such account"
        yield Problem(what, endpoint.account, hint or "declare it in serviceAccounts", place)
    elif account.team not in (None, endpoint.team):
        hint = f"give the endpoint team: {account.team}, or an account of its own"
        yield Problem(f"belongs to team {account.team}", endpoint.account, hint, place)


def _runs(name: str, model: Model, endpoint: Endpoint, path: Path) -> Iterator[Problem]:
    known = ", ".join(f"run {run}" for run in model.run)
    for run in endpoint.shares:
        if run not in model.run:
            what = f"model '{name}' has no version of this run"
            hint = f"it has {known}: add the run to models.{name}.run first"
            yield Problem(what, f"run {run}", hint, (*path, "split", f"run {run}"))


def _accelerator(endpoint: Endpoint, path: Path) -> Iterator[Problem]:
    """The machine can have what is asked for, by the facts of ``rules.machines``.

    Of machines with TPUs ``serving_tpus`` tells.
    """
    name, given = endpoint.machine, endpoint.accelerator
    machine = machines.serving_machine_type(name)
    if machine is None or machine.tpu:
        return
    hint = f"it can have {machine.choices}" if machine.choices else "remove it"
    if given is None:
        if machine.accelerator_required:
            yield Problem(f"is missing; {name} needs it", "", hint, path)
    elif (counts := machine.accelerators.get(given.type)) is None:
        yield Problem(f"{name} cannot have this accelerator", given.type, hint, (*path, "type"))
    elif given.count not in counts:
        what = f"{name} takes {', '.join(map(str, counts))} of {given.type}"
        yield Problem(what, str(given.count), hint, (*path, "count"))


def tpu_problems(endpoint: Endpoint, region: str, path: Path) -> Iterator[Problem]:
    """Yield problems of endpoints."""
    name, given = endpoint.machine, endpoint.accelerator
    if any(name.startswith(prefix) for prefix in _facts()["refused"]["prefixes"]):
        hint = f"machines with TPUs: {', '.join(_machines())}"
        what = "endpoints do not run on TPUs of this generation"
        yield Problem(what, name, hint, (*path, "machine"))
        return
    row = _row(name)
    if row is None:
        return
    if region not in (*row["regions"], *row.get("allowlist", ())):
        hint = f"regions: {', '.join(row['regions'])}"
        what = f"endpoints have no machines like this in {region}"
        yield Problem(what, name, hint, (*path, "machine"))
    if given is not None and not given.type.startswith("TPU_"):
        what = f"{name} has TPUs built in, and nothing else"
        yield Problem(what, given.type, "remove it", (*path, "accelerator", "type"))


def tpu_warnings(endpoint: Endpoint, region: str, path: Path) -> Iterator[Problem]:
    """Yield settings that the service ignores or that no source documents."""
    name, given, replicas = endpoint.machine, endpoint.accelerator, endpoint.replicas
    row = _row(name)
    if row is None:
        return
    if region in row.get("allowlist", ()):
        what = f"endpoints have it in {region} for projects on Google's allowlist alone"
        hint = f"ask Google, or regions: {', '.join(row['regions'])}"
        yield Problem(what, name, hint, (*path, "machine"))
    if given is not None and given.type.startswith("TPU_"):
        what = f"{name} has its TPUs built in: whether the service takes a type is not known"
        yield Problem(what, given.type, "remove it", (*path, "accelerator"))
    if replicas.most > replicas.min:
        what = "is ignored: endpoints on TPUs always have the least replicas"
        hint = f"set min to what you need, or remove max: there will be {replicas.min}"
        yield Problem(what, str(replicas.most), hint, (*path, "replicas", "max"))


def _facts() -> dict[str, Any]:
    return catalog.load("serving_tpus.yaml")


def _row(name: str) -> dict[str, Any] | None:
    """Return the facts about a machine of endpoints, if it has TPUs."""
    machine = machines.machine_type(name)
    return _facts()["families"].get(machine.family) if machine else None


def _machines() -> list[str]:
    known = machines.machine_types()
    return [name for name, each in known.items() if each.family in _facts()["families"]]
