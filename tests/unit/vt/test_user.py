"""What a process is given: a name for a user whom the system does not know, streams, proxies."""

import io

import pytest

from vertex_training_cli import process
from vertex_training_cli.process import set_user_variables


@pytest.fixture
def unknown(monkeypatch):
    def nobody(_number):
        raise KeyError("uid not found")

    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.setattr("os.getuid", lambda: 54321)


@pytest.mark.usefixtures("unknown")
def test_an_unknown_user_is_called_by_the_number():
    environment = {"HOME": ""}
    set_user_variables(environment)
    assert environment == {"USER": "54321", "HOME": "/"}


@pytest.mark.usefixtures("unknown")
def test_what_is_set_stays():
    environment = {"USER": "runner", "HOME": "/work"}
    set_user_variables(environment)
    assert environment == {"USER": "runner", "HOME": "/work"}


def test_a_known_user_is_left_alone():
    environment = {}
    set_user_variables(environment)
    assert environment == {}


@pytest.mark.usefixtures("unknown")
def test_streams_and_variables_are_prepared_for_every_command(monkeypatch):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
    for name, stream in zip(("stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(process.sys, name, stream)
    environment = {"https_proxy": "http://gateway.example:3128"}
    monkeypatch.setattr(process.os, "environ", environment)
    process.prepare()
    print("gr\u00f6\u00dfe", flush=True)
    assert streams[0].buffer.getvalue() == b"gr??e\n"
    assert [each.errors for each in streams] == ["replace"] * 2
    assert environment == {
        "https_proxy": "http://gateway.example:3128", "no_proxy": "127.0.0.1,localhost",
        "NO_PROXY": "127.0.0.1,localhost", "USER": "54321", "HOME": "/",
    }  # fmt: skip
