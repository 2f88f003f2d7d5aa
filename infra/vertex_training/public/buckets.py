"""``TrainingBuckets``: buckets for data, artifacts, code and records."""

from collections.abc import Mapping
from typing import Final, NotRequired, Optional, TypedDict

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.components.storage import Storage
from vertex_training.environment import Scope
from vertex_training.naming import CONTROL, STAGING
from vertex_training.public.declaring import (
    apis_of,
    claim,
    made_buckets,
    output_of,
    prerequisites,
)
from vertex_training.public.reading import Arguments, environment_name
from vertex_training.public.sections import BucketArgs
from vertex_training.settings.model import Settings

FIELDS: Final = ("project", "region", "labels", "buckets")
OTHERS: Final = ("environment", "encryption_key")


class TrainingBucketsArgs(TypedDict):
    """Arguments of :class:`TrainingBuckets`."""

    project: Input[str]
    """Id of the project that owns them."""
    region: Input[str]
    """Where they are: the region of the jobs."""
    environment: NotRequired[Input[str]]
    """Ends their names: ``PROJECT-KEY-ENVIRONMENT``. The Pulumi stack's name without it."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of all of them."""
    buckets: NotRequired[Input[Mapping[str, Input[BucketArgs]]]]
    """By key. ``staging`` (code) and ``control`` (records) are always made."""
    encryption_key: NotRequired[Input[str]]
    """A key in Cloud KMS that encrypts all of them; Cloud Storage must be allowed to use it. May be
    unknown in a preview."""


class TrainingBuckets(pulumi.ComponentResource):
    """Buckets for training: regional, closed to the public, with uniform access.

    Two are always made: ``staging`` for code, and ``control`` for the records by which a job is
    submitted once. Enables Cloud Storage.

    Example::

        buckets = TrainingBuckets(
            "buckets",
            {
                "project": "local-training",
                "region": "us-central1",
                "buckets": {"data": {}, "artifacts": {"delete_after_days": 30}},
            },
        )
        pulumi.export("data", buckets.urls["data"])
    """

    names: Output[Mapping[str, str]]
    """Their names by key, without ``gs://``."""
    urls: Output[Mapping[str, str]]
    """``gs://NAME`` by key."""
    control: Output[str]
    """Name of the bucket for records, which ``TrainingJob`` takes."""

    def __init__(
        self,
        name: str,
        args: TrainingBucketsArgs,
        opts: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as Pulumi's host reads it
    ) -> None:
        """Check the arguments and declare the buckets.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingBuckets '{name}'")
        given = arguments.named(args, (*FIELDS, *OTHERS))
        raw = arguments.section(Settings, given, FIELDS)
        key = given.get("encryption_key")
        if (known := arguments.known(key, ("encryption_key",))) is not None:
            raw["encryption"] = {"key": known, "covers": ["buckets"]}
            arguments.alias(("encryption_key",), ("encryption", "key"))
        stack = arguments.stack(raw, environment_name(given, arguments))
        claim(arguments, buckets=made_buckets(stack))
        super().__init__("vertex-training:index:TrainingBuckets", name, {}, opts)
        settings = stack.settings
        apis = apis_of(self, name, settings.project, ["storage"], prerequisites(opts, arguments))
        storage = Storage(
            name,
            names=settings.names,
            labels=settings.labels_by_team,
            buckets=settings.buckets,
            objects=stack.objects,
            key=key,
            after=apis.on("storage"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        program.declare_extra_grants(Scope(name, self), stack, [storage])
        found = {key: settings.names.bucket(key) for key in (*settings.buckets, STAGING, CONTROL)}
        self.names = output_of(self, found)
        self.urls = output_of(self, {each: f"gs://{found[each]}" for each in found})
        self.control = output_of(self, found[CONTROL])
        self.register_outputs({"names": self.names, "urls": self.urls, "control": self.control})
