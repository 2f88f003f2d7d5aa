"""The dynamic providers of ``ModelVersion``, ``EndpointCleanup`` and ``EndpointTraffic``.

The state refers to this module and its classes by name: none may be renamed or moved. Instances
have no attributes, because the SDK would pickle them into the state as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

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
from vertex_training.customjob.protocol.withdrawal import release
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
from vertex_training.serving.declared import ALIAS_PREFIX, MODEL_LABEL, ModelSource
from vertex_training.serving.protocol.ports import (
    Deployment,
    Endpoints,
    EndpointSnapshot,
    ModelRegistry,
    OperationWait,
    Runs,
    VersionRequest,
    VersionSnapshot,
)
from vertex_training.serving.protocol.reconciliation import (
    Goal,
    display_name,
    next_step,
    reconcile,
    run_of,
)
from vertex_training.serving.protocol.run_artifacts import (
    RunArtifacts,
    artifacts_of_version,
    find_artifacts,
    unanswered,
)
from vertex_training.serving.protocol.uploads import foreign_model, upload

#: Folder of the records of uploads in the control bucket.
RECORDS: Final = "models/"
#: Keys of ``options`` that the state keeps.
KEPT_OPTIONS: Final = ("controlBucket", "onDelete", IMPERSONATE)
#: Names of versions that a resource of this process has: another resource may leave with one.
_made: Final[set[str]] = set()
#: Projects that did not answer this process in time.
_unreachable: Final[set[str]] = set()


class _ServingProvider(BoundedProvider):
    """Shared base of both providers."""

    wait: ClassVar[OperationWait] = OperationWait()
    """Bounds of long operations, as ``timing``."""

    def _wait(self) -> OperationWait:
        bounds = self.wait
        environment = ProcessEnvironment(engine_is_alive=is_engine_alive)
        return OperationWait(
            environment, bounds.backoff, bounds.longest, bounds.doubt, report=print_line
        )


class ModelVersionProvider(_ServingProvider):
    """check, diff, create, read, update and delete of one model version."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        """Look up the run of a new version, and add it to the inputs as ``resolved``.

        A run that cannot become a version is refused here, in the preview. Where nothing answers,
        ``resolved`` has why, and ``create`` asks again.
        """
        if has_unknown(news):
            return dynamic.CheckResult(news, [])
        if olds.get("requestId") == news.get("requestId"):  # the version is there
            return dynamic.CheckResult({**news, "resolved": olds.get("resolved") or {}}, [])
        found = _looked_up(news)
        if isinstance(found, JobRefusedError):
            return dynamic.CheckResult(news, [dynamic.CheckFailure("", str(found))])
        resolved = found.inputs() if isinstance(found, RunArtifacts) else unanswered(found)
        return dynamic.CheckResult({**news, "resolved": resolved}, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace the version if its request changed: versions cannot be updated.

        The new one is made first; the old one leaves when no endpoint of the stack has it.
        """
        replaces = ["requestId"] if olds.get("requestId") != news.get("requestId") else []
        changes = (
            bool(replaces)
            or olds.get(PROVIDER_KEY) != news.get(PROVIDER_KEY)
            or olds.get("options") != _kept(news["options"])
        )
        return dynamic.DiffResult(changes=changes, replaces=replaces)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Upload the version, or adopt the one that exists.

        Raises:
            OperatorError: it was refused, or is not certain.
        """
        resolved = props.get("resolved") or {}
        if not resolved.get("artifactUri"):
            resolved = _artifacts(props).inputs()
        request = _request(props, resolved["artifactUri"])
        name = upload(request, _registry(props), _intents(props), self.timing, self._wait())
        _made.add(name)
        return dynamic.CreateResult(name, _version_outputs(props, resolved))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """The version as it is known. One that somebody deleted is made anew by the next ``up``.

        So is one whose number another upload has now, as where the model was deleted meanwhile.
        """
        there = _registry(props).version(id_)
        is_own = there is not None and _is_own(there, props)
        return dynamic.ReadResult(id_ if is_own else "", without_provider(props) if is_own else {})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Update the options that the state keeps; does not touch the version."""
        outs = {**without_provider(olds), "options": _kept(news["options"])}
        return dynamic.UpdateResult(outs)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Keep the version; with ``onDelete: delete``, delete it unless an endpoint has it."""
        if props["options"]["onDelete"] != "delete" or id_ in _made:
            return
        registry = _registry(props)
        there = registry.version(id_)
        if there is None:
            reason = ""
        elif not _is_own(there, props):
            reason = "it is not the one that this stack made"
        elif there.endpoints:
            reason = f"it is deployed at {', '.join(sorted(set(there.endpoints)))}"
        else:
            reason = registry.delete_version(id_)
        if reason:
            print_line(f"model version {id_} stays: {reason}")
        else:
            release(_intents(props), props["requestId"], id_)


class _EndpointProvider(_ServingProvider):
    """Shared base of the two resources on one endpoint."""

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Take the traffic away, then all that the stack deployed.

        Raises:
            NotSubmittedError: others deployed something there; nothing was changed.
        """
        goal = Goal(props["endpoint"]["key"], _owner(props), {}, {})
        reconcile(_endpoint_name(props), goal, _endpoints(props), self._wait())


class EndpointCleanupProvider(_EndpointProvider):
    """diff, create, update and delete of what empties an endpoint before it is deleted.

    The engine knows no traffic whose ``create`` was killed, and deletes none. This resource is in
    the state before anything is deployed, so whoever deletes the endpoint empties it first.
    """

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace it with its endpoint, which has to be empty then."""
        replaces = ["endpoint"] if _is_another(olds, news) else []
        changes = bool(replaces) or any(
            olds.get(key) != news.get(key) for key in ("endpoint", "options", PROVIDER_KEY)
        )
        return dynamic.DiffResult(changes=changes, replaces=replaces, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Nothing is called."""
        return dynamic.CreateResult(_endpoint_name(props), without_provider(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Nothing is called."""
        return dynamic.UpdateResult(without_provider(news))


class DeployedModelsProvider(_EndpointProvider):
    """check, diff, create, read, update and delete of what one endpoint serves."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Update what is deployed and the split in place; replace it with its endpoint.

        An endpoint that is made anew, as from public to private, has no id meanwhile. A killed or
        failed update leaves the state as it was before it: so where the inputs are those of the
        state, the endpoint itself is looked at, or a revert would leave what the update had done.
        """
        replaces = ["endpoint"] if _is_another(olds, news) else []
        changes = bool(replaces) or any(
            has_unknown(news.get(key)) or olds.get(key) != news.get(key)
            for key in ("deployed", "split", "endpoint", "options", PROVIDER_KEY)
        )
        if not changes and _is_unfinished(news):
            changes = True
            print_line(
                f"endpoint '{news['endpoint']['key']}' is not as the state says: an update of it "
                "was killed or failed, or somebody changed it. `pulumi up` brings it back."
            )
        return dynamic.DiffResult(changes=changes, replaces=replaces, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Bring the endpoint to what is declared. Returns once all of it serves.

        Raises:
            OperatorError: a version was not deployed; or the endpoint is changed by others.
        """
        return dynamic.CreateResult(_endpoint_name(props), self._reconciled(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """The same as ``create``: what is there already stays."""
        return dynamic.UpdateResult(self._reconciled(news))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Return the endpoint's current state; a difference from the declaration is an update."""
        observed = _endpoints(props).get(_endpoint_name(props))
        if observed is None:
            return dynamic.ReadResult("", {})
        return dynamic.ReadResult(id_, {**without_provider(props), **_observed(props, observed)})

    def _reconciled(self, props: dict[str, Any]) -> dict[str, Any]:
        observed = reconcile(_endpoint_name(props), _goal(props), _endpoints(props), self._wait())
        assert observed is not None  # something is wanted
        others = _observed(props, observed)["others"]
        return {**without_provider(props), "others": others}


def _looked_up(props: dict[str, Any]) -> RunArtifacts | OperatorError | None:
    """The artifacts of a run, or why it has none; None if nothing answered in time."""
    project = props["model"]["project"]

    def ask() -> RunArtifacts | OperatorError:
        try:
            artifacts = _artifacts(props)
            request = _request(props, artifacts.artifact_uri)
            reason = foreign_model(request, _registry(props))
            return JobRefusedError(reason) if reason else artifacts
        except OperatorError as error:
            return error

    if is_offline(project) or is_comparison():
        return OperatorError("this preview asks no cloud")
    return _answer(project, ask)


def _answer(project: str, ask: Callable[[], Answer]) -> Answer | None:
    """Return the result of ``ask``; None if the project does not answer this process in time."""
    if project in _unreachable:
        return None
    result = answer_within(BOUND, ask)
    if result is None:
        _unreachable.add(project)
    return result


def _is_another(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Return whether the endpoint is created again, or is another one."""
    return _endpoint_name(olds) != _endpoint_name(news) or has_unknown(news.get("shell"))


def _is_unfinished(props: Mapping[str, Any]) -> bool:
    """Return whether the endpoint differs from the inputs; False if the service does not answer."""
    project = props["endpoint"]["project"]

    def ask() -> bool:
        try:
            found = _endpoints(props).get(_endpoint_name(props))
        except OperatorError:
            return False
        return found is not None and next_step(found, _goal(props)) is not None

    return not is_offline(project) and bool(_answer(project, ask))


def _existing(props: Mapping[str, Any]) -> VersionSnapshot | None:
    """The version that this request made, as after a lost state; None if there is none."""
    model = props["model"]
    parent = f"projects/{model['project']}/locations/{model['region']}"
    alias = f"{ALIAS_PREFIX}{props['requestId']}"
    result = _registry(props).version(f"{parent}/models/{model['id']}@{alias}")
    own = {STACK_LABEL: model["stack"], REQUEST_ID_LABEL: props["requestId"]}
    if result is None or not result.artifact_uri or not own.items() <= dict(result.labels).items():
        return None
    return result


def _source(props: Mapping[str, Any]) -> tuple[ModelSource, str]:
    """The run that a version is made of, and the folder below its output directory."""
    model = props["model"]
    keys = ("project", "region", "stack", "model", "job")
    source = ModelSource(**{key: model[key] for key in keys}, run=int(model["run"]))
    return source, props["artifacts"]


def _artifacts(props: Mapping[str, Any]) -> RunArtifacts:
    if there := _existing(props):
        return artifacts_of_version(*_source(props), there, _runs(props))
    return find_artifacts(*_source(props), props.get("files") or (), _runs(props))


def _request(props: Mapping[str, Any], artifact_uri: str) -> VersionRequest:
    """The upload that a version's inputs describe."""
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
        **options["labels"],  # first: no stack file may override the labels below
        STACK_LABEL: model["stack"],
        MODEL_LABEL: model["model"],
        JOB_LABEL: model["job"],
        RUN_LABEL: str(run),
        REQUEST_ID_LABEL: props["requestId"],
        DIGEST_LABEL: digest[:DIGEST_LABEL_LENGTH],
    }
    parent = f"projects/{model['project']}/locations/{model['region']}"
    return VersionRequest(
        parent=parent,
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
    """Return whether the version is the upload in the state: numbers are reused."""
    return version.labels.get(REQUEST_ID_LABEL) == props["requestId"]


def _version_outputs(props: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a version: what finds, refreshes and deletes it."""
    return {
        "model": props["model"],
        "requestId": props["requestId"],
        "options": _kept(props["options"]),
        "resolved": dict(resolved),
    }


def _kept(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in KEPT_OPTIONS if options.get(key)}


def _goal(props: Mapping[str, Any]) -> Goal:
    """Return the declared state of an endpoint from the inputs of its traffic."""
    owner = _owner(props)
    deployments = {
        _run(name): Deployment(
            given["deployedModelId"],
            given["model"],
            display_name(owner, _run(name), given["deployedModelId"]),
            int(given["min"]),
            int(given["max"]),
            _machine(given["machine"]),
            given.get("account", ""),
        )
        for name, given in props["deployed"].items()
    }
    split = {_run(name): int(share) for name, share in props["split"].items()}
    return Goal(props["endpoint"]["key"], owner, deployments, split)


def _machine(given: Mapping[str, Any]) -> dict[str, Any]:
    """A MachineSpec. The engine has numbers as floats."""
    return {key: int(value) if isinstance(value, float) else value for key, value in given.items()}


def _run(name: str) -> int:
    return int(name.removeprefix("run "))


def _owner(props: Mapping[str, Any]) -> str:
    endpoint = props["endpoint"]
    return f"vt {endpoint['stack']}/{endpoint['key']} "


def _observed(props: Mapping[str, Any], observed: EndpointSnapshot) -> dict[str, Any]:
    """Return the outputs of an endpoint's resource."""
    goal, before = Goal("", _owner(props), {}, {}), props.get("deployed") or {}
    by_id = {given["deployedModelId"]: given for given in before.values()}
    deployed, split = dict[str, Any](), dict[str, int]()
    for id_, each in observed.deployed.items():
        if goal.owns(each):
            bounds = {"min": each.minimum, "max": each.maximum}
            there = {"model": each.version, "deployedModelId": id_, "machine": dict(each.machine)}
            name = f"run {run_of(each)}" if id_ in by_id else f"run {run_of(each)} {id_}"
            deployed[name] = {**there, **by_id.get(id_, {}), **bounds}
            split[name] = observed.split.get(id_, 0)
    others = sorted(
        observed.deployed.keys() - {each["deployedModelId"] for each in deployed.values()}
    )
    return {"deployed": deployed, "split": split, "others": others}


def _endpoint_name(props: Mapping[str, Any]) -> str:
    endpoint = props["endpoint"]
    here = f"projects/{endpoint['project']}/locations/{endpoint['region']}"
    return f"{here}/endpoints/{endpoint['id']}"


def _registry(props: Mapping[str, Any]) -> ModelRegistry:
    from vertex_training.serving.google.registry import connect  # loads Google's client

    return connect(props["model"]["project"], props["model"]["region"], _account(props))


def _runs(props: Mapping[str, Any]) -> Runs:
    from vertex_training.serving.google.registry import connect_runs  # loads Google's client

    return connect_runs(props["model"]["project"], props["model"]["region"], _account(props))


def _endpoints(props: Mapping[str, Any]) -> Endpoints:
    from vertex_training.serving.google.endpoints import connect  # loads Google's client

    endpoint = props["endpoint"]
    return connect(endpoint["project"], endpoint["region"], _account(props))


def _intents(props: Mapping[str, Any]) -> Any:
    from vertex_training.customjob.google.intent_store import connect

    bucket = props["options"]["controlBucket"]
    return connect(props["model"]["project"], bucket, RECORDS, _account(props))


def _account(props: Mapping[str, Any]) -> str:
    return str((props.get("options") or {}).get(IMPERSONATE, ""))
