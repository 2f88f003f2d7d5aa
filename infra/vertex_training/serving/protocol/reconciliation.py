"""Bring one endpoint to what is declared: look, take the next single step, look again.

Each step may be repeated, and the next one follows from what the endpoint has, not from what this
process did. So a process that dies anywhere leaves an endpoint that the next one goes on with:

1. wait    until no operation runs on the endpoint, whoever began it
2. deploy  what is missing, without traffic; an id of our choosing makes a repeated call harmless
3. resize  what has other bounds of replicas
4. split   in one call, once all of it is deployed, which is to say healthy
5. leave   undeploy what is the stack's, is not declared, and has no traffic

What others deployed is left alone, without traffic. A deployment that fails leaves the split as it
was. Two processes at once take turns step by step, and each ends when the endpoint is as it was
told, or says that others change it. Imports neither Pulumi nor Google.
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
from vertex_training.serving.protocol.ports import (
    Deployment,
    Endpoints,
    EndpointSnapshot,
    OperationWait,
    wait_for_operation,
    wait_until_idle,
)

#: How often one step is taken before others are blamed.
MAX_TRIES: Final = 4
#: No endpoint needs more steps than this.
MAX_STEPS: Final = 400


@dataclass(frozen=True, slots=True)
class Goal:
    """Declared state of an endpoint. Without deployments, all of the stack's are undeployed."""

    endpoint: str
    """Key of the endpoint, for messages."""
    owner: str
    """Prefix of display names of the stack's deployed models, ``vt STACK/KEY ``."""
    deployments: Mapping[int, Deployment]
    """By run."""
    split: Mapping[int, int]
    """Share by run; 100 in total."""

    @property
    def by_id(self) -> dict[str, Deployment]:
        """The deployments by the id of the deployed model."""
        return {deployment.id: deployment for deployment in self.deployments.values()}

    @property
    def split_by_id(self) -> dict[str, int]:
        """The shares by id, without those that are 0, as the service has them."""
        return {self.deployments[run].id: share for run, share in self.split.items() if share}

    def owns(self, deployment: Deployment) -> bool:
        """Return whether the stack deployed it; the id in its name distinguishes it from a copy."""
        name = deployment.display_name
        return name.startswith(self.owner) and name.endswith(f" {deployment.id}")


@dataclass(frozen=True, slots=True)
class EndpointCall:
    """One call. ``verb`` is a method of ``Endpoints``."""

    verb: str
    id: str = ""
    split: tuple[tuple[str, int], ...] = ()


def display_name(owner: str, run: int, id_: str) -> str:
    """Display name of a deployed model of the stack; see ``Goal.owner``."""
    return f"{owner}run {run} {id_}"


def run_of(deployment: Deployment) -> int:
    """The run in a display name of the stack's."""
    number = deployment.display_name.split(" ")[-2]
    return int(number) if number.isascii() and number.isdecimal() else 0


def next_step(observed: EndpointSnapshot, goal: Goal) -> EndpointCall | None:
    """The next step towards the goal; None if it is reached."""
    wanted = goal.by_id
    owned = {id_: each for id_, each in observed.deployed.items() if goal.owns(each)}
    for id_, deployment in wanted.items():
        if id_ not in observed.deployed:
            return EndpointCall("deploy", id_)
        there = observed.deployed[id_]
        if (there.minimum, there.maximum) != (deployment.minimum, deployment.maximum):
            return EndpointCall("resize", id_)
    leaving = sorted(owned.keys() - wanted.keys())
    split = goal.split_by_id
    if not wanted and len(leaving) > 1:
        # The split is 100 or nothing, and a version with traffic cannot leave unless it is the last
        last = max(leaving, key=lambda id_: (observed.split.get(id_, 0), id_))
        split = {last: 100}
        leaving.remove(last)
    if split and dict(observed.split) != split:
        return EndpointCall("set_split", split=tuple(sorted(split.items())))
    return EndpointCall("undeploy", leaving[0]) if leaving else None


def reconcile(
    name: str, goal: Goal, endpoints: Endpoints, wait: OperationWait = OperationWait()
) -> EndpointSnapshot | None:
    """The endpoint once it has what the goal says; None if it is gone and nothing was wanted.

    Raises:
        NotSubmittedError: a step was refused or failed; what served before serves on.
        OperatorError: the endpoint is gone, others change it, or an operation takes too long.
    """
    return _Reconciliation(name, goal, endpoints, wait).run()


class _Reconciliation:
    """One process's work on one endpoint."""

    def __init__(self, name: str, goal: Goal, endpoints: Endpoints, wait: OperationWait) -> None:
        self.name, self.goal, self.endpoints, self.wait = name, goal, endpoints, wait
        self.title = f"endpoint '{goal.endpoint}'"
        self.tries: Counter[EndpointCall] = Counter()

    def run(self) -> EndpointSnapshot | None:
        """Take steps until none is left."""
        first = True
        for _ in range(MAX_STEPS):
            observed = self._observe()
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
                raise OperatorError("the Pulumi engine is gone; no further step was taken.")
            self._take(step, observed)
        raise OperatorError(
            f"{self.title} is changed by others at the same time; it does not get to what is "
            "declared. Run `pulumi up` again once they are done."
        )

    def _observe(self) -> EndpointSnapshot | None:
        """The endpoint, once nothing runs on it; None if it is gone and nothing is wanted."""
        wait_until_idle(self.endpoints, self.name, self.title, self.wait)
        observed = self.endpoints.get(self.name)
        if observed is None and self.goal.deployments:
            raise OperatorError(
                f"{self.title} ({self.name}) does not exist. Run `pulumi refresh`, then `pulumi "
                "up`: it is made anew."
            )
        return observed

    def _ensure_own(self, observed: EndpointSnapshot, first: bool) -> None:
        """Say what is others'; refuse what would take it away or be mistaken for it."""
        others = [each for each in observed.deployed.values() if not self.goal.owns(each)]
        taken = sorted(each.id for each in others if each.id in self.goal.by_id)
        if taken or (others and not self.goal.deployments):
            ids = ", ".join(taken or sorted(each.id for each in others))
            endpoint = self.name.rpartition("/")[2]
            raise NotSubmittedError(
                f"{self.title} has deployed models that are not the stack's: {ids}. Nothing was "
                f"changed. Take them away (`gcloud ai endpoints undeploy-model {endpoint} "
                "--deployed-model-id=ID`), then run this again."
            )
        if first:
            for each in others:
                self.wait.report(
                    f"{self.title}: deployed model {each.id} is not the stack's; it stays, without "
                    "traffic"
                )

    def _take(self, step: EndpointCall, observed: EndpointSnapshot) -> None:
        """Take one step and wait for its end. Returns also where another look will tell.

        Raises:
            NotSubmittedError: the service refused it, or it failed.
        """
        self.wait.report(f"{self.title}: {self._words(step)}")
        try:
            operation = self._call(step, observed)
        except PreconditionFailedError:
            return  # somebody wrote the endpoint in between
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
        """After a lost answer: look for what came of the call, for as long as it may take effect.

        Whether it did or not, another look decides; the step may be repeated.
        """
        waited, pause = 0.0, self.wait.backoff.maximum
        while waited < self.wait.doubt and not self._has_outcome(step):
            self.wait.environment.sleep(pause)
            waited += pause

    def _has_outcome(self, step: EndpointCall) -> bool:
        """Return whether the step is obsolete, or a running operation may be the step."""
        if self.endpoints.running(self.name):
            return True
        observed = self.endpoints.get(self.name)
        return observed is None or next_step(observed, self.goal) != step

    def _words(self, step: EndpointCall) -> str:
        if step.verb == "set_split":
            return f"sets the split to {self._shares(dict(step.split))}"
        wanted = self.goal.by_id.get(step.id)
        what = f"run {run_of(wanted)}" if wanted else f"deployed model {step.id}"
        verbs = {"deploy": "deploys", "resize": "resizes", "undeploy": "undeploys"}
        return f"{verbs[step.verb]} {what}"

    def _shares(self, split: Mapping[str, int]) -> str:
        runs = {id_: f"run {run_of(each)}" for id_, each in self.goal.by_id.items()}
        return ", ".join(f"{runs.get(id_, id_)}: {share}" for id_, share in sorted(split.items()))

    def _failure(
        self, step: EndpointCall, before: EndpointSnapshot, reason: str
    ) -> NotSubmittedError:
        """Return the failure, what still serves, and the fix. Undoes this process's additions."""
        if step.verb != "deploy":
            what = f"{self.title}: it {self._words(step)}, and that was refused: {reason}"
            return NotSubmittedError(
                f"{_sentence(what)} The split is {{{self._split_of(before)}}}. The next `pulumi "
                "up` goes on from there, or back, if the stack file was put back."
            )
        deployment = self.goal.by_id[step.id]
        self._take_back(before)
        split = self._split_of(before)
        version = deployment.version.rpartition("/")[2]
        what = f"{self.title}: run {run_of(deployment)} ({version}) was not deployed: {reason}"
        stays = f"The split stays {{{split}}}." if split else "Nothing serves there yet."
        return NotSubmittedError(
            f"{_sentence(what)} {stays} Mend the container or the model, or take the run out of "
            "the split, then run `pulumi up` again."
        )

    def _split_of(self, observed: EndpointSnapshot) -> str:
        """The split that an endpoint has, by runs where they are the stack's."""
        names = {
            id_: f"run {run_of(each)}" if self.goal.owns(each) else id_
            for id_, each in observed.deployed.items()
        }
        return ", ".join(f"{names.get(id_, id_)}: {n}" for id_, n in sorted(observed.split.items()))

    def _take_back(self, before: EndpointSnapshot) -> None:
        """Undeploy what this process deployed and nobody uses; the next run deploys it anew."""
        mine = {step.id for step in self.tries if step.verb == "deploy"}
        for id_ in sorted(mine & before.deployed.keys() - before.split.keys()):
            try:
                operation = self.endpoints.undeploy(self.name, id_)
                wait_for_operation(self.endpoints, operation, self.title, self.wait)
            except OperatorError as error:
                self.wait.report(f"{self.title}: deployed model {id_} stays for now: {error}")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
