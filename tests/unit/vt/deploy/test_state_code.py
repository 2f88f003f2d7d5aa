"""Which code in a stack's state is the program's own, and what is told of any other."""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest

from vertex_training.errors import Problem
from vertex_training_cli.deploy.state_code import is_own_provider, state_problems

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


@pytest.mark.parametrize(("characters", "own"), [(500, True), (504, False)])
def test_a_text_of_more_than_500_characters_is_not_read(characters: int, own: bool) -> None:
    made = pickled(*JOBS)
    fill = b"\x94" * (characters // 4 * 3 - len(made))  # which mean nothing
    long = text(made[:-1] + fill + b".")
    assert (len(long), is_own_provider(long)) == (characters, own)


URN: Final = "urn:pulumi:dev::training::vertex-training:index:Job$x:y:Z::train"
HINT: Final = (
    "find out who wrote the state (`gcloud storage ls -a`), and put an older generation back"
)
DYNAMIC: Final = "pulumi-python:dynamic/vertex:CustomJob"
CODE: Final = "it holds the code of another provider than the program's"
PLUGIN: Final = "it names a plugin that the program does not use"
URL, PARAMETERS = (
    f"{key}: it names a program to download" for key in ("pluginDownloadURL", "parameterization")
)


@pytest.mark.parametrize(
    ("type_", "more", "told"),
    [
        (DYNAMIC, {"inputs": {"__provider": OWN}, "outputs": {"__provider": OWN}}, []),
        (DYNAMIC, {"inputs": {"__provider": OWN}, "outputs": None}, []),
        (DYNAMIC, {"inputs": {"__provider": FOREIGN}, "outputs": {"__provider": OWN}},
         [(CODE, "")]),
        (DYNAMIC, {"inputs": {"__provider": OWN}, "outputs": {"__provider": FOREIGN}},
         [(CODE, "")]),
        (DYNAMIC, {"inputs": {"__provider": None}}, [(CODE, "")]),
        (DYNAMIC, {"inputs": {}, "outputs": {}}, [(CODE, "")]),
        (DYNAMIC, {}, [(CODE, "")]),
        # what is only read has no provider of its own, and if it has one all the same, that counts
        (DYNAMIC, {"external": True}, []),
        (DYNAMIC, {"external": True, "inputs": {"__provider": FOREIGN}}, [(CODE, "")]),
        ("gcp:storage/bucket:Bucket", {"inputs": {"name": "a"}, "outputs": {"name": "a"}}, []),
        ("gcp:storage/bucket:Bucket", {"outputs": {"__provider": FOREIGN}}, [(CODE, "")]),
        ("gcp:storage/bucket:Bucket", {"inputs": {"pluginDownloadURL": "https://x"}}, []),
        ("pulumi:providers:gcp", {"inputs": {"project": "a", "version": "9.1.0"}}, []),
        ("pulumi:providers:pulumi-python", {}, []),
        ("pulumi:providers:random", {}, [(PLUGIN, "random")]),
        ("pulumi:providers:gcp-x", {}, [(PLUGIN, "gcp-x")]),
        ("pulumi:providers:gcp", {"inputs": {"pluginDownloadURL": "https://x"}}, [(URL, "")]),
        ("pulumi:providers:gcp", {"outputs": {"pluginDownloadURL": "https://x"}}, [(URL, "")]),
        ("pulumi:providers:gcp", {"inputs": {"pluginDownloadURL": ""}}, []),
        ("pulumi:providers:gcp", {"inputs": {"__internal": {"pluginDownloadURL": "https://x"}}},
         [(URL, "")]),
        ("pulumi:providers:gcp", {"inputs": {"a": ["b", [{"c": {"parameterization": {"n": 1}}}]]}},
         [(PARAMETERS, "")]),
        ("pulumi:providers:x",
         {"inputs": {"parameterization": 1, "pluginDownloadURL": "u"}},
         [(PLUGIN, "x"), (URL, ""), (PARAMETERS, "")]),
    ],
)  # fmt: skip
def test_code_of_others_in_the_state_is_told_with_the_resource_that_has_it(
    type_: str, more: dict[str, Any], told: list[tuple[str, str]]
) -> None:
    resource = {"urn": URN, "type": type_, **more}
    found = [Problem(what, value, HINT, ("state", "train")) for what, value in told]
    assert state_problems({"resources": [resource]}) == found
    pending = [{"type": "creating", "resource": resource}]
    assert state_problems({"resources": None, "pending_operations": pending}) == found
    assert state_problems({"resources": [resource], "pending_operations": pending}) == found * 2


def test_a_state_without_resources_runs_nothing() -> None:
    assert state_problems({}) == []
    assert state_problems({"resources": None, "pending_operations": None}) == []
    assert state_problems({"resources": [{}], "pending_operations": [{}, {"resource": None}]}) == []
