"""The snapshots: results of queries in BigQuery, as files that jobs name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from vertex_training.components import provider
from vertex_training.components.apis import Apis
from vertex_training.components.ordering import Scope
from vertex_training.components.storage import Storage
from vertex_training.naming import CONTROL
from vertex_training.snapshots.provider import Snapshot
from vertex_training.stack import Stack


class Snapshots(pulumi.ComponentResource):
    """All snapshots of a stack. Jobs wait for it: what they name is there, and whole."""

    snapshots: Mapping[str, Snapshot]

    def __init__(self, scope: Scope, stack: Stack, after: Sequence[pulumi.Resource]) -> None:
        """``after``: the API of BigQuery, and the buckets."""
        super().__init__("vertextraining:snapshots:Snapshots", scope.name, None, scope.opts)
        self.snapshots = {
            key: Snapshot(
                f"{scope.name}-{key}",
                request=request,
                control_bucket=stack.declared.names.bucket(CONTROL),
                impersonate=provider.submitter_of(self),
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            for key, request in stack.snapshots.items()
        }
        self.register_outputs({})


def make_snapshots(scope: Scope, stack: Stack, apis: Apis, storage: Storage) -> list[Snapshots]:
    """The component, where the stack has snapshots."""
    if not stack.snapshots:
        return []
    return [Snapshots(scope.child("snapshots"), stack, [*apis.on("bigquery"), storage])]


def snapshot_outputs(stack: Stack, made: Mapping[str, Snapshot]) -> dict[str, object]:
    """The outputs of a stack about its snapshots, by the stack file's keys, as ``made`` has them.

    The folder is known in a preview.
    """
    folders = stack.by_new_keys(("snapshots",), stack.snapshots)
    return {
        key: {"folder": folders[key].uri, "manifest": snapshot.manifest}
        for key, snapshot in made.items()
    }
