"""Which code in a stack's state is the program's own, and what is told of any other."""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest

from vertex_training_cli.deploy.state_code import is_own_provider

JOBS: Final = ("vertex_training.customjob.provider", "CustomJobProvider")


def text(pickled: bytes) -> str:
    return base64.b64encode(pickled).decode()


def pickled(module: str, name: str, end: bytes = b")\x81\x94.", memo: bytes = b"\x94") -> bytes:
    """An instance of a class as protocol 4 has it: made without arguments, and nothing set."""
    names = b"".join(b"\x8c" + bytes([len(each)]) + each.encode() + memo for each in (module, name))
    body = names + b"\x93" + memo + end
    return b"\x80\x04\x95" + len(body).to_bytes(8, "little") + body


OWN: Final = text(pickled(*JOBS))
FOREIGN: Final = text(pickled("os", "system", b"\x8c\x02id\x94\x85\x94R\x94."))


@pytest.mark.parametrize(
    "other",
    [
        FOREIGN,
        text(pickled("vertex_training.serving.provider", "CustomJobProvider")),
        text(pickled(*JOBS, b"(\x8c\x01at\x81\x94.")),  # made with an argument
        text(pickled(*JOBS, b")\x81\x94}\x94\x8c\x01a\x94\x8c\x01b\x94sb.")),  # with an attribute
        text(pickled(*JOBS, b")R\x94.")),  # called
        text(pickled(*JOBS)[:-1]),  # without an end
        text(pickled(*JOBS)[:30]),
        text(b"\x8c\xff"),
        text(b"\x95\x01"),
        text(b"\xff."),
        text(b"."),
        "",
        "no base64",
        f"{OWN[:40]}\n{OWN[40:]}",
        OWN[:-1],
        "é" * 8,
        None,
        OWN.encode(),
        [OWN],
    ],
)
def test_anything_else_is_somebody_elses(other: Any) -> None:
    assert not is_own_provider(other)
