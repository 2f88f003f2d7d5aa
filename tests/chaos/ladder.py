"""Tests ladders with hypothesis: any interleaving, fault and kill leaves one active rung, in order.

Engines that create, update and delete a job with a ladder, and processes that take it from rung to
rung, on the cloud of ``cloud``. A step is one rule of the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.chaos.cloud import Cloud, Job, Send
from tests.chaos.engine import JOB, PortOfKind, Run, StateFile, inputs, virtual_provider
from tests.chaos.machine import orders
from tests.chaos.process import Fate, Order, Process, ProviderKilled
from vertex_training.customjob import provider
from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.customjob.protocol.ladder import CurrentRung, Ladder
from vertex_training.customjob.protocol.ports import LADDER, REQUEST_ID_LABEL, RUNG_LABEL
from vertex_training.customjob.provider import rungs_of
from vertex_training.errors import OperatorError

PROCESSES: Final = 3
#: Rungs of the ladder, and texts of the last one: an edit of it, while it has no turn, is free.
RUNGS: Final = 3
#: Calls after which a process that nothing disturbs should long have ended.
ENDLESS: Final = 600
STOCK_OUT: Final = "Resources are insufficient in region: r."
STEPS_OF_AN_EXAMPLE: Final = 50


def program(run: int, command: str, last: str) -> dict[str, Any]:
    """Return inputs of a job with a ladder: ``command`` is in every rung, ``last`` in the last
    rung.
    """
    made = inputs(run, command, "keep")
    others = [inputs(run, f"{command}{number}", "keep") for number in range(2, RUNGS)]
    others.append(inputs(run, f"{command}{last}", "keep"))
    ladder = [
        {"requestId": each["requestId"], "request": each["request"], "words": "other"}
        for each in others
    ]
    return {**made, "options": {**made["options"], LADDER: ladder}}


def _ids(made: Mapping[str, Any]) -> tuple[str, ...]:
    return made["requestId"], *(rung["requestId"] for rung in made["options"][LADDER])


class LadderCloud(Cloud):
    """The simulated cloud, which also checks the order of rungs."""

    def enter(self, labels: Mapping[str, str]) -> Send:
        """Check that rung k follows only rung k-1 of the same pass, whose job had no machines."""
        number = int(labels[RUNG_LABEL])
        landed = [job for job in self.jobs if job.of == JOB]
        before = landed[-1] if landed else None
        if number > 1 and not (before and before.record.out_of_stock):
            self.violations.append(f"rung {number} was sent after {before}")
        send = super().enter(labels)
        self.rung_of = {**getattr(self, "rung_of", {}), send.request_id: number}
        return send

    def land(self, send: Send) -> Job:
        """Check that the rung before an effective rung was the job's last event."""
        landed = [job for job in self.jobs if job.of == JOB]
        number = int(send.labels[RUNG_LABEL])
        if number > 1 and self.rung_of[landed[-1].request_id] != number - 1:
            self.violations.append(f"rung {number} came after {landed[-1].record}")
        return super().land(send)

    def run_out(self, job: Job) -> None:
        """Fail the job because no machine is available."""
        job.record = replace(
            job.record, state="JOB_STATE_FAILED", error=STOCK_OUT, out_of_stock=True
        )
        job.history.append((self.time, job.record))


class LadderMachine(RuleBasedStateMachine):
    """One state file, engines, movers, a cloud, and people who edit the ladder."""

    sent: ClassVar[Counter[int]] = Counter()
    """How often each rung was sent, in all examples."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud = LadderCloud()
        self.file = StateFile()
        self.processes: list[Process] = []
        self.run, self.command, self.last = 1, "a", "x"
        self._programs: dict[tuple[str, ...], dict[str, Any]] = {}
        self._provider = virtual_provider()
        self._provider.__enter__()

    @property
    def program(self) -> dict[str, Any]:
        made = program(self.run, self.command, self.last)
        self._programs[_ids(made)] = made
        return {JOB: made}

    def _mover(self, declared: dict[str, Any]) -> Process:
        def work(process: Process) -> None:
            jobs = PortOfKind(process, CUSTOM_JOB)
            environment = process.environment(lambda: not process.engine_gone)
            ladder = Ladder(rungs_of(declared), jobs, process, environment=environment)
            try:
                self.result = ladder.climb()
            except (OperatorError, ProviderKilled) as error:
                self.error = error

        return Process(self.cloud, work)

    def _run(self) -> Run:
        provider._adopted.clear()  # of a process of its own
        return Run(self.file, self.program)

    # --- processes
    @rule(what=st.sampled_from(["up", "up", "destroy", "refresh"]))
    def engine(self, what: str) -> None:
        """Run one engine at a time, because of the stack's lock."""
        if not any(isinstance(each.work, Run) for each in self.processes):
            run = self._run()
            process = Process(self.cloud, getattr(run, what))
            process.work = run
            self.processes.append(process)

    @rule()
    def mover(self) -> None:
        """Start a process that waits for the deployed job, with the current state."""
        if len(self.processes) < PROCESSES and JOB in self.file.resources:
            process = self._mover(self.deployed)
            process.work = None
            self.processes.append(process)

    @property
    def deployed(self) -> dict[str, Any]:
        """Return the job in the state, where a mover reads it."""
        return self._programs[tuple(self.file.resources[JOB].outs[LADDER])]

    @rule(which=st.integers(0, PROCESSES - 1), calls=st.integers(0, 12), order=orders)
    def go_on(self, which: int, calls: int, order: Order) -> None:
        """Execute some calls of a process normally, and the next call as ordered."""
        if not self.processes:
            self.engine("up")
        process = self.processes[which % len(self.processes)]
        for each in [Order(Fate.GO, order.delay)] * calls + [order]:
            if not process.ended:
                process.resume(each)
        self._tidy()

    @rule(calls=st.integers(0, 25), order=orders, beside=st.integers(0, 25))
    def falls(self, calls: int, order: Order, beside: int) -> None:
        """Fail a job without machines; two movers begin, one of which follows ``order``."""
        self.job_goes_on("out")
        first = len(self.processes)
        self.mover()
        self.mover()
        if len(self.processes) == first + 2:
            self.processes[first + 1].resume(Order())
            for each in (*[Order()] * calls, order):
                if not self.processes[first].ended:
                    self.processes[first].resume(each)
            for _ in range(beside):
                if not self.processes[first + 1].ended:
                    self.processes[first + 1].resume(Order())
        self._tidy()

    def _tidy(self) -> None:
        for process in self.processes:
            if process.crash is not None:
                raise AssertionError("a process ended with a traceback") from process.crash
        self.processes = [process for process in self.processes if not process.ended]

    def _kill_all(self) -> None:
        for process in self.processes:
            while not process.ended:
                process.resume(Order(Fate.KILL_BOTH))
        self._tidy()

    # --- the world
    @rule(seconds=st.sampled_from([1.0, 61.0, 121.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        self.cloud.advance(self.cloud.time + seconds)

    @rule(what=st.sampled_from(["out", "out", "out", "runs", "fails", "succeeds", "cancelled"]))
    def job_goes_on(self, what: str) -> None:
        """Move the newest active job to its next state."""
        live = [job for job in reversed(self.cloud.jobs) if job.live and job.ends_at is None]
        if not live:
            return
        if what == "out":
            self.cloud.run_out(live[0])
        elif what == "cancelled":
            self.cloud.cancel(live[0].record.name, 20.0)
        else:
            state = {"runs": "RUNNING", "fails": "FAILED", "succeeds": "SUCCEEDED"}[what]
            self.cloud.change(live[0], f"JOB_STATE_{state}")

    @rule(what=st.sampled_from(["last rung", "last rung", "file", "run"]))
    def edits(self, what: str) -> None:
        if what == "last rung":
            self.last = chr(ord(self.last) + 1)
        elif what == "file":
            self.command = chr(ord(self.command) + 1)
        else:
            self.run += 1

    # --- what must hold
    @invariant()
    def holds(self) -> None:
        """Check that at most one rung is active, all are in order, and ``delete`` would
        find each.
        """
        assert not self.cloud.violations, self.cloud.violations
        assert len(self.cloud.going_on(JOB)) <= 1
        for send in self.cloud.sends:
            assert send.labels.get(REQUEST_ID_LABEL) == send.request_id

    @rule(lag=st.sampled_from([0.0, 29.0]), outs=st.integers(0, RUNGS))
    def recover(self, lag: float, outs: int) -> None:
        """Kill all processes; then one undisturbed ``up`` and one mover must recover."""
        self._kill_all()
        error = self._up(lag)
        while error and "set run:" in str(error):
            self.run += 1
            error = self._up(lag)
        if error is not None:
            live = self.cloud.going_on(JOB)
            assert live, f"a clean run failed: {error!r}"
            return
        sent = len(self.cloud.sends)
        assert self._up(lag) is None
        assert len(self.cloud.sends) == sent, "a second up submitted something"
        if self.cloud.turns[f"r/{JOB}"].withdrawn:
            adopted = self.cloud.job(self.file.resources[JOB].id)
            assert adopted is not None
            assert not adopted.live, "a live job has left the ladder"
            return
        for _ in range(outs):
            self._fall(lag)
        found = self._climb(lag)
        assert found is not None, f"the deployed ladder has no turn: {self.cloud.turns}"
        assert found.job is not None, "a rung has the turn, and no job"
        live = self.cloud.going_on(JOB)
        assert [job.record.name for job in live] in ([], [found.job.name])
        if not live:
            state, rung = found.job.state, found.request.rung
            stays = not found.job.out_of_stock or rung == RUNGS
            assert stays, f"a rung is left after {rung}, and {state}"
        sent = len(self.cloud.sends)
        again = self._climb(lag)
        assert len(self.cloud.sends) == sent or found.job.out_of_stock
        assert again is not None

    def _fall(self, lag: float) -> None:
        """Fail the active job for want of machines: the next rung follows, unless it was the last
        rung.
        """
        before = self._climb(lag)
        if before and before.job and before.job in [j.record for j in self.cloud.going_on(JOB)]:
            self.job_goes_on("out")
            after = self._climb(lag)
            assert after is not None
            assert after.request.rung == min(before.request.rung + 1, RUNGS)
            assert after.moved == (before.request.rung < RUNGS)

    @rule(lag=st.sampled_from([0.0, 29.0]))
    def leave(self, lag: float) -> None:
        """Check that no job is active after a clean destroy, and that no mover restores one."""
        if JOB not in self.file.resources:
            return
        movers = [each for each in self.processes if each.work is None]
        for process in self.processes:
            while process.work is not None and not process.ended:
                process.resume(Order(Fate.KILL_BOTH))
        run = self._run()
        self._through(Process(self.cloud, run.destroy), lag)
        assert run.error is None, run.error
        for process in movers:
            self._through(process, lag)
        self._tidy()
        self.cloud.advance(self.cloud.time + 200.0)
        assert not self.cloud.going_on(JOB), "a job goes on that left the stack"

    def _up(self, lag: float) -> Exception | None:
        run = self._run()
        self._through(Process(self.cloud, run.up), lag)
        return run.error

    def _climb(self, lag: float) -> CurrentRung | None:
        self.result = self.error = None
        self._through(self._mover(self.deployed), lag)
        assert self.error is None, f"a clean move failed: {self.error!r}"
        return self.result

    def _through(self, process: Process, lag: float) -> None:
        for _ in range(ENDLESS):
            if process.ended:
                break
            process.resume(Order(Fate.GO, min(lag, 29.0)))
        assert process.ended, "a clean process does not come to an end"
        if process.crash is not None:
            raise AssertionError("a process ended with a traceback") from process.crash

    def teardown(self) -> None:
        try:
            self._kill_all()
            self.sent.update(int(send.labels[RUNG_LABEL]) for send in self.cloud.sends)
        finally:
            self._provider.__exit__(None, None, None)


@dataclass(frozen=True, slots=True)
class LadderResult:
    """Results of the examples."""

    examples: int
    sent: tuple[int, ...]
    """How often each rung was sent."""
    seed: int


def run_ladders(examples: int, seed_: int) -> LadderResult:
    """Run a number of examples. Raises the first violation, shrunk."""
    sent = Counter[int]()
    machine = seed(seed_)(type("Ladders", (LadderMachine,), {"sent": sent}))
    how = settings(
        max_examples=examples,
        stateful_step_count=STEPS_OF_AN_EXAMPLE,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=how)
    return LadderResult(examples, tuple(sent[rung] for rung in range(1, RUNGS + 1)), seed_)
