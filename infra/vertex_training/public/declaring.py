"""What the components have in common when they declare: order, APIs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import pulumi

from vertex_training.components.apis import DOMAIN, Apis
from vertex_training.customjob.request.job_file import Submission
from vertex_training.errors import Problem
from vertex_training.naming import CONTROL, STAGING
from vertex_training.public.reading import Arguments
from vertex_training.pulumi_internals import awaited, is_mocked
from vertex_training.stack import Stack

T = TypeVar("T")

#: (whether it is a preview, what a program may declare once) -> the component that declares it.
_CLAIMED: Final[dict[tuple[bool, str], str]] = {}


def prerequisites(
    opts: pulumi.ResourceOptions | None, arguments: Arguments
) -> list[pulumi.Resource]:
    """What all in a component waits for: its own ``depends_on``, and where its values are from."""
    given: Any = opts.depends_on if opts else None
    if isinstance(given, pulumi.Output):
        given = awaited(given.future())
    own = [given] if isinstance(given, pulumi.Resource) else list(given or [])
    return [*own, *arguments.dependencies]


def apis_of(
    component: pulumi.Resource,
    name: str,
    project: str,
    apis: Sequence[str],
    after: Sequence[pulumi.Resource],
) -> Apis:
    """The APIs that a component needs, by short name: ``storage``. All in it waits for them.

    ``after``: what they wait for, so that all in the component does.
    """
    full = [f"{api}{DOMAIN}" for api in apis]
    inside = pulumi.ResourceOptions(parent=component)
    return Apis(f"{name}-apis", project, full, after=after, opts=inside)


def made_buckets(stack: Stack) -> list[str]:
    """Names of the buckets that a stack makes, and does not only grant on."""
    settings = stack.settings
    keys = [key for key, bucket in settings.buckets.items() if not bucket.existing]
    return [settings.names.bucket(key) for key in (*keys, STAGING, CONTROL)]


def claim(
    arguments: Arguments, *, jobs: Sequence[Submission] = (), buckets: Sequence[str] = ()
) -> None:
    """Take the names of jobs and buckets for one component of a program.

    Two components with one job's name would share the job, and one would cancel it for both.

    Raises:
        ArgumentsError: another component of the program has one of them.
    """
    if is_mocked():
        return  # a company's unit tests may declare a component once a test
    wanted = [
        (f"job {each.job} of {each.stack} in {each.project}, {each.region}", "name it otherwise")
        for each in jobs
    ]
    wanted += [(f"bucket {name}", "give another environment or name") for name in buckets]
    # A plugin may serve the preview of an `up` and the `up` itself.
    run = pulumi.runtime.is_dry_run()
    for what, hint in wanted:
        if other := _CLAIMED.get((run, what)):
            arguments.problems.append(Problem(f"{other} declares {what}", hint=hint))
    arguments.check()
    _CLAIMED.update({(run, what): arguments.component for what, _ in wanted})


def output_of(component: pulumi.Resource, value: T) -> pulumi.Output[T]:
    """A value that is known, also in a preview; what takes it waits for all of ``component``.

    An output of one resource would let a job start before the grants beside it are made.
    """

    return pulumi.Output({component}, _of(value), _of(True))


async def _of(value: T) -> T:
    return value
