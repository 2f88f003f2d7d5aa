"""A resource type of the local cloud: kept in the store, with the checks most types share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localgcp.errors import CloudError, RefusedError
from localgcp.gcp.cloud import Cloud, normal_project, text
from localgcp.gcp.codec import plain, stored
from localgcp.gcp.diff import Change
from localgcp.gcp.plan import created, updated
from localgcp.gcp.schema import Traits


@dataclass(frozen=True)
class ExistingResource:
    """A resource that exists: its id, outputs, and the inputs that would make it."""

    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]


@dataclass(frozen=True)
class ResourceType(Traits):
    """Behaviour of one type. The defaults serve a type whose schema says everything."""

    title: str = ""
    # The API that must be on in the resource's project before anything else.
    api: str | None = None
    # True: creating what exists already is no conflict.
    overwrites: bool = False

    # -- what previews need: no store, no network ---------------------------------------------

    def known(self, cloud: Cloud, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs the plugin foretells before the resource exists."""
        del cloud, inputs
        return {}

    def changed(self, news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        """Changes of outputs, and replacements, that follow from the inputs' changes."""
        del news, olds
        return []

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        """What the plugin refuses while planning (later than in Check), or None."""
        del inputs
        return None

    # -- identity -------------------------------------------------------------------------------

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        """The project that owns the resource with these inputs or outputs."""
        return text(dict(values), "project") or cloud.settings.project

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """The resource's id, from the schema's format."""
        if cloud.type.id_format is None:
            raise RefusedError(f"{cloud.type.token} has no id format")

        def value(match: re.Match[str]) -> str:
            return self._part(cloud, inputs, match.group(1))

        return re.sub(r"{{(\w+)}}", value, cloud.type.id_format)

    def _part(self, cloud: Cloud, inputs: Mapping[str, Any], tf: str) -> str:
        given = inputs.get(cloud.type.by_tf(tf).name)
        if given is None:
            given = getattr(cloud.settings, "region" if tf == "location" else tf, "")
        if not given:
            raise RefusedError(f"{cloud.type.token}: {tf}: required field is not set")
        return str(given)

    def import_id(self, cloud: Cloud, given: str) -> str:
        """The id for what a person may write after ``pulumi import``."""
        given = normal_project(given, cloud.settings.project)
        for template in cloud.type.import_ids:
            pattern = re.sub(r"{{(\w+)}}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, given)
            if match:
                parts = {cloud.type.by_tf(tf).name: v for tf, v in match.groupdict().items()}
                return self.id(cloud, parts)
        return given

    # -- life -----------------------------------------------------------------------------------

    def create(self, cloud: Cloud, inputs: dict[str, Any]) -> ExistingResource:
        """Make the resource. Raises CloudError or RefusedError."""
        values = plain(inputs)
        project = self.project(cloud, values)
        cloud.guard(project)
        doing = f"Error creating {self.title}"
        cloud.need_api(project, self.api, doing)
        self.verify(cloud, project, values, doing)
        id_ = self.id(cloud, values)
        made = self.make(cloud, project, id_, values)
        outputs = created(cloud.type, inputs, cloud.settings, made)
        record = cloud.type.token, id_, project, stored(values), stored(outputs)
        if self.overwrites:
            cloud.store.put(*record)
        elif not cloud.store.insert(*record):
            raise CloudError(doing, 409, self.exists(id_), "alreadyExists")
        return ExistingResource(id_, inputs, outputs)

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        """The resource as it is now, or None if it is gone."""
        cloud.guard(self.owner(cloud, id_))
        found = cloud.store.get(cloud.type.token, self.import_id(cloud, id_))
        return ExistingResource(found.id, found.inputs, found.outputs) if found else None

    def update(
        self, cloud: Cloud, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        """Change the resource; its new outputs. Raises CloudError or RefusedError."""
        values, before = plain(inputs), plain(olds)
        project = self.project(cloud, before)
        cloud.guard(project)
        doing = f"Error updating {self.title} {id_!r}"
        cloud.need_api(project, self.api, doing)
        if cloud.store.get(cloud.type.token, id_) is None:
            raise CloudError(doing, 404, f"{id_} does not exist", "notFound")
        made = self.remake(cloud, project, id_, values, before)
        outputs = updated(cloud.type, inputs, olds, cloud.settings, made, planning=False)
        cloud.store.put(cloud.type.token, id_, project, stored(values), stored(outputs))
        return outputs

    def delete(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        """Remove the resource; one that is gone already is no error."""
        before = plain(olds)
        cloud.guard(self.project(cloud, before))
        policy = before.get("deletionPolicy")
        if policy == "PREVENT":
            raise RefusedError(
                f"cannot destroy {self.title or cloud.type.token} {id_} without setting "
                "deletion_policy = DELETE and running `pulumi up`"
            )
        if policy == "ABANDON" or self.outlives_deletion(before):
            return
        self.unmake(cloud, id_, before)
        cloud.store.delete(cloud.type.token, id_)

    # -- what services fill in ------------------------------------------------------------------

    def owner(self, cloud: Cloud, id_: str) -> str:
        """The project a resource id belongs to."""
        match = re.match(r"projects/([^/]+)/", normal_project(id_, cloud.settings.project))
        return match.group(1) if match else cloud.settings.project

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        """Whether it stays in the cloud when its resource is deleted."""
        del olds
        return False

    def exists(self, id_: str) -> str:
        """Text of the 409."""
        return f"{self.title} {id_} already exists"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        """Refuse what the cloud refuses."""
        del cloud, project, inputs, doing

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        """Do the work of a create; the outputs the service decides."""
        del project, id_
        return self.known(cloud, inputs)

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        """Do the work of an update; the outputs that change with it."""
        del cloud, project, id_, inputs, olds
        return {}

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        """Do the work of a delete: by default forget the policy on the resource."""
        del olds
        cloud.store.delete_policy(id_)
