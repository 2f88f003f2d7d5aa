"""``google.cloud.aiplatform.v1.MetadataService``: what experiments, runs and artifacts are kept as.

An experiment is a context, a run a context below it, and its parameters and metrics are the run's
metadata. Schemas of metadata are not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from google.protobuf import json_format

from localgcp.apis.client import Api
from localgcp.apis.messages import artifact, event, execution, lineage_subgraph, metadata_store
from localgcp.apis.messages import context as context_types
from localgcp.apis.messages import metadata_service as requests
from localgcp.experiments.collections import Collection, ResourceService, serves, to_message
from localgcp.experiments.records import Body
from localgcp.vertex import filters
from localgcp.vertex.records import now

STORES: Final = Collection(
    metadata_store.MetadataStore,
    "metadata_store",
    "metadata_stores",
    "metadataStores",
    requests,
    operations={"create": requests.CreateMetadataStoreOperationMetadata},
)
ARTIFACTS: Final = Collection(
    artifact.Artifact, "artifact", "artifacts", "metadataStores/*/artifacts", requests
)
CONTEXTS: Final = Collection(
    context_types.Context, "context", "contexts", "metadataStores/*/contexts", requests
)
EXECUTIONS: Final = Collection(
    execution.Execution, "execution", "executions", "metadataStores/*/executions", requests
)
#: Kinds of links: a context has artifacts and executions, and contexts; an execution has events.
_HAS, _CHILD, _EVENT = "in_context", "child", "event"
#: Fields of filters that are links: kind, and whether the resource is the link's target.
_LINKS: Final = {
    "in_context": (_HAS, True),
    "parent_contexts": (_CHILD, True),
    "child_contexts": (_CHILD, False),
}


@serves(STORES, ARTIFACTS, CONTEXTS, EXECUTIONS)
class MetadataService(ResourceService):
    """Stores, artifacts, contexts and executions, and how they belong together."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "metadata_service")

    def read_field(self, body: Body, field: str) -> filters.Value:
        """Contexts of a resource; else its fields."""
        if field not in _LINKS:
            return super().read_field(body, field)
        name, (kind, is_target) = body["name"], _LINKS[field]
        if is_target:
            return [source for source, _, _ in self._table.links(kind, target=name)]
        return [target for _, target, _ in self._table.links(kind, source=name)]

    def add_context_artifacts_and_executions(
        self, request: requests.AddContextArtifactsAndExecutionsRequest, context: Any
    ) -> requests.AddContextArtifactsAndExecutionsResponse:
        """Put artifacts and executions into a context."""
        owner = self.find(CONTEXTS, request.context, context)["name"]
        found = [self.find(ARTIFACTS, name, context) for name in request.artifacts]
        found += [self.find(EXECUTIONS, name, context) for name in request.executions]
        self._table.link(_HAS, [(owner, each["name"]) for each in found])
        return requests.AddContextArtifactsAndExecutionsResponse()

    def add_context_children(
        self, request: requests.AddContextChildrenRequest, context: Any
    ) -> requests.AddContextChildrenResponse:
        """Put contexts below a context."""
        self._table.link(_CHILD, self._children(request, context))
        return requests.AddContextChildrenResponse()

    def remove_context_children(
        self, request: requests.RemoveContextChildrenRequest, context: Any
    ) -> requests.RemoveContextChildrenResponse:
        """Take contexts from below a context."""
        self._table.unlink(_CHILD, self._children(request, context))
        return requests.RemoveContextChildrenResponse()

    def _children(self, request: Any, context: Any) -> list[tuple[str, str]]:
        owner = self.find(CONTEXTS, request.context, context)["name"]
        names = request.child_contexts
        return [(owner, self.find(CONTEXTS, name, context)["name"]) for name in names]

    def add_execution_events(
        self, request: requests.AddExecutionEventsRequest, context: Any
    ) -> requests.AddExecutionEventsResponse:
        """Note which artifacts an execution took and made."""
        owner = self.find(EXECUTIONS, request.execution, context)["name"]
        for each in request.events:
            target = self.find(ARTIFACTS, each.artifact, context)["name"]
            body = json_format.MessageToDict(event.Event.pb(each))
            body |= {"execution": owner, "artifact": target, "eventTime": now()}
            self._table.link(_EVENT, [(owner, target)], body)
        return requests.AddExecutionEventsResponse()

    def query_execution_inputs_and_outputs(
        self, request: requests.QueryExecutionInputsAndOutputsRequest, context: Any
    ) -> lineage_subgraph.LineageSubgraph:
        """An execution with its artifacts."""
        return self._graph([self.find(EXECUTIONS, request.execution, context)["name"]], [])

    def query_context_lineage_subgraph(
        self, request: requests.QueryContextLineageSubgraphRequest, context: Any
    ) -> lineage_subgraph.LineageSubgraph:
        """What a context has, with the events among it."""
        owner = self.find(CONTEXTS, request.context, context)["name"]
        names = [target for _, target, _ in self._table.links(_HAS, source=owner)]
        executions = [name for name in names if "/executions/" in name]
        return self._graph(executions, [name for name in names if name not in executions])

    def _graph(
        self, executions: Iterable[str], artifacts: Iterable[str]
    ) -> lineage_subgraph.LineageSubgraph:
        executions = list(executions)
        linked = [link for name in executions for link in self._table.links(_EVENT, source=name)]
        names = dict.fromkeys([*artifacts, *(target for _, target, _ in linked)])
        return lineage_subgraph.LineageSubgraph(
            artifacts=[to_message(ARTIFACTS, self._table.get(name) or {}) for name in names],
            executions=[to_message(EXECUTIONS, self._table.get(name) or {}) for name in executions],
            events=[event.Event.from_json(json.dumps(body)) for *_, body in linked],
        )
