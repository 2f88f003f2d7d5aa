"""Updates an endpoint as declared, one step at a time. Reads the endpoint before each step.

Each step is repeatable, and depends only on the endpoint's current state. So after a process has
died, the next process continues:

1. wait    until no operation is running on the endpoint
2. deploy  missing versions, without traffic; the ids are chosen, so repeated calls are harmless
3. resize  deployed models with other limits of replicas
4. split   in one call, when all versions are deployed and therefore healthy
5. leave   undeploy the stack's undeclared deployed models without traffic

Foreign deployed models remain, without traffic. A failed deployment does not change the split. Two
concurrent processes alternate steps, until the endpoint is as declared or an error reports both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PreconditionFailedError,
)
from vertex_training.serving.ports import (
    Deployment,
    Endpoints,
    EndpointSnapshot,
    OperationWait,
    wait_for_operation,
    wait_until_idle,
)

#: Maximum number of repetitions of a step. More repetitions indicate concurrent changes.
MAX_TRIES: Final = 4
#: Maximum number of steps.
MAX_STEPS: Final = 400


@dataclass(frozen=True, slots=True)
class Goal:
    """The declared state of an endpoint. Without deployments, the endpoint must become empty."""

    endpoint: str
    """Key of the endpoint, for messages."""
    owner: str
    """Prefix of the display names of the stack's deployed models: ``vt STACK/KEY ``."""
    deployments: Mapping[int, Deployment]
    """Deployments by run."""
    split: Mapping[int, int]
    """Percentage of the traffic for each run. All percentages add up to 100."""

    @property
    def by_id(self) -> dict[str, Deployment]:
        """Return the deployments by the id of the deployed model."""
        return {deployment.id: deployment for deployment in self.deployments.values()}

    @property
    def split_by_id(self) -> dict[str, int]:
        """Return the shares above 0 by the id of the deployed model, as the service does."""
        return {self.deployments[run].id: share for run, share in self.split.items() if share}

    def owns(self, deployment: Deployment) -> bool:
        """Return True if the stack deployed the model. The id in the name excludes copies."""
        name = deployment.display_name
        return name.startswith(self.owner) and name.endswith(f" {deployment.id}")


@dataclass(frozen=True, slots=True)
class EndpointCall:
    """A call on an endpoint. ``verb`` is the name of a method of ``Endpoints``."""

    verb: str
    id: str = ""
    split: tuple[tuple[str, int], ...] = ()


def display_name(owner: str, run: int, id_: str) -> str:
    """Return the display name for a deployed model of the stack; see ``Goal.owner``."""
    return f"{owner}run {run} {id_}"


def run_of(deployment: Deployment) -> int:
    """Return the number of the run in a display name that the stack wrote."""
    number = deployment.display_name.split(" ")[-2]
    return int(number) if number.isascii() and number.isdecimal() else 0


def next_step(observed: EndpointSnapshot, goal: Goal) -> EndpointCall | None:
    """Return the next step towards the goal; None if the endpoint is as declared."""
    declared = goal.by_id
    owned = {id_: model for id_, model in observed.deployed.items() if goal.owns(model)}
    for id_, deployment in declared.items():
        if id_ not in observed.deployed:
            return EndpointCall("deploy", id_)
        current = observed.deployed[id_]
        if (current.minimum, current.maximum) != (deployment.minimum, deployment.maximum):
            return EndpointCall("resize", id_)
    leaving = sorted(owned.keys() - declared.keys())
    split = goal.split_by_id
    if not declared and len(leaving) > 1:
        # Shares must add up to 100, or be empty: only the last version can leave with traffic.
        last = max(leaving, key=lambda id_: (observed.split.get(id_, 0), id_))
        split = {last: 100}
        leaving.remove(last)
    if split and dict(observed.split) != split:
        return EndpointCall("set_split", split=tuple(sorted(split.items())))
    return EndpointCall("undeploy", leaving[0]) if leaving else None


def reconcile(
    name: str, goal: Goal, endpoints: Endpoints, wait: OperationWait = OperationWait()
) -> EndpointSnapshot | None:
    """Update the endpoint as declared and return it; None if missing and nothing is declared.

    Raises:
        NotSubmittedError: a step was refused or failed; the previous versions still serve.
        OperatorError: the endpoint does not exist or other processes change it, or a step takes too
            long.
    """
    return _Reconciliation(name, goal, endpoints, wait).run()


class _Reconciliation:
    """The work of one process on an endpoint."""

    def __init__(self, name: str, goal: Goal, endpoints: Endpoints, wait: OperationWait) -> None:
        self.name, self.goal, self.endpoints, self.wait = name, goal, endpoints, wait
        self.title = f"endpoint '{goal.endpoint}'"
        self.tries: Counter[EndpointCall] = Counter()

    def run(self) -> EndpointSnapshot | None:
        """Take steps until the endpoint is as declared."""
        first = True
        for _ in range(MAX_STEPS):
            wait_until_idle(self.endpoints, self.name, self.title, self.wait)
            observed = self.endpoints.get(self.name)
            if observed is None and self.goal.deployments:
                raise OperatorError(
                    f"{self.title} ({self.name}) does not exist. Run `pulumi refresh`, then "
                    "`pulumi up` to create the endpoint again."
                )
            if observed is None:
                return None
            self._ensure_own(observed, first)
            first = False
            step = next_step(observed, self.goal)
            if step is None:
                return observed
            self.tries[step] += 1
            if self.tries[step] > MAX_TRIES:
                break
            if not self.wait.environment.engine_is_alive():
                raise OperatorError(
                    f"the Pulumi engine has exited, so {self.title} was not updated further. Run "
                    "`pulumi up` again."
                )
            self._take(step, observed)
        raise OperatorError(
            f"other processes or users are changing {self.title}, so the endpoint is not yet as "
            "declared. Run `pulumi up` again after the other changes."
        )

    def _ensure_own(self, observed: EndpointSnapshot, first: bool) -> None:
        """Report foreign deployed models. Refuse to remove these models or to use their ids."""
        others = [model for model in observed.deployed.values() if not self.goal.owns(model)]
        taken = sorted(model.id for model in others if model.id in self.goal.by_id)
        if taken or (others and not self.goal.deployments):
            ids = ", ".join(taken or sorted(model.id for model in others))
            endpoint = self.name.rpartition("/")[2]
            raise NotSubmittedError(
                f"{self.title} has deployed models that do not belong to the stack: {ids}. The "
                "endpoint was not changed. Undeploy these models with `gcloud ai endpoints "
                f"undeploy-model {endpoint} --deployed-model-id=ID`, then run the command again."
            )
        if first:
            for model in others:
                self.wait.report(
                    f"{self.title}: deployed model {model.id} does not belong to the stack. The "
                    "model remains, without traffic"
                )

    def _take(self, step: EndpointCall, observed: EndpointSnapshot) -> None:
        """Take a step, and wait until the step has ended or only a new reading shows its effect."""
        self.wait.report(f"{self.title}: {self._words(step)}")
        try:
            operation = self._call(step, observed)
        except PreconditionFailedError:
            return  # another process wrote the endpoint in between
        except InDoubtError:
            self._await_outcome(step)
            return
        except NotSubmittedError as refused:
            if self._has_outcome(step):
                return  # refused because another process took the same step
            raise self._failure(step, observed, str(refused)) from None
        if not operation:
            return
        ended = wait_for_operation(self.endpoints, operation, self.title, self.wait)
        if ended.error and not self._has_outcome(step):
            raise self._failure(step, observed, ended.error)

    def _call(self, step: EndpointCall, observed: EndpointSnapshot) -> str:
        if step.verb == "set_split":
            self.endpoints.set_split(self.name, dict(step.split), observed.etag)
            return ""
        if step.verb == "undeploy":
            return self.endpoints.undeploy(self.name, step.id)
        call = self.endpoints.deploy if step.verb == "deploy" else self.endpoints.resize
        return call(self.name, self.goal.by_id[step.id])

    def _await_outcome(self, step: EndpointCall) -> None:
        """Wait for an effect of a call whose response was lost."""
        waited, pause = 0.0, self.wait.backoff.maximum
        while waited < self.wait.doubt and not self._has_outcome(step):
            self.wait.environment.sleep(pause)
            waited += pause

    def _has_outcome(self, step: EndpointCall) -> bool:
        """Return True if the step is obsolete, or a running operation may be this step."""
        if self.endpoints.running(self.name):
            return True
        observed = self.endpoints.get(self.name)
        return observed is None or next_step(observed, self.goal) != step

    def _words(self, step: EndpointCall) -> str:
        if step.verb == "set_split":
            return f"setting the split to {self._shares(dict(step.split), self.goal.by_id)}"
        declared = self.goal.by_id.get(step.id)
        what = f"run {run_of(declared)}" if declared else f"deployed model {step.id}"
        verbs = {"deploy": "deploying", "resize": "resizing", "undeploy": "undeploying"}
        return f"{verbs[step.verb]} {what}"

    def _shares(self, split: Mapping[str, int], models: Mapping[str, Deployment]) -> str:
        own = {id_: model for id_, model in models.items() if self.goal.owns(model)}
        names = {id_: f"run {run_of(model)}" for id_, model in own.items()}
        return ", ".join(f"{names.get(id_, id_)}: {share}" for id_, share in sorted(split.items()))

    def _failure(
        self, step: EndpointCall, before: EndpointSnapshot, reason: str
    ) -> NotSubmittedError:
        """Return the error for a failed step. First undeploy this process's new models."""
        split = self._shares(before.split, before.deployed)
        if step.verb != "deploy":
            what = f"{self.title}: {self._words(step)} was refused: {reason}"
            return NotSubmittedError(
                f"{_sentence(what)} The traffic split is {{{split}}}. Run `pulumi "
                "up` to continue, or revert the stack file and run `pulumi up` to restore the old "
                "state."
            )
        deployment = self.goal.by_id[step.id]
        self._take_back(before)
        version = deployment.version.rpartition("/")[2]
        what = f"{self.title}: run {run_of(deployment)} ({version}) was not deployed: {reason}"
        serving = f"The traffic split is still {{{split}}}."
        if not split:
            serving = "The endpoint serves no version."
        return NotSubmittedError(
            f"{_sentence(what)} {serving} Fix the container or the model, or remove the run from "
            "the split, then run `pulumi up` again."
        )

    def _take_back(self, before: EndpointSnapshot) -> None:
        """Undeploy the models that this process deployed and that have no traffic."""
        mine = {step.id for step in self.tries if step.verb == "deploy"}
        for id_ in sorted(mine & before.deployed.keys() - before.split.keys()):
            try:
                operation = self.endpoints.undeploy(self.name, id_)
                wait_for_operation(self.endpoints, operation, self.title, self.wait)
            except OperatorError as error:
                self.wait.report(f"{self.title}: cannot undeploy the deployed model {id_}: {error}")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
