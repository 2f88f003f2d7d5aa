"""Code of the jobs, as source distributions in the staging bucket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.plan.packages import Package
from vertex_training.plan.references import package_object

#: Below the checkout: holds the built files on this machine.
FOLDER: Final = ".build/packages"


class Packages(pulumi.ComponentResource):
    """All packages of a stack, uploaded."""

    def __init__(
        self,
        name: str,
        *,
        packages: Mapping[str, Package],
        root: Path,
        bucket: gcp.storage.Bucket,
        keep_old: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``keep_old``: new code does not delete the old, which a job that goes on still fetches
        when it leaves the queue or a machine of it is replaced.
        """
        super().__init__("vertextraining:packages:Packages", name, None, opts)
        (root / FOLDER).mkdir(parents=True, exist_ok=True)
        self.objects = {}
        for key, package in packages.items():
            built = root / FOLDER / package.file
            if not built.exists() or built.read_bytes() != package.content:
                built.write_bytes(package.content)
            self.objects[key] = gcp.storage.BucketObject(
                f"{name}-{key}",
                bucket=bucket.name,
                name=package_object(package),
                source=pulumi.FileAsset(f"{FOLDER}/{package.file}"),
                content_type="application/gzip",
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=keep_old or None),
            )
        self.register_outputs({"objects": {k: o.output_name for k, o in self.objects.items()}})
