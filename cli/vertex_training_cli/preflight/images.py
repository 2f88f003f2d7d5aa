"""Checks of images of jobs and models: each exists, and the service agents may pull it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vertex_training import naming
from vertex_training.customjob.rules.images import GOOGLES
from vertex_training.plan import grants, stack_grants
from vertex_training.plan.grants import GrantRequest
from vertex_training_cli import rest
from vertex_training_cli.images import lookup
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import answered
from vertex_training_cli.preflight.context import PreflightContext

#: Permission to read an image.
DOWNLOAD: Final = "artifactregistry.repositories.downloadArtifacts"
#: Roles on a repository that include ``downloadArtifacts``:
#: https://docs.cloud.google.com/artifact-registry/docs/access-control
PULLING: Final = frozenset(
    f"roles/artifactregistry.{role}" for role in ("reader", "writer", "repoAdmin", "admin")
)


def ask(context: PreflightContext) -> Iterator[Answer]:
    """Check that the images of jobs and served models exist and can be pulled."""
    jobs, models = dict[str, list[str]](), dict[str, list[str]]()
    for job, request in context.declared.requests.items():
        body = json.loads(request.body)
        spec = body.get("jobSpec") or body.get("trialJobSpec") or {}
        run = stack_grants.images({"jobSpec": spec})
        for name in dict.fromkeys(run):
            if not GOOGLES.match(name):  # public images
                jobs.setdefault(name, []).append(job)
    for (model, _), version in context.declared.stack.versions.items():
        if not GOOGLES.match(version.image) and model not in models.get(version.image, ()):
            models.setdefault(version.image, []).append(model)
    names = sorted({**jobs, **models})
    pinned = [name for name in names if lookup.is_digest(name)]
    looks = lookup.look(pinned, is_local=context.ref.is_local)
    for name in names:
        fails = {
            "jobs fail before their code starts": jobs.get(name),
            "versions of models cannot be deployed": models.get(name),
        }
        meets = "; ".join(f"{what}: {', '.join(of)}" for what, of in fails.items() if of)
        yield _exists(context, name, meets, looks)
    settings = context.declared.stack.declared
    of_jobs = stack_grants.image_grants(settings, sorted(jobs))
    of_models = stack_grants.image_grants(settings, sorted(models), of_models=True)
    for grant in {image.key: image for image in (*of_models, *of_jobs)}.values():
        yield from _pulled(context, grant)


def _exists(
    context: PreflightContext, name: str, meets: str, looks: Mapping[str, lookup.Look]
) -> Answer:
    of = question(name, "existence of the image")
    if (look := looks.get(name)) is None:
        return of.unknown("not checked: a tag can move; use a digest")
    if (trouble := look.trouble) is None:
        return of.ok("yes")
    rule, text = trouble
    if rule == "image-not-looked-at":
        return of.unknown(text, DOWNLOAD if "403" in text else "")
    image = name.partition("@")[0].rpartition("/")[2]
    return of.refused(
        text,
        meets,
        f"vt images build {image} --stack {context.ref.stack}, or vt promote {image} --from OTHER "
        f"--to {context.ref.stack}",
    )


@answered
def _pulled(context: PreflightContext, grant: GrantRequest) -> Iterator[Answer]:
    """Check whether a service agent may pull images from a repository of another project."""
    who = grant.member.removeprefix("serviceAccount:")
    of = question(grant.resource, f"pull access of {who}")
    policy = context.client.get(rest.REPOSITORY_POLICY, of, grant.resource)
    if policy is None:
        yield of.refused(
            "the repository does not exist", "its images cannot be pulled", "use another repository"
        )
        return
    members = set(pulling(policy.get("bindings") or ()))
    if members & {grant.member, *naming.PUBLIC_MEMBERS}:
        yield of.ok("yes")
    else:
        # access by a role on the project, by a group or under a condition is not checked
        meets = "the image cannot be pulled, unless a role on the project allows it"
        yield of.refused("no, by the repository's IAM policy", meets, grants.command(grant))


def pulling(bindings: Iterable[Any]) -> Iterator[str]:
    """Yield members that may pull without a condition. The policy may have any form."""
    for binding in bindings:
        if not isinstance(binding, dict) or binding.get("condition"):
            continue
        members: Any = binding.get("members")
        if binding.get("role") in PULLING and isinstance(members, list):
            yield from map(str, members)
