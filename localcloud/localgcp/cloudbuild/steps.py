"""The steps of an image's build -> what the engine of this machine is asked to build."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.cloud.devtools import cloudbuild_v1

from localgcp.errors import UnsupportedBuildError

DOCKER: Final = "gcr.io/cloud-builders/docker"
#: Options with a value that change nothing here: there is one builder, one platform and no cache.
IGNORED: Final = frozenset(
    {"--builder", "--platform", "--provenance", "--progress", "--cache-from", "--cache-to"}
)
REPEATED: Final = frozenset({"--build-arg", "--label"})
SINGLE: Final = frozenset({"--file", "--tag", "--target"})
_SUBSTITUTION: Final = re.compile(r"\$\$|\$\{?(_[A-Z0-9_]+|[A-Z][A-Z0-9_]*)\}?")


def engine_request(build: cloudbuild_v1.Build, archive: str) -> dict[str, Any]:
    """The fields of an engine's build. Raises UnsupportedBuildError for anything else."""
    for step in build.steps:
        if step.name.partition(":")[0] != DOCKER or step.entrypoint:
            raise UnsupportedBuildError(f"step {step.name}")
    commands = [_substituted(step.args, build.substitutions) for step in build.steps]
    builds = [args[2:] for args in commands if args[:2] == ["buildx", "build"]]
    others = [
        args for args in commands if args[:2] not in (["buildx", "build"], ["buildx", "create"])
    ]
    if len(builds) != 1 or others:
        raise UnsupportedBuildError("docker, other than buildx create and one buildx build")
    options = _options(builds[0])
    reference = options["--tag"]
    folder, slash, named = reference.rpartition("/")  # a host may have a port
    name, _, tag = named.partition(":")
    if list(build.images) != [reference]:
        raise UnsupportedBuildError(f"images {list(build.images)} beside --tag {reference}")
    return {
        "name": name,
        "archive": archive,
        "context": ".",
        "dockerfile": options.get("--file", "Dockerfile"),
        "build_args": options["--build-arg"],
        "target": options.get("--target", ""),
        "image": f"{folder}{slash}{name}",
        "tag": tag or "latest",  # as docker has it
        "labels": options["--label"],
        "identity": build.substitutions.get("_IDENTITY", ""),
        "timeout": build.timeout.total_seconds(),  # pyright: ignore[reportAttributeAccessIssue]
    }


def _substituted(args: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """``$$`` is a dollar; a variable that has no value is empty, as ALLOW_LOOSE has it."""

    def replace(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else values.get(match[1], "")

    return [_SUBSTITUTION.sub(replace, arg) for arg in args]


def _options(args: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"--build-arg": {}, "--label": {}}
    rest = iter(args)
    for option in rest:
        if option in ("--load", "."):
            continue
        if option not in IGNORED | REPEATED | SINGLE:
            raise UnsupportedBuildError(f"docker buildx build {option}")
        value = next(rest, "")
        if option in REPEATED:
            key, _, text = value.partition("=")
            found[option][key] = text
        elif option in SINGLE:
            found[option] = value
    if "--tag" not in found:
        raise UnsupportedBuildError("docker buildx build without --tag")
    return found
