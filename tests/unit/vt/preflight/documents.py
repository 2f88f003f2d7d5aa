"""A cloud of documents by their addresses: what a part asks, and what it makes of each answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.unit.infra.stacks import planned
from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight.context import PreflightContext, ReadOnlyClient

#: An answer of 403, and one that never comes.
FORBIDDEN, SILENT = "forbidden", "silent"
PROJECT = "acme-ml-prod"
COMPUTE = "https://compute.googleapis.com/compute/v1/"


class Documents:
    """Has a document for some addresses, and 404 for all others."""

    def __init__(
        self,
        documents: Mapping[str, Any] | None = None,
        lacks: Mapping[str, Iterable[str] | None] | None = None,
    ) -> None:
        self.documents, self.asked = dict(documents or {}), list[str]()
        self.lacks = dict(lacks or {})
        """Address of a test of permissions -> those that are not held; None if it is not there."""

    def call(self, method: str, url: str, what: str, **more: Any) -> dict[str, Any] | None:
        self.asked.append(url)
        path = urlsplit(url)
        if path.path.endswith(("estIamPermissions", "/testPermissions")):
            bare = url.partition("?")[0]
            missing = self.lacks.get(bare, ())
            if missing is None or missing == FORBIDDEN:
                return self._found(missing, what)
            query = parse_qs(path.query).get("permissions", [])
            wanted = more["json"]["permissions"] if method == "POST" else query
            return {"permissions": [each for each in wanted if each not in missing]}
        return self._found(self.documents.get(url), what)

    def _found(self, found: Any, what: str) -> dict[str, Any] | None:
        if found == FORBIDDEN:
            raise ForbiddenReadError(f"{what} cannot be read: 403 Forbidden")
        if found == SILENT:
            raise CommandError(f"cannot reach {what}: no route")
        return found


def context(
    documents: Mapping[str, Any] | None = None,
    *resources: DeclaredResource,
    root: Path = Path("/nonexistent"),
    lacks: Mapping[str, Iterable[str] | None] | None = None,
    made: Iterable[DeclaredResource] | None = (),
    requests: Mapping[str, Any] | None = None,
    backend: str = "",
    checked_as: str = "",
    as_ci: bool = False,
    **sections: Any,
) -> PreflightContext:
    """The small stack with these sections and resources. ``made`` is in the state, if that was
    read."""
    declared = DeclaredStack(planned(**sections), requests or {}, resources)
    client: Any = Documents(documents, lacks)
    recorded = None if made is None else frozenset((each.type, each.id) for each in made)
    ref = StackRef(root, "vertex-training", "prod", PROJECT, "us-central1")
    return PreflightContext(
        ref, declared, ReadOnlyClient(client), recorded, backend, checked_as, as_ci
    )
