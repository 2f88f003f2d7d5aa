"""Calls a team's ``declare(environment)``, after everything of ours.

Resources are registered when the program's last line has run. A program that ends before, by
``engine.abandon_with_message``, registers nothing, neither a team's nor its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pulumi

from vertex_training.components.environment import Environment
from vertex_training.customjob.resource import CustomJob
from vertex_training.errors import ConfigError, Problem
from vertex_training.extra.faults import problem_of
from vertex_training.extra.loading import Extra
from vertex_training.pulumi_internals import get_root_resource

#: Packages whose resources a state may name; ``vt/deploy/state_code.py`` judges the state.
DEPLOYED: Final = ("gcp", "pulumi")


def declare_extra(extra: Extra, environment: Environment) -> None:
    """Declare a team's own resources. Advice about them is logged.

    Raises:
        ConfigError: its code raised something, or exported an output of the program's name.
    """
    if extra.declare is None:
        return
    types = _watch_types()
    before = _outputs()
    try:
        extra.declare(environment)
    except (Exception, SystemExit) as error:  # any code may stand there
        problem = problem_of(error, "declare(environment)", extra.root)
        raise ConfigError([problem]) from error
    if problems := [*_overwritten(before, _outputs(), extra.root)]:
        raise ConfigError(problems)
    for line in refused_by_deploy(types):
        pulumi.log.warn(line)


def refused_by_deploy(types: Iterable[str]) -> list[str]:
    """Advice about resources whose state ``vt deploy`` refuses, one line a type."""
    hint = "use resources of gcp, or a Pulumi project of its own for it; docs/components.md"
    return [
        f"extra: {type_}: `vt deploy` will refuse the state with this resource, since it runs "
        f"another provider than the program's. Hint: {hint}"
        for type_ in sorted(set(types))
        if type_.removeprefix("pulumi:providers:").partition(":")[0] not in DEPLOYED
    ]


def _watch_types() -> list[str]:
    """A list that gets the type of each resource declared from now on; not of components."""
    types: list[str] = []

    def watch(args: pulumi.ResourceTransformationArgs) -> None:
        if isinstance(args.resource, pulumi.CustomResource) and not _is_own(args.resource):
            types.append(args.type_)

    if get_root_resource() is not None:
        pulumi.runtime.register_stack_transformation(watch)
    return types


def _is_own(resource: pulumi.Resource) -> bool:
    """Whether a resource is a job, whose provider is the program's."""
    return isinstance(resource, CustomJob)


def _outputs() -> Mapping[str, Any]:
    stack = get_root_resource()
    return dict(getattr(stack, "outputs", None) or {})


def _overwritten(
    before: Mapping[str, Any], after: Mapping[str, Any], root: Path
) -> Iterator[Problem]:
    file = "extra.py" if (root / "extra.py").is_file() else "extra/__init__.py"
    for name, value in before.items():
        if after.get(name) is not value:
            hint = "export it by another name; reviews and other stacks read the program's"
            yield Problem(f"{file} exports an output of the program", name, hint)
