"""What a cloud answers to reads over REST, without a server."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import Store
from localgcp.reads.serving import Reads

PROJECT = "local-p1"


class RestCloud:
    """Answers of a cloud with nothing in it, until a test puts something there."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "cloud.sqlite")
        self.faults = FaultTable(folder / "faults.sqlite")
        self.stopping = threading.Event()
        self.reads = Reads(self.store, self.faults, self.stopping)

    def get(self, target: str) -> Any:
        return json.loads(self.reads.answer("GET", target, b"") or b"null")

    def refusal(self, verb: str, target: str, body: bytes = b"") -> tuple[int, str]:
        with pytest.raises(RefusedRequestError) as told:
            self.reads.answer(verb, target, body)
        return told.value.status, str(told.value)

    def put(self, type_: str, id_: str, owner: str = PROJECT, /, **outputs: Any) -> None:
        self.store.put(type_, id_, owner, {}, outputs)

    def fault(self, service: str, kind: str, **more: Any) -> None:
        self.faults.add(Fault.parse(service=service, kind=kind, times=0, **more))
