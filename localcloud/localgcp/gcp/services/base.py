"""The base classes of all resource types and of the types of Compute Engine."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from localgcp.apis import field_rules
from localgcp.errors import CloudError, RefusedError
from localgcp.gcp.cloud import Cloud, Values, new_number, normal_project, now, text
from localgcp.gcp.codec import plain, stored
from localgcp.gcp.diff import Change
from localgcp.gcp.plan import updated
from localgcp.gcp.schema import Property, Traits
from localgcp.inventory import machines, resource_paths
from localgcp.inventory.resource_paths import SELF_LINK
from localgcp.inventory.store import Store, StoredResource
from localgcp.inventory.vpc import ADDRESS, ATTACHMENT, NETWORK, SUBNETWORK
from localgcp.vertex import networks


@dataclass(frozen=True)
class ExistingResource:
    """An existing resource, with the inputs that would create the resource."""

    id: str
    inputs: Values
    outputs: Values


def api_document(properties: Mapping[str, Property], inputs: Mapping[str, Any]) -> Values:
    """Return the inputs with the API's names, which are Terraform's names in camel case."""

    def value(prop: Property, item: Any) -> Any:
        if prop.children and isinstance(item, list):
            return [
                api_document(prop.children, element) if isinstance(element, dict) else element
                for element in item
            ]
        if prop.children and isinstance(item, dict) and prop.is_object:
            return api_document(prop.children, item)
        return item

    return {
        field_rules.json_name(properties[name].tf): value(properties[name], item)
        for name, item in inputs.items()
        if name in properties
    }


@contextmanager
def action(doing: str) -> Iterator[None]:
    """Complete the errors of Google Cloud that the block raises with the failed action."""
    try:
        yield
    except CloudError as error:
        error.doing = error.doing or doing
        raise


_PLACES: Final = {
    "region": machines.is_region,
    "zone": machines.is_zone,
    "location": machines.is_location,
}


@dataclass(frozen=True)
class ResourceType(Traits):
    """Behavior of one resource type."""

    title: str = ""
    """Name of the type in the official plugin's messages."""
    api: str | None = None
    """The API that must be enabled in the resource's project."""
    noun: str = ""
    """Name of the type in messages of Compute Engine's API."""
    message: str = ""
    """Name of the API's message in the discovery documents, if the API has one."""
    needs_project: bool = True
    """True if the resource belongs to a project."""
    collection: str = ""
    """Collection in the resource's id, if the service assigns a number to the resource."""
    form: str = ""
    """Format of the resource's id, if the schema has no format."""
    imports_ids: bool = False
    """True if ``pulumi import`` accepts only whole ids."""
    exists: str = "{title} {id} already exists"
    """Message of the error 409 if the resource exists; ``conflict`` replaces its variables."""
    overwrites: bool = False
    """True if creating an existing resource overwrites the resource."""
    outlives: bool = False
    """True if the cloud keeps the resource when the stack deletes it."""
    verifies_updates: bool = False
    """True if updates are verified like creations."""

    # -- hooks of previews, which use neither the database nor the network -----------------------

    def known(self, cloud: Cloud, inputs: Mapping[str, Any]) -> Values:
        """Return the outputs that the plugin predicts before the resource exists."""
        del cloud, inputs
        return {}

    def changed(self, news: Values, olds: Values) -> list[Change]:
        """Return changes of outputs and replacements that follow from changed inputs."""
        del news, olds
        return []

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        """Return the error with which the plugin rejects valid inputs in a preview, or None."""
        del inputs
        return None

    # -- identity -------------------------------------------------------------------------------

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        """Return the project of the resource with these inputs or outputs."""
        return text(values, "project") or cloud.settings.project

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """Return a new resource's id, which contains a new number or follows the format."""
        if self.collection:
            return f"projects/{self.project(cloud, inputs)}/{self.collection}/{new_number()}"

        def value(match: re.Match[str]) -> str:
            return self.part(cloud, inputs, match.group(1))

        return re.sub(r"{{(\w+)}}", value, self.form or cloud.type.id_format or "")

    def part(self, cloud: Cloud, inputs: Mapping[str, Any], tf: str) -> str:
        """Return the input with the Terraform name ``tf``, or else the provider's setting."""
        argument = inputs.get(cloud.type.by_tf(tf).name)
        if argument is None:
            argument = getattr(cloud.settings, "region" if tf == "location" else tf, "")
        if not argument:
            raise RefusedError(f"{cloud.type.token}: {tf}: required field is not set")
        return str(argument)

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        """Return the resource's id for an argument of ``pulumi import``."""
        if self.imports_ids:
            return id_to_import
        if self.collection:
            prefix = f"projects/{cloud.settings.project}/{self.collection}/"
            return id_to_import if id_to_import.startswith("projects/") else prefix + id_to_import
        id_to_import = normal_project(id_to_import, cloud.settings.project)
        for template in cloud.type.import_ids:
            pattern = re.sub(r"{{(\w+)}}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, id_to_import)
            if match:
                parts = {cloud.type.by_tf(tf).name: v for tf, v in match.groupdict().items()}
                return self.id(cloud, parts)
        return id_to_import

    # -- operations -----------------------------------------------------------------------------

    def create(self, cloud: Cloud, inputs: Values) -> ExistingResource:
        """Create the resource. Raises CloudError or RefusedError."""
        values = plain(inputs)
        project = self.project(cloud, values)
        self.guard(cloud, project)
        with self.exclusive(cloud), action(self.creating(cloud, values)):
            cloud.need_api(self.caller(cloud, project), self.api if project else None)
            self.check_fields(cloud, values)
            self.verify(cloud, project, values)
            id_ = self.id(cloud, values)
            made = self._defaults(cloud, project, id_, values)
            made |= self.make(cloud, project, id_, values)
            outputs = updated(cloud.type, inputs, {}, cloud.settings, made, planning=False)
            record = cloud.type.token, id_, project, stored(values), stored(outputs)
            if self.overwrites:
                cloud.store.put(*record)
            elif not cloud.store.insert(*record):
                raise CloudError(409, self.conflict(id_), "alreadyExists")
        return ExistingResource(id_, inputs, outputs)

    def _defaults(self, cloud: Cloud, project: str, id_: str, inputs: Mapping[str, Any]) -> Values:
        made: Values = {"project": project, "name": id_, "selfLink": SELF_LINK + id_}
        made |= dict.fromkeys(("createTime", "updateTime", "creationTimestamp"), now())
        computed = (name for name, property_ in cloud.type.properties.items() if property_.computed)
        return {name: made[name] for name in computed if name in made} | self.known(cloud, inputs)

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        """Return the current resource, or None for a missing resource."""
        self.guard(cloud, self.owner(cloud, id_))
        resource = cloud.store.get(cloud.type.token, self.import_id(cloud, id_))
        if resource is None:
            return None
        return ExistingResource(resource.id, resource.inputs, resource.outputs)

    def update(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        """Update the resource and return the new outputs. Raises CloudError or RefusedError."""
        values, before = plain(inputs), plain(olds)
        project = self.project(cloud, before)
        self.guard(cloud, project)
        with self.exclusive(cloud), action(f"Error updating {self.title} {id_!r}"):
            cloud.need_api(project, self.api if project else None)
            if cloud.store.get(cloud.type.token, id_) is None:
                raise CloudError(404, f"{id_} does not exist", "notFound")
            self.check_fields(cloud, values)
            if self.verifies_updates:
                self.verify(cloud, project, values)
            made = self.remake(cloud, id_, values, before)
            outputs = updated(cloud.type, inputs, olds, cloud.settings, made, planning=False)
            cloud.store.put(cloud.type.token, id_, project, stored(values), stored(outputs))
        return outputs

    def delete(self, cloud: Cloud, id_: str, olds: Values) -> None:
        """Delete the resource; a missing resource is not an error."""
        before = plain(olds)
        self.guard(cloud, self.project(cloud, before))
        policy = before.get("deletionPolicy")
        if policy == "PREVENT":
            raise RefusedError(
                f"cannot destroy {self.title or cloud.type.token} {id_} without setting "
                "deletion_policy = DELETE and running `pulumi up`"
            )
        if policy == "ABANDON" or self.outlives_deletion(before):
            return
        with self.exclusive(cloud), action(f"Error deleting {self.title}"):
            self.unmake(cloud, id_, before)
            cloud.store.delete(cloud.type.token, id_)

    def guard(self, cloud: Cloud, project: str) -> None:
        """Check that the resource's project is local. Raises RefusedError."""
        if project or self.needs_project:
            cloud.guard(project)

    # -- hooks of operations --------------------------------------------------------------------

    def creating(self, cloud: Cloud, inputs: Values) -> str:
        """Return the failed action in errors of creations."""
        del cloud, inputs
        return f"Error creating {self.title}"

    def caller(self, cloud: Cloud, project: str) -> str:
        """Return the project in which the API must be enabled to create the resource."""
        del cloud
        return project

    def exclusive(self, cloud: Cloud) -> AbstractContextManager[None]:
        """Return a context for one change; some services allow one change at a time."""
        del cloud
        return nullcontext()

    def owner(self, cloud: Cloud, id_: str) -> str:
        """Return the project in a resource id."""
        path, form = normal_project(id_, cloud.settings.project), self.form or cloud.type.id_format
        begins = bool(form and form.startswith(("{{project}}", "{{host_project}}")))
        if begins and path.count("/") == str(form).count("/"):
            return path.partition("/")[0]
        match = re.match(r"projects/([^/]+)/", path)
        return match.group(1) if match else cloud.settings.project

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        """Return whether the cloud keeps this resource although the stack deletes it."""
        del olds
        return self.outlives

    def conflict(self, id_: str) -> str:
        """Return the message of the error 409 for an existing resource."""
        parent, _, name = id_.rpartition("/")
        project = "/".join(id_.split("/")[:2])
        name = name.partition("@")[0]  # the address of a service account
        return self.exists.format(
            title=self.title, id=id_, parent=parent, name=name, project=project
        )

    def check_fields(self, cloud: Cloud, inputs: Values) -> None:
        """Check the fields by the rules of the API's message. Raises CloudError."""
        document = self.document(cloud, inputs)
        errors = list(field_rules.errors(self.message, document)) if self.message else []
        for field, exists in _PLACES.items():
            name = inputs.get(field)
            exists = machines.is_region if self.message.startswith("aiplatform.") else exists
            if isinstance(name, str) and name and not exists(name.rpartition("/")[2]):
                errors.append((field, f"{name[:80]!r} does not exist."))
        if errors:
            raise CloudError(400, " ".join(f"{field}: {text}" for field, text in errors))

    def document(self, cloud: Cloud, inputs: Values) -> Values:
        """Return the inputs in the form of the API's message."""
        return api_document(cloud.type.properties, inputs)

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        """Check the inputs as the service does. Raises CloudError or RefusedError."""
        del cloud, project, inputs

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        """Create the resource in its service; return outputs besides project, name and times."""
        del cloud, project, id_, inputs
        return {}

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        """Update the resource in its service and return the changed outputs."""
        del id_, inputs, olds
        return {"updateTime": now()} if "updateTime" in cloud.type.properties else {}

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        """Delete the resource in its service. The default deletes the resource's IAM policy."""
        del olds
        cloud.store.delete_policy(id_)


FIREWALL: Final = "gcp:compute/firewall:Firewall"
ROUTER: Final = "gcp:compute/router:Router"
NAT: Final = "gcp:compute/routerNat:RouterNat"
INSTANCE: Final = "gcp:compute/instance:Instance"

#: Status of the error for a resource that another resource uses.
IN_USE: Final = "resourceInUseByAnotherResource"
# Resources of these types refer to a network or a subnetwork, which cannot be deleted before.
_USERS: Final = (SUBNETWORK, FIREWALL, ROUTER, ADDRESS, ATTACHMENT, NAT, INSTANCE)


@dataclass(frozen=True)
class Compute(ResourceType):
    """A resource type of Compute Engine."""

    api: str | None = "compute.googleapis.com"
    exists: str = "The resource '{id}' already exists"

    def part(self, cloud: Cloud, inputs: Mapping[str, Any], tf: str) -> str:
        part = super().part(cloud, inputs, tf)
        is_link = tf in ("region", "zone", "network", "router")
        return resource_paths.short_name(part) if is_link else part

    @contextmanager
    def exclusive(self, cloud: Cloud) -> Iterator[None]:
        # Two parallel changes must not allocate the same address range.
        with cloud.store.path.with_name("compute.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        user = next(users(cloud.store, id_), None)
        if user:
            raise in_use(self.noun, id_, user)
        super().unmake(cloud, id_, olds)


def in_use(noun: str, path: str, user: str) -> CloudError:
    """Return the error for deleting a resource that another resource uses."""
    reason = f"The {noun} resource '{path}' is already being used by '{user}'"
    return CloudError(400, reason, IN_USE)


def invalid(field: str, value: Any, reason: str) -> CloudError:
    """Return the error for an invalid value of one field."""
    text_ = f"Invalid value for field 'resource.{field}': '{value}'. {reason}"
    return CloudError(400, text_, "invalid")


def own_network(cloud: Cloud, project: str, inputs: Mapping[str, Any]) -> str:
    """Return the path of the project's network in ``inputs["network"]``. Raises CloudError."""
    network = text(inputs, "network")
    path = resource_paths.resolve(cloud.store, network, "networks", project=project)
    if resource_paths.project_of(path) != project:
        reason = "Cross project referencing is not allowed for this resource."
        raise invalid("network", network, reason)
    if cloud.store.get(NETWORK, path) is None:
        raise invalid("network", network, "The referenced network resource cannot be found.")
    return path


def users(store: Store, path: str) -> Iterator[str]:
    """Yield the paths of resources and jobs that use a network, subnetwork or attachment."""
    collection = path.split("/")[-2]
    if collection == "networkAttachments":
        yield from (job.name for job in networks.jobs_on_attachment(store, path))
        return
    for type_ in _USERS:
        for resource in store.list(type_):
            references = _references(resource, collection)
            home = {"project": resource.project, "region": resource.outputs.get("region") or ""}
            if any(
                resource_paths.resolve(store, reference, collection, **home) == path
                for reference in references
            ):
                if type_ == NAT:
                    project, region, router, _ = resource.id.split("/")
                    yield f"projects/{project}/regions/{region}/routers/{router}"
                else:
                    yield resource.id


def _references(resource: StoredResource, collection: str) -> list[str]:
    values = resource.outputs
    if resource.type == INSTANCE:
        field = collection.removesuffix("s")
        return [
            reference[field]
            for reference in values.get("networkInterfaces") or []
            if reference.get(field)
        ]
    if collection == "networks":
        subnetworks = values.get("network")
        return [subnetworks] if subnetworks else []
    subnetworks = values.get("subnetworks") or []
    return [
        reference["name"] if isinstance(reference, dict) else reference for reference in subnetworks
    ]
