"""The HTTP proxy of Cloud Storage: checks requests, applies faults, calls the emulator."""

from __future__ import annotations

import http.client
import io
import json
import re
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from localgcp.access.callers import RefusalLog
from localgcp.access.gate import reset_connection
from localgcp.access.web import LocalHandler, LocalServer, check_page, is_forwarded
from localgcp.errors import ExchangeEndedError, RefusedRequestError
from localgcp.faults.model import Kind, Service
from localgcp.faults.table import Entry, FaultTable
from localgcp.storage import emulator as storage
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.requests import (
    HEALTHCHECK,
    Answer,
    StorageRequest,
    accepted,
    condition_source,
    is_content,
    unmet_condition,
)
from localgcp.storage.uploads import Insertion, UploadSessions

_BLOCK: Final = 1 << 16
_JSON: Final = [("Content-Type", "application/json")]
#: Maximum bytes of a body in memory. Larger bodies are stored in temporary files.
_SPOOLED: Final = 8 << 20
#: The service's answer to an unmet precondition.
_UNMET: Final = json.dumps({"error": {
    "code": 412,
    "message": "At least one of the pre-conditions you specified did not hold.",
    "errors": [{"reason": "conditionNotMet", "locationType": "header", "location": "If-Match"}],
}}).encode()  # fmt: skip
#: JSON API, media and upload paths (docs.cloud.google.com/storage/docs/request-endpoints).
_PATH: Final = re.compile(
    r"/(?:(?P<upload>upload|resumable/upload)/)?(?P<download>download/)?storage/v1"
    r"(?:/b(?:/(?P<bucket>[^/]+)(?:/o(?:/(?P<object>.+))?(?P<list>/?))?)?)?$"
)


class _Exchange(LocalHandler):
    refusals = RefusalLog("storage")

    @property
    def front(self) -> StorageFront:
        server: Any = self.server
        return server.front

    def exchange(self) -> None:
        with ExitStack() as self._files:
            content = self._new_file()
            try:
                self._forward_with_faults(self._accepted(content), content)
            except RefusedRequestError as error:
                self._refuse(error)

    def _new_file(self) -> IO[bytes]:
        return self._files.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED))

    def _accepted(self, content: IO[bytes]) -> StorageRequest:
        sent = self.sent_headers()
        headers = {name: ", ".join(values) for name, values in sent.items()}
        request = StorageRequest(self.command, self.path, headers)
        try:
            check_page(sent, self.front.port)
            named = not is_content(request)
        except RefusedRequestError:
            for _ in self.body_blocks():
                pass  # some clients read the answer only after sending the whole body
            raise
        for block in self.body_blocks():
            content.write(block)
        size = content.tell()
        content.seek(0)
        if not named:
            return accepted(request)
        if size > 64 << 20:
            raise RefusedRequestError(413, "the request is larger than 64 MiB.")
        return accepted(replace(request, body=content.read()))

    def _refuse(self, error: RefusedRequestError) -> None:
        body = json.dumps({"error": {"code": error.status, "message": f"local cloud: {error}"}})
        self.close_connection = True
        self._answer(Answer(error.status, _JSON, body.encode()))

    def _forward_with_faults(self, request: StorageRequest, content: IO[bytes]) -> None:
        method, place = describe(request.verb, request.target, request.body or b"")
        self.front.before(request)
        table = self.front.table
        taken: list[Entry] = []
        if request.target != HEALTHCHECK:
            taken = table.count_call(Service.STORAGE, method, lambda _: [place], lambda _: True)
        for entry in taken:
            if entry.fault.when == "before":
                self._apply_fault(entry, f"{method} {place}")
        answer = self._forward_upload(request, content)
        for entry in reversed(taken):
            if entry.fault.when == "after":
                self._apply_fault(entry, f"{method} {place}")
        cut = any(entry.fault.kind is Kind.TRUNCATE for entry in taken)
        self._answer(answer, cut=cut)

    def _apply_fault(self, entry: Entry, call: str) -> None:
        # Raises ExchangeEndedError for a fault that ends the exchange.
        match entry.fault.kind:
            case Kind.DROP:
                while not self.front.stopping.is_set():  # until the caller closes the connection
                    readable, _, _ = select.select([self.connection], [], [], 0.1)
                    if readable and not self.connection.recv(1, socket.MSG_PEEK):
                        break
                raise ExchangeEndedError
            case Kind.RESET:
                reset_connection(self.connection)
                raise ExchangeEndedError
            case _:
                if not self.front.table.meet(entry, call, self.front.stopping, self._error):
                    raise ExchangeEndedError

    def _error(self, code: str, text: str) -> ExchangeEndedError:
        error = {"code": int(code), "message": text, "errors": [{"message": text}]}
        self._answer(Answer(int(code), _JSON, json.dumps({"error": error}).encode()))
        return ExchangeEndedError()

    def _forward_upload(self, request: StorageRequest, content: IO[bytes]) -> Answer:
        path = request.target.partition("?")[0]
        # The emulator does not have IAM policies.
        if re.fullmatch(r"/storage/v1/b/[^/?]+/iam(/testPermissions)?", path):
            policies = self.front.policies(request.verb, request.target, request.body or b"")
            if policies is not None:
                return Answer(200, _JSON, policies)
        uploads = self.front.uploads
        if bucket := uploads.begins(request):
            look = self._call_emulator(StorageRequest("GET", f"/storage/v1/b/{bucket}", {}))
            return uploads.begin(request, self.front.url) if look.status == 200 else look
        with uploads.lock(request):
            reply = uploads.answer(request, content)
            if isinstance(reply, Insertion):
                request = StorageRequest("POST", reply.target, reply.headers)
                answer = self._call_emulator(request, reply.body(), reply.size)
                uploads.finish(reply, answer.status, _content(answer))
                return answer
        return reply or self._forward(request, content)

    def _forward(self, request: StorageRequest, content: IO[bytes]) -> Answer:
        if (source := condition_source(request)) is None:
            return self._pass_on(request, content)
        with self.front.conditions:
            look = self._call_emulator(StorageRequest("GET", source, {}))
            if look.status != 200:
                return look
            unmet = unmet_condition(request, json.loads(_content(look)))
            if unmet is None:
                return self._pass_on(request, content)
        return Answer(unmet, _JSON, _UNMET if unmet == 412 else b"")

    def _pass_on(self, request: StorageRequest, content: IO[bytes]) -> Answer:
        if request.verb in ("GET", "HEAD", "DELETE", "OPTIONS"):
            return self._call_emulator(request)
        if request.body is not None:
            return self._call_emulator(request, request.body)
        size = content.seek(0, 2)
        content.seek(0)
        return self._call_emulator(request, content, size)

    def _call_emulator(
        self,
        request: StorageRequest,
        body: bytes | IO[bytes] | Iterator[bytes] | None = None,
        size: int | None = None,
    ) -> Answer:
        headers = {name: text for name, text in request.headers.items() if is_forwarded(name)}
        headers["Host"] = f"127.0.0.1:{self.front.port}"
        if size is not None:
            headers["Content-Length"] = str(size)
        connection = self.front.emulator.connection(300.0)
        target = storage.layout_source(request.verb, request.target) or request.target
        try:
            connection.request(request.verb, target, body, headers)
            response = connection.getresponse()
            status, answer_headers = response.status, response.getheaders()
            if request.verb == "DELETE" or target != request.target:
                emulated = status, answer_headers, response.read()
                return storage.completed(request.verb, request.target, emulated)
            file = self._new_file()
            shutil.copyfileobj(response, file, _BLOCK)
            return Answer(status, answer_headers, file)
        except (OSError, http.client.HTTPException) as error:
            text = f"the storage emulator did not answer: {type(error).__name__}: {error}"
            return Answer(502, [("Content-Type", "text/plain")], text.encode())
        finally:
            connection.close()

    def _answer(self, answer: Answer, *, cut: bool = False) -> None:
        status, headers, body = answer
        self.send_response_only(status)
        for name, value in headers:
            if is_forwarded(name):
                self.send_header(name, value)
        file = io.BytesIO(body) if isinstance(body, bytes) else body
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if self.command == "HEAD":
            self.send_header("Content-Length", dict(headers).get("Content-Length", "0"))
        elif status >= 200 and status not in (204, 304):
            self.send_header("Content-Length", str(size))
        self.end_headers()
        if self.command != "HEAD" and cut:
            self.wfile.write(file.read(size // 2))
        elif self.command != "HEAD":
            shutil.copyfileobj(file, self.wfile, _BLOCK)
        if cut:
            raise ExchangeEndedError


def _content(answer: Answer) -> bytes:
    if isinstance(answer.body, bytes):
        return answer.body
    answer.body.seek(0)
    return answer.body.read()


def describe(verb: str, path: str, body: bytes = b"") -> tuple[str, str]:
    """Return the name of the API's method, and BUCKET/OBJECT or a part of it."""
    parts = urlsplit(path)
    query = parse_qs(parts.query)
    match = _PATH.match(parts.path)
    if match is None:  # XML API and signed URLs: /BUCKET/OBJECT
        return ("objects.download" if verb == "GET" else "objects.other"), unquote(parts.path[1:])
    bucket = unquote(match["bucket"] or "")
    name = unquote(match["object"] or "")
    if match["upload"] or (verb in ("POST", "PUT") and not name and "/o" in parts.path):
        sent = re.search(rb'"name":\s*("(?:[^"\\]|\\.)*")', body[:8192])
        name = query["name"][0] if query.get("name") else json.loads(sent[1]) if sent else ""
        return "objects.insert", f"{bucket}/{name}"
    if name:
        media = query.get("alt") == ["media"] or match["download"]
        reads = "objects.download" if media else "objects.get"
        method = {"GET": reads, "HEAD": reads, "DELETE": "objects.delete"}.get(verb)
        return method or "objects.other", f"{bucket}/{name}"
    return ("objects.list" if parts.path.rstrip("/").endswith("/o") else "buckets"), bucket


class StorageFront:
    """Cloud Storage at one port. Only one thread may start, reconcile and stop the front."""

    def __init__(
        self,
        emulator: StorageEmulator,
        table: FaultTable,
        free_port: Callable[[], int],
        before: Callable[[StorageRequest], None] = lambda _request: None,
    ) -> None:
        self.emulator, self.table, self.before = emulator, table, before
        self.policies: Callable[[str, str, bytes], bytes | None] = lambda *_: None
        """Answers a request for an IAM policy (method, target, body), or returns None."""
        self._free_port = free_port
        self._server: LocalServer | None = None
        self.stopping = threading.Event()
        self.uploads = UploadSessions(emulator.root.with_name("uploads"))
        #: Lock for requests with preconditions.
        self.conditions = threading.Lock()
        self.port = 0

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, port: int) -> None:
        """Start to serve at ``port``. Raises LocalCloudError."""
        self.port = port
        self.emulator.start(self._free_port(), port)
        self.uploads.remove_expired()
        self._server = LocalServer(port, _Exchange, self)

    def reconcile(self) -> None:
        """Restart the emulator if it ended."""
        if not self.emulator.alive():
            print("the object storage emulator ended; restarting the emulator")
            self.emulator.stop()
            self.emulator.start(self.emulator.port, self.port)

    def stop(self) -> None:
        """Stop the proxy and the emulator, and end held calls."""
        self.stopping.set()
        if self._server is not None:
            self._server.stop()
            self._server = None
        self.emulator.stop()
