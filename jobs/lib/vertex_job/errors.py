"""Exceptions of this library; the texts are for people."""

from __future__ import annotations


class VertexJobError(Exception):
    """An error that ends the job; the message names the remedy."""


class ClusterError(VertexJobError):
    """The service's description of the cluster is not understood; the text has what was seen."""


class MetricError(VertexJobError):
    """A metric is no finite number."""


class StoreError(VertexJobError):
    """A file cannot be read or written."""


class AlreadyExistsError(StoreError):
    """A file that was to be new is there."""


class SnapshotError(VertexJobError):
    """A snapshot is none, or not what was written."""


class CheckpointError(VertexJobError):
    """A checkpoint cannot be made, or is not whole."""
