"""The resources ``ModelVersion``, ``EndpointCleanup``, ``EndpointTraffic``, and their providers.

States refer to this module and its classes by name, so the names cannot change. Instances have no
attributes, because the SDK would pickle attributes into the state.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import pulumi
from pulumi import dynamic

from vertex_training.customjob.dynamic_values import (
    IMPERSONATE,
    PROVIDER_KEY,
    BoundedProvider,
    has_unknown,
    print_line,
    without_provider,
)
from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    DIGEST_LABEL_LENGTH,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    STACK_LABEL,
    ProcessEnvironment,
)
from vertex_training.customjob.protocol.waiting import release
from vertex_training.customjob.refusal_lookup import (
    BOUND,
    Answer,
    answer_within,
    is_comparison,
    is_offline,
)
from vertex_training.customjob.request.job_file import canonical, digest_of
from vertex_training.errors import JobRefusedError, OperatorError
from vertex_training.pulumi_internals import is_engine_alive
from vertex_training.serving.declared import (
    ALIAS_PREFIX,
    MODEL_LABEL,
    DeclaredDeployment,
    DeclaredEndpoint,
    DeclaredVersion,
    ModelSource,
)
from vertex_training.serving.ports import (
    Deployment,
    Endpoints,
    EndpointSnapshot,
    ModelRegistry,
    OperationWait,
    Runs,
    VersionRequest,
    VersionSnapshot,
)
from vertex_training.serving.reconciliation import Goal, display_name, next_step, reconcile, run_of
from vertex_training.serving.uploads import (
    RunArtifacts,
    artifacts_of_version,
    find_artifacts,
    foreign_model,
    unanswered,
    upload,
)

#: Folder in the control bucket with the records of uploads.
RECORDS: Final = "models/"
#: Keys of ``options`` that the state stores.
STORED_OPTIONS: Final = ("controlBucket", "onDelete", IMPERSONATE)
#: Names of versions that this process has adopted or created.
_created: Final[set[str]] = set()
#: Projects whose services did not respond in time.
_unreachable: Final[set[str]] = set()


class _ServingProvider(BoundedProvider):
    wait: ClassVar[OperationWait] = OperationWait()
    """Time limits of long-running operations. Tests shorten these limits."""

    def _wait(self) -> OperationWait:
        environment = ProcessEnvironment(engine_is_alive=is_engine_alive)
        return dataclasses.replace(self.wait, environment=environment, report=print_line)


class ModelVersionProvider(_ServingProvider):
    """Implements check, diff, create, read, update and delete for a model version."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        """Look up the run of a new version, and add the result to the inputs as ``resolved``.

        The preview fails if the run cannot become a version. If the lookup fails, ``resolved`` has
        the reason, and ``create`` repeats the lookup.
        """
        if has_unknown(news):
            return dynamic.CheckResult(news, [])
        if olds.get("requestId") == news.get("requestId"):  # the version exists
            return dynamic.CheckResult({**news, "resolved": olds.get("resolved") or {}}, [])
        result = _look_up(news)
        if isinstance(result, JobRefusedError):
            return dynamic.CheckResult(news, [dynamic.CheckFailure("", str(result))])
        resolved = result.inputs() if isinstance(result, RunArtifacts) else unanswered(result)
        return dynamic.CheckResult({**news, "resolved": resolved}, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace the version if its request changed. The new version is created first."""
        replaces = ["requestId"] if olds.get("requestId") != news.get("requestId") else []
        changes = (
            bool(replaces)
            or olds.get(PROVIDER_KEY) != news.get(PROVIDER_KEY)
            or olds.get("options") != _stored_options(news["options"])
        )
        return dynamic.DiffResult(changes=changes, replaces=replaces)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Upload the version, or adopt the existing version. Raises OperatorError."""
        resolved = props.get("resolved") or {}
        if not resolved.get("artifactUri"):
            resolved = _artifacts(props).inputs()
        request = _request(props, resolved["artifactUri"])
        name = upload(request, _registry(props), _intents(props), self.timing, self._wait())
        _created.add(name)
        stored = {key: props[key] for key in ("model", "requestId")}
        options = _stored_options(props["options"])
        return dynamic.CreateResult(name, {**stored, "options": options, "resolved": resolved})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Read the version. The next ``up`` creates a deleted version again.

        After the model was deleted, another upload can have the version's number.
        """
        version = _registry(props).version(id_)
        is_own = version is not None and _is_own(version, props)
        return dynamic.ReadResult(id_ if is_own else "", without_provider(props) if is_own else {})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Update only the stored options."""
        outs = {**without_provider(olds), "options": _stored_options(news["options"])}
        return dynamic.UpdateResult(outs)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Keep the version, unless ``onDelete`` is ``delete`` and no endpoint serves it."""
        if props["options"]["onDelete"] != "delete" or id_ in _created:
            return
        registry = _registry(props)
        version = registry.version(id_)
        if version is None:
            reason = ""
        elif not _is_own(version, props):
            reason = "the version does not belong to this stack"
        elif version.endpoints:
            reason = f"the version is deployed to {', '.join(sorted(set(version.endpoints)))}"
        else:
            reason = registry.delete_version(id_)
        if reason:
            print_line(f"model version {id_} was not deleted, because {reason}")
        else:
            release(_intents(props), props["requestId"], id_)


class _EndpointProvider(_ServingProvider):
    compared: ClassVar[tuple[str, ...]] = ("endpoint", "options", PROVIDER_KEY)
    """Inputs whose changes are an update."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace the resource if its endpoint is replaced, so that the old endpoint is emptied.

        A replaced endpoint has an unknown id in the preview.
        """
        replaces = ["endpoint"] if _is_another(olds, news) else []
        changes = bool(replaces) or any(
            has_unknown(news.get(key)) or olds.get(key) != news.get(key) for key in self.compared
        )
        return dynamic.DiffResult(changes=changes, replaces=replaces, delete_before_replace=True)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Undeploy the stack's models after removing their traffic. Raises NotSubmittedError."""
        goal = Goal(props["endpoint"]["key"], _owner(props), {}, {})
        reconcile(_endpoint_name(props), goal, _endpoints(props), self._wait())


class EndpointCleanupProvider(_EndpointProvider):
    """Implements diff, create, update and delete for the cleanup of an endpoint.

    After a killed ``create``, the engine does not delete the traffic resource. The cleanup is
    already in the state, and empties the endpoint before the endpoint's deletion.
    """

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Return the endpoint's name as id. Makes no call."""
        return dynamic.CreateResult(_endpoint_name(props), without_provider(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Return the new inputs as outputs. Makes no call."""
        return dynamic.UpdateResult(without_provider(news))


class DeployedModelsProvider(_EndpointProvider):
    """Implements check, diff, create, read, update and delete for the traffic of an endpoint."""

    compared = ("deployed", "split", *_EndpointProvider.compared)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Report an update if versions or traffic change, and a replacement if the endpoint does.

        A killed or failed update does not change the state: so if the inputs equal the state, the
        endpoint itself is read. Otherwise a revert would not undo the update.
        """
        result = super().diff(_id, olds, news)
        if not result.changes and _is_unfinished(news):
            result.changes = True
            print_line(
                f"endpoint '{news['endpoint']['key']}' differs from the state, because an update "
                "was killed or failed, or a user changed the endpoint. Run `pulumi up` to update "
                "the endpoint."
            )
        return result

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Update the endpoint, and return when all versions serve. Raises OperatorError."""
        return dynamic.CreateResult(_endpoint_name(props), self._reconciled(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Update the endpoint like ``create``. Unchanged deployed models remain."""
        return dynamic.UpdateResult(self._reconciled(news))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Return the endpoint's current state, so that the engine updates differences."""
        observed = _endpoints(props).get(_endpoint_name(props))
        if observed is None:
            return dynamic.ReadResult("", {})
        return dynamic.ReadResult(id_, {**without_provider(props), **_observed(props, observed)})

    def _reconciled(self, props: dict[str, Any]) -> dict[str, Any]:
        observed = reconcile(_endpoint_name(props), _goal(props), _endpoints(props), self._wait())
        assert observed is not None  # the goal is not empty
        others = _observed(props, observed)["others"]
        return {**without_provider(props), "others": others}


def _look_up(props: dict[str, Any]) -> RunArtifacts | OperatorError | None:
    """Return the artifacts of a run, or an error; None after a timeout."""
    project = props["model"]["project"]

    def look_up() -> RunArtifacts | OperatorError:
        try:
            artifacts = _artifacts(props)
            request = _request(props, artifacts.artifact_uri)
            reason = foreign_model(request, _registry(props))
            return JobRefusedError(reason) if reason else artifacts
        except OperatorError as error:
            return error

    if is_offline(project) or is_comparison():
        return OperatorError("this preview does not query the cloud")
    return _in_time(project, look_up)


def _in_time(project: str, call: Callable[[], Answer]) -> Answer | None:
    if project in _unreachable:
        return None
    result = answer_within(BOUND, call)
    if result is None:
        _unreachable.add(project)
    return result


def _is_another(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    return _endpoint_name(olds) != _endpoint_name(news) or has_unknown(news.get("shell"))


def _is_unfinished(props: Mapping[str, Any]) -> bool:
    """Return True if the endpoint differs from its inputs; False for an unreadable endpoint."""
    project = props["endpoint"]["project"]

    def differs() -> bool:
        try:
            endpoint = _endpoints(props).get(_endpoint_name(props))
        except OperatorError:
            return False
        return endpoint is not None and next_step(endpoint, _goal(props)) is not None

    return not is_offline(project) and bool(_in_time(project, differs))


def _existing(props: Mapping[str, Any]) -> VersionSnapshot | None:
    """Return the version of this request if it exists, such as after the loss of a state."""
    model, alias = props["model"], f"{ALIAS_PREFIX}{props['requestId']}"
    result = _registry(props).version(f"{_parent(model)}/models/{model['id']}@{alias}")
    own = {STACK_LABEL: model["stack"], REQUEST_ID_LABEL: props["requestId"]}
    if result is None or not result.artifact_uri or not own.items() <= dict(result.labels).items():
        return None
    return result


def _source(props: Mapping[str, Any]) -> tuple[ModelSource, str]:
    model = props["model"]
    keys = ("project", "region", "stack", "model", "job")
    source = ModelSource(**{key: model[key] for key in keys}, run=int(model["run"]))
    return source, props["artifacts"]


def _artifacts(props: Mapping[str, Any]) -> RunArtifacts:
    if version := _existing(props):
        return artifacts_of_version(*_source(props), version, _runs(props))
    return find_artifacts(*_source(props), props.get("files") or (), _runs(props))


def _request(props: Mapping[str, Any], artifact_uri: str) -> VersionRequest:
    model, options = props["model"], props["options"]
    run, alias = int(model["run"]), f"{ALIAS_PREFIX}{props['requestId']}"
    body = canonical(
        {
            "displayName": model["id"],
            "artifactUri": artifact_uri,
            "containerSpec": json.loads(props["container"]),
            "versionAliases": [alias],
            "versionDescription": f"run {run} of job {model['job']}, stack {model['stack']}",
            **({"encryptionSpec": {"kmsKeyName": options["key"]}} if options.get("key") else {}),
        }
    )
    digest = digest_of(f"{props['requestId']} {props['container']}")
    labels = {
        **options["labels"],  # first, because a stack file must not override the labels below
        STACK_LABEL: model["stack"],
        MODEL_LABEL: model["model"],
        JOB_LABEL: model["job"],
        RUN_LABEL: str(run),
        REQUEST_ID_LABEL: props["requestId"],
        DIGEST_LABEL: digest[:DIGEST_LABEL_LENGTH],
    }
    return VersionRequest(
        parent=_parent(model),
        stack=model["stack"],
        job=model["model"],
        run=run,
        request_id=props["requestId"],
        body=body,
        digest=digest,
        labels=labels,
        model_id=model["id"],
        alias=alias,
    )


def _is_own(version: VersionSnapshot, props: Mapping[str, Any]) -> bool:
    """Return True if the version has this request. Numbers of deleted versions can be reused."""
    return version.labels.get(REQUEST_ID_LABEL) == props["requestId"]


def _stored_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in STORED_OPTIONS if options.get(key)}


def _goal(props: Mapping[str, Any]) -> Goal:
    owner = _owner(props)
    deployments = {
        _run(name): Deployment(
            model["deployedModelId"],
            model["model"],
            display_name(owner, _run(name), model["deployedModelId"]),
            int(model["min"]),
            int(model["max"]),
            _machine(model["machine"]),
            model.get("account", ""),
        )
        for name, model in props["deployed"].items()
    }
    split = {_run(name): int(share) for name, share in props["split"].items()}
    return Goal(props["endpoint"]["key"], owner, deployments, split)


def _machine(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a MachineSpec with integers instead of the engine's floats."""
    return {key: int(value) if isinstance(value, float) else value for key, value in spec.items()}


def _run(name: str) -> int:
    return int(name.removeprefix("run "))


def _owner(props: Mapping[str, Any]) -> str:
    endpoint = props["endpoint"]
    return f"vt {endpoint['stack']}/{endpoint['key']} "


def _observed(props: Mapping[str, Any], observed: EndpointSnapshot) -> dict[str, Any]:
    goal, before = Goal("", _owner(props), {}, {}), props.get("deployed") or {}
    by_id = {model["deployedModelId"]: model for model in before.values()}
    deployed, split = dict[str, Any](), dict[str, int]()
    for id_, model in observed.deployed.items():
        if goal.owns(model):
            limits = {"min": model.minimum, "max": model.maximum}
            machine = dict(model.machine)
            current = {"model": model.version, "deployedModelId": id_, "machine": machine}
            name = f"run {run_of(model)}" if id_ in by_id else f"run {run_of(model)} {id_}"
            deployed[name] = {**current, **by_id.get(id_, {}), **limits}
            split[name] = observed.split.get(id_, 0)
    owned = {model["deployedModelId"] for model in deployed.values()}
    others = sorted(observed.deployed.keys() - owned)
    return {"deployed": deployed, "split": split, "others": others}


def _endpoint_name(props: Mapping[str, Any]) -> str:
    endpoint = props["endpoint"]
    return f"{_parent(endpoint)}/endpoints/{endpoint['id']}"


def _parent(place: Mapping[str, Any]) -> str:
    return f"projects/{place['project']}/locations/{place['region']}"


def _registry(props: Mapping[str, Any]) -> ModelRegistry:
    from vertex_training.serving.google import connect_registry  # loads Google's client

    return connect_registry(props["model"]["project"], props["model"]["region"], _account(props))


def _runs(props: Mapping[str, Any]) -> Runs:
    from vertex_training.serving.google import connect_runs  # loads Google's client

    return connect_runs(props["model"]["project"], props["model"]["region"], _account(props))


def _endpoints(props: Mapping[str, Any]) -> Endpoints:
    from vertex_training.serving.google import connect_endpoints  # loads Google's client

    endpoint = props["endpoint"]
    return connect_endpoints(endpoint["project"], endpoint["region"], _account(props))


def _intents(props: Mapping[str, Any]) -> Any:
    from vertex_training.customjob.google.intent_store import connect

    bucket = props["options"]["controlBucket"]
    return connect(props["model"]["project"], bucket, RECORDS, _account(props))


def _account(props: Mapping[str, Any]) -> str:
    return str((props.get("options") or {}).get(IMPERSONATE, ""))


class ModelVersion(dynamic.Resource, module="vertex", name="ModelVersion"):
    """A version of a model in the registry, created from a run's artifacts.

    Its id is ``projects/NUMBER/locations/REGION/models/ID@VERSION``. A changed request creates a
    new version. The old version leaves the stack when no endpoint of the stack serves it, and
    remains in the registry unless the stack file has ``onDelete: delete``.
    """

    resolved: pulumi.Output[Mapping[str, Any]]
    """The source run: ``job``, ``state``, ``artifactUri`` and ``metrics``."""

    def __init__(
        self,
        resource_name: str,
        *,
        version: DeclaredVersion,
        labels: Mapping[str, str],
        control_bucket: pulumi.Input[str],
        on_delete: str,
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the version. ``control_bucket`` has the record that prevents a second upload.

        A change of ``labels`` creates no new version. ``on_delete`` is ``keep`` or ``delete``, for
        a version that leaves the stack. ``impersonate`` is the account for the upload.
        """
        inputs = {
            "model": {**dataclasses.asdict(version.source), "id": version.model_id},
            "requestId": version.request_id,
            "container": version.container,
            "artifacts": version.artifacts,
            "files": list(version.files),
            "options": {
                "labels": dict(labels),
                "controlBucket": control_bucket,
                "onDelete": on_delete,
                **({"key": version.key} if version.key else {}),
                **_impersonating(impersonate),
            },
        }
        # ``resolved`` is an output for the program; ``check`` adds its value to the inputs.
        super().__init__(ModelVersionProvider(), resource_name, {**inputs, "resolved": None}, opts)


class EndpointCleanup(dynamic.Resource, module="vertex", name="EndpointCleanup"):
    """Undeploys the stack's models from an endpoint when the endpoint leaves the stack.

    After a killed ``up``, the state may lack ``EndpointTraffic`` although models are deployed.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        endpoint: DeclaredEndpoint,
        shell: pulumi.Input[str],
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the resource. ``shell`` and ``impersonate`` are as in ``EndpointTraffic``."""
        inputs = {
            "endpoint": _place(endpoint),
            "options": _impersonating(impersonate),
            "shell": shell,
        }
        super().__init__(EndpointCleanupProvider(), resource_name, inputs, opts)


class EndpointTraffic(dynamic.Resource, module="vertex", name="EndpointTraffic"):
    """The deployed versions of an endpoint, and their shares of the traffic.

    An update deploys new versions without traffic, sets the split in one call when all versions are
    healthy, and undeploys removed versions last. Foreign deployed models are never removed.
    """

    others: pulumi.Output[list[str]]
    """Ids of deployed models that do not belong to the stack, as last read."""

    def __init__(
        self,
        resource_name: str,
        *,
        endpoint: DeclaredEndpoint,
        shell: pulumi.Input[str],
        versions: Mapping[int, pulumi.Input[str]],
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the resource. ``versions`` has the names of model versions by run.

        ``shell`` is the id of the endpoint. If the endpoint is replaced, this input makes the
        engine replace this resource, too, because only an empty endpoint can be deleted.
        """
        inputs = {
            "endpoint": {
                **_place(endpoint),
                "name": endpoint.key,
                "model": endpoint.model,
                "public": endpoint.is_named_public,
                "private": endpoint.is_private,
                **({"account": endpoint.account} if endpoint.account else {}),
                **({"team": endpoint.team} if endpoint.team else {}),
            },
            "deployed": {
                f"run {run}": _deployed(deployment, versions[run])
                for run, deployment in endpoint.deployments.items()
            },
            "split": {f"run {run}": share for run, share in endpoint.split.items()},
            "options": _impersonating(impersonate),
            "shell": shell,
        }
        super().__init__(DeployedModelsProvider(), resource_name, {**inputs, "others": None}, opts)


def _impersonating(account: str) -> dict[str, str]:
    return {IMPERSONATE: account} if account else {}


def _place(endpoint: DeclaredEndpoint) -> dict[str, str]:
    return {
        "project": endpoint.project,
        "region": endpoint.region,
        "id": endpoint.id,
        "key": endpoint.key,
        "stack": endpoint.stack,
    }


def _deployed(deployment: DeclaredDeployment, version: pulumi.Input[str]) -> dict[str, Any]:
    return {
        "model": version,
        "deployedModelId": deployment.id,
        "requestId": deployment.version.request_id,
        "machine": dict(deployment.machine),
        "min": deployment.minimum,
        "max": deployment.maximum,
        **({"account": deployment.account} if deployment.account else {}),
    }
