"""Runs the suite against mutants of the protocol, each in a process of its own.

``python -m tests.chaos.mutation`` loads everything once and forks for each mutant: the fork puts
the mutated source into the module, and runs the unit tests of that module and, if none fails, the
state machine. Its process has no threads when it forks; ``run_mutants`` starts it and reads along.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Final

import pytest

from tests.chaos.machine import run_machine
from tests.chaos.mutant import ROOT, Mutant
from tests.chaos.mutants import MUTANTS

#: Modules in the order they import each other: after a mutated one, the later are loaded anew.
MODULES: Final = (
    "protocol.turn",
    "protocol.submission",
    "protocol.waiting",
    "google.job_service",
    "google.intent_store",
    "provider",
)
TESTS: Final = {
    "protocol.turn": (
        "protocol/test_turn.py",
        "protocol/test_going_back.py",
        "../schedules/test_slots.py",
    ),
    "protocol.submission": (
        "protocol/test_submission.py",
        "protocol/test_turn.py",
        "protocol/test_going_back.py",
        "../schedules/test_slots.py",
    ),
    "protocol.waiting": ("protocol/test_withdrawal.py", "test_provider.py"),
    "provider": ("test_provider.py", "test_tuning_provider.py"),
    "google.job_service": ("google/test_recorded_calls.py",),
    "google.intent_store": ("google/test_intent_store.py",),
}
#: What the state machine gets to notice a mutant that unit tests let pass.
STEPS, SEED = 6000, 1
#: Seconds. A mutant that takes longer is an error.
TIMEOUT_SECONDS: Final = 300.0
#: A sample always has these.
FIXED: Final = (
    "sending begins without the fence",
    "a lost answer is sent again",
    "DONE is not written",
)


@dataclass(frozen=True, slots=True)
class MutantResult:
    """The result of one mutant; ``by`` is the test that detected it, or the machine's violation."""

    name: str
    step: str
    killed: bool
    by: str
    seconds: float


class MutantRunError(Exception):
    """A mutant cannot be applied or loaded, or does not end."""


def run_mutants(
    progress: Callable[[MutantResult], None] = lambda _: None,
    names: Sequence[str] = (),
) -> list[MutantResult]:
    """Run all mutants, or the named mutants, and report each result at once.

    Raises:
        MutantRunError: with the reason; the source as it is must pass first, too.
    """
    results = []
    command = [sys.executable, "-m", __name__, *names]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise MutantRunError(answer["error"])
            results.append(MutantResult(**answer))
            progress(results[-1])
    if running.returncode:
        raise MutantRunError(f"the process that runs mutants ended with {running.returncode}")
    return results


def sample(count: int, seed: int) -> list[str]:
    """Return the fixed names and ``count`` other names, chosen by ``seed``."""
    others = [mutant.name for mutant in MUTANTS if mutant.name not in FIXED]
    return [*FIXED, *random.Random(seed).sample(others, count)]


def run_each(mutants: Sequence[Mutant]) -> Iterator[MutantResult]:
    """Run the unchanged source, which must pass, then each mutant."""
    if found := _forked(None, {mutant.module for mutant in mutants})[0]:
        raise MutantRunError(f"the source as it is fails: {found}")
    for mutant in mutants:
        mutant.source()  # a stale one is an error of its own
        by, seconds = _forked(mutant, {mutant.module})
        yield MutantResult(mutant.name, mutant.step, bool(by), by, round(seconds, 2))


def _forked(mutant: Mutant | None, modules: Set[str]) -> tuple[str, float]:
    """Return what detected the mutant (empty if nothing did) and the duration."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=_child, args=(mutant, modules, theirs))
    began = time.monotonic()
    child.start()
    theirs.close()
    try:
        if not ours.poll(TIMEOUT_SECONDS):
            raise MutantRunError(
                f"{mutant.name if mutant else 'the source'}: no end in {TIMEOUT_SECONDS} s"
            )
        found, reason = ours.recv()
    except EOFError:
        raise MutantRunError(
            f"{mutant.name if mutant else 'the source'}: its process died"
        ) from None
    finally:
        child.kill()
        child.join()
    if reason:
        raise MutantRunError(reason)
    return found, time.monotonic() - began


def _child(mutant: Mutant | None, modules: Set[str], answer: Connection) -> None:
    """Run in this process, which then exits. Sends the detecting test and a failure's reason."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        if mutant is not None:
            _load(mutant)
        answer.send((_unit_tests(modules) or _machine(), ""))
    except Exception as error:
        name = mutant.name if mutant else "the source"
        answer.send(("", f"{name}: {type(error).__name__}: {error}"))


def _load(mutant: Mutant) -> None:
    """Load the mutant in place of its module, and reload modules that import from it."""
    module = importlib.import_module(f"vertex_training.customjob.{mutant.module}")
    exec(compile(mutant.source(), mutant.path, "exec"), module.__dict__)
    for later in MODULES[MODULES.index(mutant.module) + 1 :]:
        importlib.reload(importlib.import_module(f"vertex_training.customjob.{later}"))


class _FirstFailure:
    """A pytest plugin that records the first failed test."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("/")[2]


def _unit_tests(modules: Set[str]) -> str:
    """Return the first failing unit test, if any."""
    names = sorted({name for module in modules for name in TESTS[module]})
    files = [str(ROOT / "tests/unit/infra/customjob" / name) for name in names]
    first = _FirstFailure()
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        "--rootdir",
        str(ROOT),
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main([*options, *files], plugins=[first])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise MutantRunError(f"pytest ended with {code!r}")
    return first.name


def _machine() -> str:
    """Return the state machine's violation in one line."""
    found = run_machine(STEPS, SEED).violations
    if not found:
        return ""
    errors = [line for line in found[0].splitlines() if line.startswith("AssertionError: ")]
    return f"machine, seed {SEED}: {(errors or found[0].splitlines())[-1]}"


def main(names: Sequence[str]) -> int:
    """Run the named mutants, or all, and print a line of JSON for each."""
    for module in MODULES:
        importlib.import_module(f"vertex_training.customjob.{module}")
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    try:
        if unknown:
            raise MutantRunError(f"no such mutant: {', '.join(sorted(unknown))}")
        for result in run_each([m for m in MUTANTS if not names or m.name in names]):
            print(json.dumps(asdict(result)), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
