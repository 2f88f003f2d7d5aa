"""The protocol with one step or guard left out at a time. Each must be noticed by a test."""

from __future__ import annotations

from tests.chaos.mutant import Mutant, of
from tests.chaos.mutants_around import AROUND

_CLAIM = of(
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
        "            return self._outlast(stored)",
        "            return self._write(State.INTENT, stored.generation)",
    ),
    (
        "another's INTENT is waited for",
        "        if stored.record.state is State.SENDING:",
        "        if stored.record.state in (State.SENDING, State.INTENT):",
    ),
    (
        "DONE is claimed again",
        "        if stored.record.state is State.DONE:",
        "        if stored.record.state is None:",
    ),
    (
        "DONE is claimed again once its job was forgotten",
        "            return self._done_before(stored.record.job_name)",
        "            if self.jobs.get(stored.record.job_name) is None:\n"
        "                return self._write(State.INTENT, stored.generation)\n"
        "            return self._done_before(stored.record.job_name)",
    ),
    (
        "a freed record's job is not asked for",
        "        if former := self._withdrawn(stored.record):",
        "        if former := None:",
    ),
    (
        "a lost answer to one's own write is not recognised",
        "            if current is not None and current.record == record:\n"
        "                return current\n",
        "",
    ),
    ("contention ends the attempt", "                continue  #", "                break  #"),
)
_OUTLAST = of(
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
        "            if found := self._look():\n"
        "                return self._adopt(found, stored)\n"
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
_LOOK = of(
    "protocol.submission",
    "look",
    (
        "nobody looks before sending",
        "                if found := self._look():\n"
        "                    return self._alone(self._adopt(found, claim)), True\n",
        "",
    ),
    (
        "a list is believed as it is",
        "        return [now for name in names if (now := self.jobs.get(name)) is not None]",
        "        return [job for job in found if job.name != but]",
    ),
)
_TURN = of(
    "protocol.submission",
    "turn",
    ("no turn is taken", "                self._take_turn(claim)\n", ""),
    (
        "a claim is kept although its turn is refused",
        "            self._try_write(State.RELEASED, claim)\n            raise",
        "            raise",
    ),
    (
        "an ended job is adopted whatever was sent after it",
        "        if adopted.state in TERMINAL:",
        "        if adopted is None:",
    ),
)
_TURNS = of(
    "protocol.turn",
    "turn",
    (
        "the turn is not written down",
        "        self.intents.take_turn(\n"
        "            self.request.turn, self.request.request_id, self.generation_without_stray()\n"
        "        )\n",
        "        self.generation_without_stray()\n",
    ),
    (
        "nobody asks what the request before has left",
        "            self._see_out(turn.request_id)",
        "            pass",
    ),
    (
        "a job that lives is no hindrance",
        "            self._refuse_beside_living(former, stored)  #",
        "            #",
    ),
    (
        "a request on its way is not waited for",
        "        if stored.record.state is not State.SENDING:",
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
        "in (State.INTENT, State.SENDING):",
        "in (State.SENDING,):",
    ),
    (
        "a request given up is left in doubt",
        "in (State.INTENT, State.SENDING):",
        "in (State.INTENT,):",
    ),
    (
        "the record before changes unnoticed",
        "            if current is None or current.generation != stored.generation:\n"
        "                raise PreconditionFailedError\n",
        "",
    ),
    (
        "the last look comes before the lease is over",
        "            over = stored is not None and self._cannot_come_anymore(stored)\n"
        "            self._refuse_beside_living(former, stored)  # the last look comes after that "
        "moment\n",
        "            self._refuse_beside_living(former, stored)\n"
        "            over = stored is not None and self._cannot_come_anymore(stored)\n",
    ),
    ("a job being cancelled stops the next one", " and job.state != CANCELLING", ""),
    ("a job that has ended stops the next one", "job.state not in TERMINAL and ", ""),
    (
        "a list is all there is",
        "        if stored is not None and stored.record.job_name:\n"
        "            names.add(stored.record.job_name)\n",
        "",
    ),
    (
        "a record is all there is",
        "{job.name for job in self.jobs.find(self.request.parent, former)}",
        "set[str]()",
    ),
)
_FENCE = of(
    "protocol.submission",
    "fence",
    (
        "sending begins without the fence",
        "        return self._write(State.SENDING, claim.generation), began",
        "        return claim, began",
    ),
    (
        "who loses the fence sends as well",
        "        return self._write(State.SENDING, claim.generation), began",
        "        self._try_write(State.SENDING, claim)\n        return claim, began",
    ),
)
_SEND = of(
    "protocol.submission",
    "send",
    (
        "a lost answer is sent again",
        "            return self._adopt(self._settle(), fence), True",
        "            job = self._send_once_allowed(fenced_at)",
    ),
    (
        "an orphan sends",
        "            if not self.around.engine_is_alive():",
        "            if self.around is None:",
    ),
    (
        "a process that was held up sends",
        "            if self.around.monotonic() - fenced_at > self.timing.send_within:",
        "            if self.around is None:",
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
        "                if self._look():  # refused",
        "                if False:  # refused",
    ),
    (
        "any refusal is tried again",
        "            except PermissionDeniedError:",
        "            except NotSubmittedError:",
    ),
    (
        "a refusal leaves the record as if something were on its way",
        "            self._try_write(State.RELEASED, fence)\n",
        "",
    ),
)
_SETTLE = of(
    "protocol.submission",
    "settle",
    (
        "a lost answer ends the run at once",
        "            return self._adopt(self._settle(), fence), True",
        "            raise",
    ),
    (
        "one look settles",
        "            if waited >= self.timing.doubt:",
        "            if waited >= 0.0:",
    ),
    (
        "doubt frees the record",
        "        except NotSubmittedError:\n            self._try",
        "        except (NotSubmittedError, InDoubtError):\n            self._try",
    ),
)
_AUDIT = of(
    "protocol.submission",
    "audit",
    ("no audit", "        job = self._audit(job)\n", ""),
    (
        "the audit keeps the newest",
        "            kept = earliest([*others, created])",
        "            kept = max([*others, created], key=lambda job: job.created)",
    ),
    (
        "the audit cancels nothing",
        "                    self.jobs.cancel(job.name)",
        "                    pass",
    ),
    ("an audit that fails loses the job", "            return created  #", "            raise  #"),
)
_RECORD = of(
    "protocol.submission",
    "record",
    ("DONE is not written", "        self._try_write(State.DONE, fence, job.name)\n", ""),
    (
        "an adopted job is not written down",
        "        self._try_write(State.DONE, stored, job.name)\n",
        "",
    ),
    (
        "a note that cannot be written loses the job",
        "        except (PreconditionFailedError, OperatorError):\n            return\n",
        "        except (PreconditionFailedError, OperatorError):\n            raise\n",
    ),
)

#: All of them, in the order of the protocol.
MUTANTS: tuple[Mutant, ...] = (
    *_CLAIM, *_OUTLAST, *_LOOK, *_TURN, *_TURNS, *_FENCE, *_SEND, *_SETTLE, *_AUDIT, *_RECORD,
    *AROUND,
)  # fmt: skip
