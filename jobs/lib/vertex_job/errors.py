"""Exceptions of this library, with texts for users."""

from __future__ import annotations


class VertexJobError(Exception):
    """An error that ends the job; the message includes a fix."""


class ClusterError(VertexJobError):
    """CLUSTER_SPEC has an unknown form; the text contains the value."""


class MetricError(VertexJobError):
    """A metric is not a finite number."""


class StoreError(VertexJobError):
    """A file cannot be read or written."""


class AlreadyExistsError(StoreError):
    """A file to create already exists."""


class SnapshotError(VertexJobError):
    """A snapshot is missing, incomplete or changed."""


class CheckpointError(VertexJobError):
    """A checkpoint cannot be saved, or is incomplete or damaged."""
