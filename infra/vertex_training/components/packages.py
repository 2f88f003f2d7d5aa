"""Code of the jobs, as source distributions in the staging bucket."""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.scope import Scope
from vertex_training.components.storage import Storage
from vertex_training.naming import STAGING
from vertex_training.plan.references import package_object
from vertex_training.stack import Stack

#: Below the checkout: holds the built files on this machine.
FOLDER: Final = ".build/packages"


class Packages(pulumi.ComponentResource):
    """All packages of a stack, uploaded."""

    def __init__(self, scope: Scope, stack: Stack, storage: Storage) -> None:
        super().__init__("vertextraining:packages:Packages", scope.name, None, scope.opts)
        settings, folder = stack.declared, stack.root / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        # A job that goes on still fetches old code when it leaves the queue or a machine of it is
        # replaced. So new code does not delete the old.
        keeps_old = any(settings.finishes(job) for job in settings.submitted) or None
        self.objects = {}
        for key, package in stack.packages.items():
            built = folder / package.file
            if not built.exists() or built.read_bytes() != package.content:
                built.write_bytes(package.content)
            self.objects[key] = gcp.storage.BucketObject(
                f"{scope.name}-{key}",
                bucket=storage.buckets[STAGING].name,
                name=package_object(package),
                source=pulumi.FileAsset(f"{FOLDER}/{package.file}"),
                content_type="application/gzip",
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=keeps_old),
            )
        self.register_outputs({"objects": {k: o.output_name for k, o in self.objects.items()}})
