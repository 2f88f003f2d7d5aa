"""The dynamic provider of ``CustomJob``.

State holds a reference to this module and class: neither may be renamed or moved. The instance
has no attributes, because they would be pickled into state as well; one instance serves four
threads.
"""

from __future__ import annotations

import socket
import sys
import traceback
from types import SimpleNamespace
from typing import Any, ClassVar

from pulumi import dynamic
from pulumi.output import Unknown

from infra.customjob.protocol.ports import (
    DIGEST_LABEL,
    DIGEST_LABEL_LENGTH,
    REQUEST_ID_LABEL,
    IntentStore,
    JobRecord,
    JobService,
    Request,
)
from infra.customjob.protocol.submission import submit
from infra.customjob.protocol.timing import Surroundings, Timing
from infra.customjob.protocol.withdrawal import release, withdraw
from infra.customjob.request.job_file import digest_of
from infra.errors import OperatorError

#: State of a job whose record is gone. It stays in the stack: reported as gone, the next
#: ``pulumi up`` would submit it once more.
RECORD_DELETED = "RECORD_DELETED"
#: What ``submission`` says: with the request, a job's identity.
PLACE = ("project", "region", "stack", "job", "run")
#: Of ``options``, what state keeps: what the end of a job takes. Labels only matter to its start.
KEPT = ("controlBucket", "onDelete")
PROVIDER_KEY = "__provider"


class CustomJobProvider(dynamic.ResourceProvider):
    """check, diff, create, read, update and delete of one CustomJob."""

    # Nothing secret is captured; as a secret, it would cost a key operation for every job.
    serialize_as_secret_always = False

    timing: ClassVar[Timing] = Timing()
    """Bounds of the protocol. Tests that cannot wait for them have a provider class of their own:
    no setting and no variable of the environment shortens them for a real stack."""

    def configure(self, req: dynamic.ConfigureRequest) -> None:  # noqa: ARG002 (the SDK's name)
        """Called once a process; settings of a job come with its inputs."""
        _show_operator_errors_plainly()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        """Guard what the program has checked already. Unknown values pass."""
        failures = [] if _has_unknown(news) else [
            # No property name: the engine would print the value of the one named.
            dynamic.CheckFailure("", reason)
            for reason in _input_problems(news)
        ]  # fmt: skip
        return dynamic.CheckResult(news, failures)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Another request is another job: jobs cannot be updated. Stack labels change nothing."""
        replaces = []
        if isinstance(news.get("requestId"), Unknown) or olds["requestId"] != news["requestId"]:
            # State keeps no copy of the request; where nothing else has changed, that has.
            replaces = ["submission" if _changed(olds, news, "submission") else "request"]
        changes = (
            bool(replaces)
            or _changed(olds, news, PROVIDER_KEY)
            or olds["options"] != _kept(news["options"])
        )
        return dynamic.DiffResult(changes=changes, replaces=replaces, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Submit the job, or adopt the one that exists. Returns at once, it never waits for it."""
        place = props["submission"]
        request = Request(
            parent=f"projects/{place['project']}/locations/{place['region']}",
            stack=place["stack"],
            job=place["job"],
            run=int(place["run"]),
            request_id=props["requestId"],
            body=props["request"],
            digest=digest_of(props["request"]),
            labels=_labels(props),
        )
        around = Surroundings(engine_is_alive=_engine_is_alive)
        record, _adopted = submit(request, _service(props), _intents(props), self.timing, around)
        return dynamic.CreateResult(record.name, _outputs(props, record))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Refresh the job's state. Never returns inputs: a difference would mean to resubmit."""
        record = _service(props).get(id_)
        state = RECORD_DELETED if record is None else record.state
        return dynamic.ReadResult(id_, {**_without_provider(props), "state": state})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Only what is kept in state can change; the job itself is left alone."""
        changed = {"options": _kept(news["options"])}
        return dynamic.UpdateResult({**_without_provider(olds), **changed})

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Cancel the job, wait for its end within a bound; its record is kept unless asked."""
        delete_record = props["options"]["onDelete"] == "delete"
        withdraw(_service(props), id_, delete_record=delete_record)
        release(_intents(props), props["requestId"], id_)


def _service(props: dict[str, Any]) -> JobService:
    from infra.customjob.google.job_service import connect  # loads Google's client

    return connect(props["submission"]["project"], props["submission"]["region"])


def _intents(props: dict[str, Any]) -> IntentStore:
    from infra.customjob.google.intent_store import connect  # loads Google's client

    return connect(props["submission"]["project"], props["options"]["controlBucket"])


#: The SDK's module that an engine starts as a provider's process: ``python -m pulumi.dynamic``.
PROCESS = "pulumi.dynamic.__main__"


def _engine_is_alive() -> bool:
    """Whether the engine that started this process still listens; its address is our argument.

    A provider outlives a killed engine and goes on with what it was doing. What it has not sent
    yet it must not send: the next ``pulumi up`` has begun, or will.
    """
    started = getattr(sys.modules["__main__"], "__spec__", None)
    if started is None or started.name != PROCESS:
        return True  # no engine's process: a test, or a program that uses the provider itself
    host, _, port = sys.argv[-1].rpartition(":")
    if not port.isdecimal():
        return True  # an SDK that passes the address otherwise
    try:
        socket.create_connection((host or "127.0.0.1", int(port)), timeout=2.0).close()
    except OSError:
        return False
    return True


def _labels(props: dict[str, Any]) -> dict[str, str]:
    place = props["submission"]
    return {
        **props["options"]["labels"],  # first: what a job is found by is no stack file's to choose
        "stack": place["stack"],
        REQUEST_ID_LABEL: props["requestId"],
        DIGEST_LABEL: digest_of(props["request"])[:DIGEST_LABEL_LENGTH],
        "job": place["job"],
        "run": str(int(place["run"])),
    }


def _outputs(props: dict[str, Any], record: JobRecord) -> dict[str, Any]:
    """What state keeps of a job: enough to find, refresh and end it, and nothing twice."""
    return {
        "state": record.state,
        "submission": props["submission"],
        "requestId": props["requestId"],
        "options": _kept(props["options"]),
    }


def _kept(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in KEPT}


def _changed(olds: dict[str, Any], news: dict[str, Any], key: str) -> bool:
    return olds.get(key) != news.get(key)


def _without_provider(props: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in props.items() if key != PROVIDER_KEY}


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_unknown(item) for item in value.values())
    return isinstance(value, Unknown)


def _input_problems(news: dict[str, Any]) -> list[str]:
    """What no program of ours would pass, but a careless one could."""
    place, options = news.get("submission") or {}, news.get("options") or {}
    missing = [
        *(f"submission.{key}" for key in PLACE if not place.get(key)),
        *(key for key in ("request", "requestId") if not news.get(key)),
        *(f"options.{key}" for key in KEPT if not options.get(key)),
    ]
    return [f"CustomJob: {', '.join(missing)} must not be empty"] if missing else []


def _show_operator_errors_plainly() -> None:
    """Let the SDK's provider process print our own errors without a traceback.

    It answers every exception with ``traceback.format_exc()``. This swaps that one name in the
    process's main module, so that an error meant for a person reads like one; all others keep
    their traceback.
    """

    def format_exc(*args: Any, **kwargs: Any) -> str:
        error = sys.exc_info()[1]
        if isinstance(error, OperatorError):
            return str(error)
        return traceback.format_exc(*args, **kwargs)

    main = sys.modules["__main__"]
    if getattr(main, "traceback", None) is traceback:
        main.traceback = SimpleNamespace(format_exc=format_exc)  # type: ignore[attr-defined]
