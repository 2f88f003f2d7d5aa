"""The protocol with one step or guard left out at a time. Each must be noticed by a test.

A mutant is an exact text of the source and what stands in its place. A text that is not there
exactly once is an error, so mutants cannot outlive what they mutate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


class StaleMutant(Exception):
    """The source no longer contains, exactly once, what the mutant replaces."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``module`` without ``step``: ``old`` is replaced by ``new``."""

    name: str
    step: str
    module: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        """The file that is mutated; it is only read."""
        return ROOT / "infra" / "customjob" / f"{self.module}.py"

    def source(self) -> str:
        """The mutated source. Raises StaleMutant."""
        source = self.path.read_text()
        if (count := source.count(self.old)) != 1:
            raise StaleMutant(f"{self.name}: its text stands {count} times in {self.path.name}")
        return source.replace(self.old, self.new)


def _submission(step: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    return [Mutant(name, step, "submission", old, new) for name, old, new in changes]


def _of(module: str, step: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    return [Mutant(name, step, module, old, new) for name, old, new in changes]


_CLAIM = _submission(
    "claim",
    (
        "a record is overwritten whoever wrote it last",
        "            return self.intents.write(record, generation)",
        "            try:\n"
        "                return self.intents.write(record, generation)\n"
        "            except Conflict:\n"
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
_OUTLAST = _submission(
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
        "                raise Conflict\n",
        "",
    ),
)
_LOOK = _submission(
    "look",
    (
        "nobody looks before sending",
        "                if found := self._look():\n"
        "                    return self._adopt(found, claim), True\n",
        "",
    ),
    (
        "a list is believed as it is",
        "        return [now for job in found if (now := self.jobs.get(job.name)) is not None]",
        "        return found",
    ),
)
_FENCE = _submission(
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
_SEND = _submission(
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
        "any refusal is tried again",
        "            except NotAllowed:",
        "            except NotSubmitted:",
    ),
    (
        "a refusal leaves the record as if something were on its way",
        "            self._try_write(State.RELEASED, fence)\n",
        "",
    ),
)
_SETTLE = _submission(
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
        "        except NotSubmitted:\n            self._try",
        "        except (NotSubmitted, InDoubt):\n            self._try",
    ),
)
_AUDIT = _submission(
    "audit",
    ("no audit", "        job = self._audit(job)\n", ""),
    (
        "the audit keeps the newest",
        "            kept = earliest([*live, created])",
        "            kept = max([*live, created], key=lambda job: job.created)",
    ),
    (
        "the audit cancels nothing",
        "                    self.jobs.cancel(job.name)",
        "                    pass",
    ),
    ("an audit that fails loses the job", "            return created  #", "            raise  #"),
)
_RECORD = _submission(
    "record",
    ("DONE is not written", "        self._try_write(State.DONE, fence, job.name)\n", ""),
    (
        "an adopted job is not written down",
        "        self._try_write(State.DONE, stored, job.name)\n",
        "",
    ),
    (
        "a note that cannot be written loses the job",
        "        except (Conflict, OperatorError):\n            return\n",
        "        except (Conflict, OperatorError):\n            raise\n",
    ),
)
_ADOPT = _of(
    "adoption",
    "adopt",
    ("digests are not compared", "    if other:", "    if other is None:"),
    ("an ended run is adopted", "if job.state not in FAILED and ", "if "),
    ("a run being cancelled is adopted", " and job.state != CANCELLING", ""),
    ("the newest job is adopted", "    return min(found", "    return max(found"),
)
_WITHDRAW = _of(
    "withdrawal",
    "withdraw",
    ("nothing is cancelled", "        jobs.cancel(name)\n", ""),
    ("its end is not waited for", "    while record is not None and", "    while False and"),
    (
        "a job that does not end is given up silently",
        "        if waited >= bound:\n",
        "        if waited >= bound:\n            return\n",
    ),
    ("records are deleted unasked", "record is not None and delete_record:", "record is not None:"),
    ("a record in use is freed", "record.state is not State.DONE", "record is None"),
    (
        "another job's record is freed",
        "    if stored.record.job_name != name:",
        "    if name is None:",
    ),
    (
        "a freed record forgets its job",
        "state=State.RELEASED, owner",
        "state=State.RELEASED, job_name='', owner",
    ),
    (
        "who loses the write fails",
        "    except Conflict:\n        return  #",
        "    except Conflict:\n        raise  #",
    ),
)
_PROVIDER = _of(
    "provider",
    "provider",
    (
        "the record is freed before the job has ended",
        '        withdraw(_service(props), id_, delete_record=props["onDelete"] == "delete")\n'
        '        release(_intents(props), props["requestId"], id_)',
        '        release(_intents(props), props["requestId"], id_)\n'
        '        withdraw(_service(props), id_, delete_record=props["onDelete"] == "delete")',
    ),
    (
        "the record is never freed",
        '        release(_intents(props), props["requestId"], id_)\n',
        "",
    ),
    (
        "nobody asks for the engine",
        "Surroundings(engine_is_alive=_engine_is_alive)",
        "Surroundings()",
    ),
    (
        "a forgotten job leaves the stack",
        "        return dynamic.ReadResult(id_, {",
        "        if record is None:\n            return dynamic.ReadResult('', {})\n"
        "        return dynamic.ReadResult(id_, {",
    ),
    (
        "a job is sent without its request id",
        "        REQUEST_ID_LABEL: props",
        "        'x': props",
    ),
    (
        "a changed request is no change",
        "            replaces = [key for",
        "            replaces = [] and [key for",
    ),
)
_CLIENT = _of(
    "client",
    "error classes",
    (
        "UNAVAILABLE proves that nothing was created",
        '    "UNIMPLEMENTED": ',
        '    "UNAVAILABLE": "again",\n    "UNIMPLEMENTED": ',
    ),
    (
        "an answer without a name is an answer",
        "        if not job.name:",
        "        if job is None:",
    ),
    (
        "a missing right is a refusal like any other",
        'NotAllowed if code == "PERMISSION_DENIED" else NotSubmitted',
        "NotSubmitted",
    ),
)
_STORE = _of(
    "intent_store",
    "compare-and-swap",
    (
        "a record is written without its precondition",
        "                if_generation_match=generation,\n",
        "",
    ),
)

#: All of them, in the order of the protocol.
MUTANTS: tuple[Mutant, ...] = (
    *_CLAIM, *_OUTLAST, *_LOOK, *_FENCE, *_SEND, *_SETTLE, *_AUDIT, *_RECORD,
    *_ADOPT, *_WITHDRAW, *_PROVIDER, *_CLIENT, *_STORE,
)  # fmt: skip
