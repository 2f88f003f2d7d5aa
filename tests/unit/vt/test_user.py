"""What a process is given: a name for a user whom the system does not know, streams, proxies."""

import pytest

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
