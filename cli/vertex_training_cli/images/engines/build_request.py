"""The request to Cloud Build for one image, and which running builds make the same.

BuildKit builds in a container of its own, and its cache lies in the registry beside the image. That
container is not on the network where steps get credentials, so what a Dockerfile runs cannot act as
the build account. Cloud Build itself pushes the finished image, and reports its digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vertex_training.naming import IMAGE_BUILD, Names
from vertex_training_cli.images.engines.engine import Build

if TYPE_CHECKING:
    from google.cloud.devtools import cloudbuild_v1

#: https://github.com/GoogleCloudPlatform/cloud-builders/tree/master/docker
DOCKER: Final = "gcr.io/cloud-builders/docker"
#: BuildKit from Google's copy of Docker Hub, which has no limit on pulls.
BUILDKIT: Final = "image=mirror.gcr.io/moby/buildkit:buildx-stable-1"
BUILDER: Final = "images"
#: Tag of the layers that the next build starts from.
CACHE_TAG: Final = "buildcache"
#: Seconds within which a build must begin.
QUEUE_SECONDS: Final = 1800
#: Substitutions: what is built, and by which call of a command.
IDENTITY: Final = "_IDENTITY"
ATTEMPT: Final = "_ATTEMPT"
#: The tag of every build of ours.
OURS: Final = "vertex-training"


@dataclass(frozen=True, slots=True)
class StoredSource:
    """An archive in the staging bucket."""

    bucket: str
    name: str
    generation: int


def build_message(
    build: Build, names: Names, source: StoredSource, attempt: str
) -> cloudbuild_v1.Build:
    """The build to request. ``attempt`` is unique to this call of a command."""
    from google.cloud.devtools import cloudbuild_v1
    from google.protobuf.duration_pb2 import Duration

    options = cloudbuild_v1.BuildOptions
    return cloudbuild_v1.Build(
        source=cloudbuild_v1.Source(
            storage_source=cloudbuild_v1.StorageSource(
                bucket=source.bucket, object_=source.name, generation=source.generation
            )
        ),
        steps=[
            cloudbuild_v1.BuildStep(name=DOCKER, id="builder", args=_create_builder()),
            cloudbuild_v1.BuildStep(name=DOCKER, id="build", args=_escaped(_build(build))),
        ],
        images=[build.reference],
        service_account=names.account(IMAGE_BUILD),
        tags=[OURS, f"image-{build.name}", build.tag],
        substitutions={IDENTITY: build.identity, ATTEMPT: attempt},
        timeout=Duration(seconds=max(1, int(build.timeout))),
        queue_ttl=Duration(seconds=QUEUE_SECONDS),
        options=options(
            logging=options.LoggingMode.CLOUD_LOGGING_ONLY,
            substitution_option=options.SubstitutionOption.ALLOW_LOOSE,
        ),
    )


def makes_the_same(found: cloudbuild_v1.Build, wanted: cloudbuild_v1.Build) -> bool:
    """Whether ``found`` gives the image that ``wanted`` asks for: same source, steps and account.

    A tag alone proves nothing: anybody who may build can set it. Labels may differ, since another
    commit can have the same context.
    """
    return _essence(found) == _essence(wanted)


def _essence(build: cloudbuild_v1.Build) -> tuple[object, ...]:
    source = build.source.storage_source
    return (
        (source.bucket, source.object_, int(source.generation)),
        tuple((step.name, step.entrypoint, _without_labels(step.args)) for step in build.steps),
        tuple(build.images),
        build.service_account.rpartition("/")[2],
        build.substitutions.get(IDENTITY),
    )


def _without_labels(args: Iterable[str]) -> tuple[str, ...]:
    """Arguments as they are run, without pairs of ``--label`` and its value."""
    plain = [arg.replace("$$", "$") for arg in args]
    kept: list[str] = []
    values = iter(plain)
    for arg in values:
        if arg == "--label":
            next(values, None)
        else:
            kept.append(arg)
    return tuple(kept)


def _create_builder() -> list[str]:
    # A cache in a registry takes a builder of its own; the daemon's can only write it inline.
    driver = ("--driver", "docker-container", "--driver-opt", BUILDKIT)
    return ["buildx", "create", "--name", BUILDER, *driver]


def _build(build: Build) -> list[str]:
    cache = f"type=registry,ref={build.image}:{CACHE_TAG}"
    return [
        *("buildx", "build", "--builder", BUILDER, "--platform", "linux/amd64"),
        # One manifest, no index: the digest is that of the image itself.
        *("--provenance", "false", "--progress", "plain"),
        *("--file", build.dockerfile, "--tag", build.reference),
        *_each("--build-arg", build.build_args),
        *_each("--label", build.labels),
        *(("--target", build.target) if build.target else ()),
        *("--cache-from", cache),
        # With immutable tags only the first write is allowed: a build without its cache is slower.
        *(("--cache-to", f"{cache},mode=max,ignore-error=true") if build.writes_cache else ()),
        *("--load", "."),
    ]


def _each(option: str, values: Mapping[str, str]) -> list[str]:
    return [part for key, value in sorted(values.items()) for part in (option, f"{key}={value}")]


def _escaped(args: list[str]) -> list[str]:
    """``$`` begins a substitution: https://docs.cloud.google.com/build/docs/configuring-builds/substitute-variable-values"""
    return [arg.replace("$", "$$") for arg in args]
