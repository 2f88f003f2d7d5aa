"""Tests the protocol with hypothesis: any interleaving, fault and kill leaves one job, none lost.

A step is one rule of the machine: a process goes on to its next call, dies, or the world changes
around it. ``run_machine`` runs as many as asked for; tests run a sample.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Final

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.chaos.cloud import Cloud, Job
from tests.chaos.engine import JOB, Run, StateFile, inputs, virtual_provider
from tests.chaos.process import Fate, Order, Process
from vertex_training.customjob.kinds import CUSTOM_JOB, JobKind
from vertex_training.customjob.protocol.ports import (
    FAILED,
    REQUEST_ID_LABEL,
    SUCCEEDED,
    IntentState,
    Timing,
)
from vertex_training.errors import JobRefusedError

#: Processes at one time, and machines with a state file of their own.
PROCESSES, FILES = 3, 2
#: Contents of the job's file. Few: people put back what was there before.
COMMANDS: Final = 3
#: Refusals in a row, at most: a run that has ended, and a job that nobody knew.
REFUSALS: Final = 2
#: Calls after which a process that nothing disturbs should long have ended.
ENDLESS: Final = 400
#: What happens to jobs, and what people do. "goes on": a job reaches its next state.
CHANGES: Final = (
    "goes on", "goes on", "cancels", "deletes a record",
    "edits the job", "edits onDelete", "raises run",
)  # fmt: skip
TIMING: Final = Timing()
#: Steps of processes between two recoveries, at least: faults must have time to add up.
STEPS_BETWEEN_RECOVERIES: Final = 8
STEPS_OF_AN_EXAMPLE, EXAMPLES_OF_A_BATCH = 60, 200

orders = st.builds(Order, st.sampled_from(list(Fate)), st.sampled_from([0.0, 4.0, 29.0, 59.0]))


class ProtocolMachine(RuleBasedStateMachine):
    """Engines and providers of two machines, one cloud, and people who change things."""

    steps = 0
    """Of all examples so far."""
    kind = CUSTOM_JOB
    """What the program declares."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud = Cloud(kind=self.kind)
        self.files = [StateFile() for _ in range(FILES)]
        self.processes: list[Process] = []
        self.run, self.command, self.on_delete = 1, "a", "keep"
        self._highest_run = 1
        self._asked_for: dict[str, tuple[int, str]] = {}
        self._since_recovery = 0
        self._provider = virtual_provider()
        self._provider.__enter__()

    @property
    def program(self) -> dict:
        declared = inputs(self.run, self.command, self.on_delete, self.kind)
        self._asked_for[declared["requestId"]] = (self.run, self.command)
        return {JOB: declared}

    # --- processes
    def _start(self, file: int, what: str, skew: float = 0.0, replace: bool = False) -> None:
        run = Run(self.files[file], self.program, replace=replace)
        self.processes.append(Process(self.cloud, getattr(run, what), skew))

    @precondition(lambda self: len(self.processes) < PROCESSES)
    @rule(file=st.integers(0, FILES - 1), skew=st.sampled_from([0.0, -300.0, 300.0]))
    def up(self, file: int, skew: float) -> None:
        type(self).steps += 1
        self._start(file, "up", skew)

    @precondition(lambda self: len(self.processes) < PROCESSES)
    @rule(file=st.integers(0, FILES - 1), what=st.sampled_from(["replace", "destroy", "refresh"]))
    def other_run(self, file: int, what: str) -> None:
        type(self).steps += 1
        if what == "replace":
            self._start(file, "up", replace=True)
        else:
            self._start(file, what)

    @rule(which=st.integers(0, PROCESSES - 1), calls=st.integers(0, 12), order=orders)
    def go_on(self, which: int, calls: int, order: Order) -> None:
        """Execute some calls of a process normally, and the next call as ordered."""
        type(self).steps += 1
        self._since_recovery += 1
        if not self.processes:
            self._start(0, "up")
        process = self.processes[which % len(self.processes)]
        for each in [Order(Fate.GO, order.delay)] * calls + [order]:
            if not process.ended:
                process.resume(each)
        self._tidy()

    @rule(which=st.integers(0, PROCESSES - 1), order=orders)
    def interrupt(self, which: int, order: Order) -> None:
        """Execute the very next call as ordered."""
        self.go_on(which, 0, order)

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
    @rule(seconds=st.sampled_from([1.0, 20.0, 61.0, 121.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        type(self).steps += 1
        self.cloud.advance(self.cloud.time + seconds)

    @rule(what=st.sampled_from(CHANGES), state=st.sampled_from(["SUCCEEDED", "FAILED", "RUNNING"]))
    def somebody(self, what: str, state: str) -> None:
        """Change the cloud, if it has something to change."""
        type(self).steps += 1
        live = [job for job in reversed(self.cloud.jobs) if job.live and job.ends_at is None]
        ended = [job for job in reversed(self.cloud.jobs) if job.exists and not job.live]
        if what == "goes on" and live:
            self.cloud.change(live[0], f"JOB_STATE_{state}")
        elif what == "cancels" and live:
            self.cloud.cancel(live[0].record.name, 20.0)
        elif what == "deletes a record" and ended:
            self.cloud.delete(ended[0].record.name)
        elif what == "edits the job":
            self.command = chr(ord("a") + (ord(self.command) - ord("a") + 1) % COMMANDS)
        elif what == "edits onDelete":
            self.on_delete = "keep" if self.on_delete == "delete" else "delete"
        elif what == "raises run":
            self._highest_run = self.run = self._highest_run + 1

    @precondition(lambda self: any(file.checkpoints for file in self.files))
    @rule(which=st.integers(0, FILES - 1), back=st.integers(1, 3))
    def roll_state_back(self, which: int, back: int) -> None:
        """Restore an older checkpoint."""
        type(self).steps += 1
        file = self.files[which]
        if file.checkpoints:
            file.resources = dict(file.checkpoints[-min(back, len(file.checkpoints))])

    # --- what must hold
    @invariant()
    def holds(self) -> None:
        """Check for violations: jobs must be discoverable, and states must name their own jobs."""
        assert not self.cloud.violations, self.cloud.violations
        for send in self.cloud.sends:
            assert send.labels.get(REQUEST_ID_LABEL) == send.request_id
        for file in self.files:
            for resource in file.resources.values():
                job = self.cloud.job(resource.id)
                assert job is not None, f"state names {resource.id}, which never was"
                assert job.request_id == resource.outs["requestId"]

    @precondition(lambda self: self._since_recovery >= STEPS_BETWEEN_RECOVERIES)
    @rule(lag=st.sampled_from([0.0, 29.0]), put_back=st.booleans())
    def recover(self, lag: float, put_back: bool) -> None:
        """Kill all processes; then one undisturbed `up` on each machine must recover."""
        type(self).steps += 1
        self._since_recovery = 0
        self._kill_all()
        for file in self.files:
            run = self._undisturbed_up(file, lag)
            for _ in range(REFUSALS):
                if isinstance(run.error, JobRefusedError):
                    self._follow_advice(run.error, put_back)
                    run = self._undisturbed_up(file, lag)
            assert run.error is None, f"a clean run failed: {run.error!r}"
            self._check_recovered(file, run)

    def _follow_advice(self, error: JobRefusedError, put_back: bool) -> None:
        """Follow the advice of an error: end the job that it names, or raise ``run``."""
        orphaned = next(
            (job for job in self._orphaned_jobs() if job.record.name in str(error)), None
        )
        if orphaned is None:
            self._check_refusal(error)
            self._highest_run = self.run = self._highest_run + 1
        elif put_back:
            self.run, self.command = self._asked_for[orphaned.request_id]
        else:
            self.cloud.cancel(orphaned.record.name, 20.0)

    def _orphaned_jobs(self) -> list[Job]:
        """Return active jobs of requests that the program does not declare."""
        request_id = self.program[JOB]["requestId"]
        return [job for job in self.cloud.going_on(JOB) if job.request_id != request_id]

    def _undisturbed_up(self, file: StateFile, lag: float) -> Run:
        run = Run(file, self.program)
        request_id = self.program[JOB]["requestId"]
        bound = 2 * TIMING.interval
        turn = self.cloud.turns.get(f"r/{JOB}")
        doubted = {request_id, turn.request_id if turn else request_id}
        if any(self.cloud.state_of(each) is IntentState.SENDING for each in doubted):
            bound += TIMING.lease + TIMING.settle
        if file.resources:
            bound += 60.0  # the old job's cancellation takes its time
        began = self.cloud.time
        process = Process(self.cloud, run.up)
        for _ in range(ENDLESS):
            if process.ended:
                break
            process.resume(Order(Fate.GO, min(lag, 29.0)))
        self.processes.append(process)
        assert process.ended, "a clean run does not come to an end"
        self._tidy()
        took = self.cloud.time - began
        assert took <= bound, f"recovery took {took} s, expected at most {bound}"
        return run

    def _check_refusal(self, error: JobRefusedError) -> None:
        """Check that no job exists to adopt when a submission is refused."""
        request_id = self.program[JOB]["requestId"]
        usable = [
            job
            for job in self.cloud.of(request_id)
            if job.record.state not in FAILED and job.ends_at is None
        ]
        assert not usable, f"refused although {usable[0].record} is there: {error}"
        turn = self.cloud.turns.get(f"r/{JOB}")
        ending = [job for job in self.cloud.of(request_id) if job.live]
        gone_back = turn is not None and turn.request_id != request_id
        assert ending or not gone_back, f"refused although another request had the turn: {error}"

    def _check_recovered(self, file: StateFile, run: Run) -> None:
        request_id = self.program[JOB]["requestId"]
        named = self.cloud.job(file.resources[JOB].id)
        assert named is not None
        assert named.request_id == request_id, "state names the job of another request"
        live = [job for job in self.cloud.of(request_id) if job.live]
        if run.submitted:
            assert named.exists, "a deleted job was adopted"
            assert named.record.state in SUCCEEDED or named.live, "an ended job was adopted"
            record = self.cloud.records[request_id].record
            assert (record.state, record.job_name) == (IntentState.DONE, named.record.name)
            assert live in ([], [named])
            assert self.cloud.going_on(JOB) in ([], [named]), "a job goes on unknown to the state"
        assert file.pending <= set(file.resources), "a pending create was never resolved"

    def teardown(self) -> None:
        try:
            for process in self.processes:
                while not process.ended:
                    process.resume(Order(Fate.KILL_BOTH))
        finally:
            self._provider.__exit__(None, None, None)


@dataclass(frozen=True, slots=True)
class MachineResult:
    """Results of a campaign. ``violations`` has shrunk counter-examples for a replay."""

    steps: int
    examples: int
    violations: tuple[str, ...]
    seed: int


def run_machine(steps: int, seed_: int, kind: JobKind = CUSTOM_JOB) -> MachineResult:
    """Run examples until ``steps`` rules were executed or a violation occurred."""
    done = examples = 0
    while done < steps:
        wanted = max(1, (steps - done) // STEPS_OF_AN_EXAMPLE)
        named = {"steps": 0, "kind": kind}
        machine = seed(seed_ + examples)(type("Protocol", (ProtocolMachine,), named))
        how = settings(
            max_examples=min(wanted, EXAMPLES_OF_A_BATCH),
            stateful_step_count=STEPS_OF_AN_EXAMPLE,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(machine, settings=how)
        except Exception as violation:
            text = "".join(traceback.format_exception(violation))
            return MachineResult(done + machine.steps, examples, (text,), seed_)
        done += machine.steps
        examples += how.max_examples
    return MachineResult(done, examples, (), seed_)
