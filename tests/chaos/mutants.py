"""Mutants of the protocol, each without one step or guard. A test must detect each."""

from __future__ import annotations

from typing import Final

from tests.chaos.mutant import Mutant, of
from tests.chaos.mutants_of_adapters import ADAPTER_MUTANTS

_CLAIM: Final = of(
    "protocol.submission",
    "claim",
    (
        "a record is overwritten whoever wrote it last",
        "            return self.intents.write(record, generation)",
        "            try:\n"
        "                return self.intents.write(record, generation)\n"
        "            except PreconditionFailedError:\n"
        "                last = self.intents.read(record.request_id)\n"
        "                return self.intents.write(record, last.generation if last else 0)",
    ),
    (
        "another's SENDING is taken over at once",
        "else self._wait_out_lease(stored)",
        "else self._write(IntentState.INTENT, stored.generation)",
    ),
    (
        "another's INTENT is waited for",
        "        if stored.record.state is IntentState.SENDING:",
        "        if stored.record.state in (IntentState.SENDING, IntentState.INTENT):",
    ),
    (
        "DONE is claimed again",
        "        if stored.record.state is IntentState.DONE:",
        "        if stored.record.state is None:",
    ),
    (
        "DONE is claimed again once its job was forgotten",
        "            return self._recorded_job(stored)",
        "            if self.jobs.get(stored.record.job_name) is None:\n"
        "                return self._write(IntentState.INTENT, stored.generation)\n"
        "            return self._recorded_job(stored)",
    ),
    (
        "a freed record's job is not asked for",
        "        withdrawn = self._withdrawn_job(stored.record)",
        "        withdrawn = None",
    ),
    (
        "a lost answer to one's own write is not recognised",
        "            if current is not None and current.record == record:\n"
        "                return current\n",
        "",
    ),
    ("contention ends the attempt", "                continue  #", "                break  #"),
)
_OUTLAST: Final = of(
    "protocol.submission",
    "claim: outlast",
    ("the lease is not waited for", " + self.timing.lease + self.timing.settle", " + 35.0"),
    (
        "no time for lists after the lease",
        "self.timing.lease + self.timing.settle",
        "self.timing.lease",
    ),
    (
        "nobody looks while waiting",
        "            if jobs := self._find_jobs():\n"
        "                return self._adopt(jobs, stored)\n"
        "            current",
        "            current",
    ),
    (
        "a record that changes meanwhile is not noticed",
        "            if current is None or current.generation != stored.generation:\n"
        "                raise PreconditionFailedError\n",
        "",
    ),
)
_LOOK: Final = of(
    "protocol.submission",
    "look",
    (
        "nobody looks before sending",
        "                if not self.request.is_named and (jobs := self._find_jobs()):\n"
        "                    "
        "return self._ensure_no_other_request(self._adopt(jobs, claim)), True\n",
        "",
    ),
    (
        "a list is believed as it is",
        "        jobs = [job for name in names if (job := self.jobs.get(name)) is not None]",
        "        jobs = [job for job in listed if job.name != excluding]",
    ),
)
_PASSED: Final = of(
    "protocol.submission",
    "turn: passed",
    (
        "a job put back is found as it ended",
        "        return [job for job in jobs if not self.turn.has_passed(job)]",
        "        return jobs",
    ),
    (
        "a job put back is recorded as it ended",
        "        if self.turn.has_passed(job):",
        "        if job is False:",
    ),
    (
        "a job put back was withdrawn for good",
        " and not self.turn.has_passed(withdrawn):",
        ":",
    ),
    (
        "a job is sent without the number of its turn",
        "TURN_LABEL: str(turn)}",
        "TURN_LABEL: '1'}",
    ),
)
_NUMBERS: Final = of(
    "protocol.turn",
    "turn: passed",
    ("turns are not counted", "            number += 1", "            number += 0"),
    (
        "each write of the turn is another one",
        "        if turn is not None and turn.request_id != self.request.request_id:\n"
        "            number += 1",
        "        if turn is not None:\n            number += 1",
    ),
    (
        "a job that succeeded or goes on is sent once more",
        "or (job is not None and job.state not in FAILED):",
        "or False:",
    ),
    (
        "a job that failed has always had its turn",
        "job is not None and job.turn < turn.number",
        "job is not None",
    ),
    (
        "a job of this turn has passed as well",
        "job.turn < turn.number",
        "job.turn <= turn.number",
    ),
    (
        "a deleted job has always had its turn",
        "        return job is not None and job.turn",
        "        return job is None or job.turn",
    ),
    (
        "killed after it has the turn, a job put back counts as it ended",
        "        return job is not None and job.turn < turn.number",
        "        return False",
    ),
)
_TURN: Final = of(
    "protocol.submission",
    "turn",
    ("no turn is taken", "turn = self._acquire_turn(claim)", "turn = 1"),
    (
        "a claim is kept although its turn is refused",
        "            self._try_write(IntentState.RELEASED, claim)\n            raise",
        "            raise",
    ),
    (
        "an ended job is adopted whatever was sent after it",
        "        if adopted.state in TERMINAL:",
        "        if adopted is None:",
    ),
)
_TURNS: Final = of(
    "protocol.turn",
    "turn",
    (
        "the turn is not written down",
        "        self.intents.write_turn("
        "self.request.turn_key, self.request.request_id, number, generation)\n",
        "",
    ),
    (
        "nobody asks what the request before has left",
        "            self._wait_until_inactive(turn.request_id)",
        "            pass",
    ),
    (
        "a job that lives is no hindrance",
        "            self._refuse(jobs)\n",
        "            pass\n",
    ),
    (
        "a request on its way is not waited for",
        "        if stored.record.state is not IntentState.SENDING:",
        "        if stored.record.state is not None:",
    ),
    (
        "its lease is not waited for",
        " + self.timing.lease + self.timing.settle",
        " + self.timing.settle",
    ),
    (
        "no time for lists after its lease",
        "self.timing.lease + self.timing.settle",
        "self.timing.lease",
    ),
    (
        "the claim of the request before is left to its owner",
        "in (IntentState.INTENT, IntentState.SENDING):",
        "in (IntentState.SENDING,):",
    ),
    (
        "a request given up is left in doubt",
        "in (IntentState.INTENT, IntentState.SENDING):",
        "in (IntentState.INTENT,):",
    ),
    (
        "the record before changes unnoticed",
        "            if current is None or current.generation != stored.generation:\n"
        "                raise PreconditionFailedError\n",
        "",
    ),
    (
        "the last look comes before the lease is over",
        "            settled = stored is not None and self._is_settled(stored)\n"
        "            yield self.jobs_of(previous, stored)  # must follow the check of the lease\n",
        "            yield self.jobs_of(previous, stored)\n"
        "            settled = stored is not None and self._is_settled(stored)\n",
    ),
    ("a job being cancelled stops the next one", " or job.state == CANCELLING", ""),
    ("a job that has ended stops the next one", "job.state in TERMINAL or ", ""),
    (
        "a list is all there is",
        "        if stored is not None and stored.record.job_name:\n"
        "            names.add(stored.record.job_name)\n",
        "",
    ),
    (
        "a record is all there is",
        "{job.name for job in self.jobs.find(self.request.parent, previous)}",
        "set[str]()",
    ),
)
_FENCE: Final = of(
    "protocol.submission",
    "fence",
    (
        "sending begins without the fence",
        "        return self._write(IntentState.SENDING, claim.generation), began",
        "        return claim, began",
    ),
    (
        "who loses the fence sends as well",
        "        return self._write(IntentState.SENDING, claim.generation), began",
        "        self._try_write(IntentState.SENDING, claim)\n        return claim, began",
    ),
)
_SEND: Final = of(
    "protocol.submission",
    "send",
    (
        "a lost answer is sent again",
        "            return self._adopt(self._wait_for_unconfirmed_job(), fence), True",
        "            job = self._create_when_permitted(fenced_at)",
    ),
    (
        "an orphan sends",
        "            if not self.environment.engine_is_alive():",
        "            if self.environment is None:",
    ),
    (
        "a process that was held up sends",
        "            if self.environment.monotonic() - fenced_at > self.timing.send_within:",
        "            if self.environment is None:",
    ),
    (
        "a missing right is final",
        "                if waited + self.timing",
        "                if True or waited + self.timing",
    ),
    (
        "a missing right is waited for without end",
        "                if waited + self.timing.interval > self.timing.gate:\n"
        "                    raise\n",
        "",
    ),
    (
        "it is sent again without looking",
        "                if self._find_jobs():  # refused",
        "                if False:  # refused",
    ),
    (
        "any refusal is tried again",
        "            except PermissionDeniedError:",
        "            except NotSubmittedError:",
    ),
    (
        "a refusal leaves the record as if something were on its way",
        "            self._try_write(IntentState.RELEASED, fence)\n",
        "",
    ),
)
_SETTLE: Final = of(
    "protocol.submission",
    "settle",
    (
        "a lost answer ends the run at once",
        "            return self._adopt(self._wait_for_unconfirmed_job(), fence), True",
        "            raise",
    ),
    (
        "one look settles",
        "            if waited >= self.timing.doubt:",
        "            if waited >= 0.0:",
    ),
    (
        "doubt frees the record",
        "        except NotSubmittedError:\n            if not in_flight:",
        "        except (NotSubmittedError, InDoubtError):\n            if not in_flight:",
    ),
)
_AUDIT: Final = of(
    "protocol.submission",
    "audit",
    ("no audit", "        job = self._audit(job)\n", ""),
    (
        "the audit keeps the newest",
        "            oldest = earliest([*others, created])",
        "            oldest = max([*others, created], key=lambda job: job.created)",
    ),
    (
        "the audit cancels nothing",
        "                    self.jobs.cancel(job.name)",
        "                    pass",
    ),
    ("an audit that fails loses the job", "            return created  #", "            raise  #"),
)
_RECORD: Final = of(
    "protocol.submission",
    "record",
    ("DONE is not written", "        self._try_write(IntentState.DONE, fence, job.name)\n", ""),
    (
        "an adopted job is not written down",
        "        self._try_write(IntentState.DONE, stored, job.name)\n",
        "",
    ),
    (
        "a note that cannot be written loses the job",
        "        except (PreconditionFailedError, OperatorError):\n            return\n",
        "        except (PreconditionFailedError, OperatorError):\n            raise\n",
    ),
)

#: All of them, in the order of the protocol.
_SLOTS: Final = [
    *of(
        "protocol.turn",
        "turn: slots",
        (
            "a slot is sent after a later one",
            " and slot_of(turn.request_id) > self.request.slot",
            " and slot_of(turn.request_id) == 1",
        ),
        (
            "a slot that failed is sent once more",
            "        if self.request.slot or (job",
            "        if (job",
        ),
        (
            "the end of a schedule cancels whatever job a record names",
            " if job.request_id == previous]",
            "]",
        ),
    ),
    *of(
        "protocol.submission",
        "look: slots",
        (
            "a slot whose job failed unseen is refused for ever",
            "    if request.slot:\n        return earliest(candidates)\n",
            "",
        ),
    ),
]
MUTANTS: Final[tuple[Mutant, ...]] = (
    *_CLAIM, *_OUTLAST, *_LOOK, *_PASSED, *_NUMBERS, *_TURN, *_TURNS, *_FENCE, *_SEND, *_SETTLE,
    *_AUDIT, *_RECORD, *_SLOTS, *ADAPTER_MUTANTS,
)  # fmt: skip
