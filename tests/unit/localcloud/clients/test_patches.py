"""What an import of Google's clients is followed by, and filters of logs by their rules."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from localgcp.clients import cloud_sdk, log_filters, python_clients
from localgcp.clients.log_filters import parse
from localgcp.errors import FilterError
from localgcp.home import Home, Ports
from localgcp.home.environment import environment
from localgcp.lifecycle import install_tools


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:2")


def module(**names: Any) -> Any:
    made = ModuleType("made")
    vars(made).update(names)
    return made


def test_credentials_are_those_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    auth = module()
    python_clients._patch_auth(auth)
    credentials, project = auth.default(scopes=["x"])
    assert project is None
    assert (credentials.token, credentials.service_account_email) == ("local", "nobody@localhost")
    credentials.refresh(None)
    assert credentials.with_quota_project("p") is credentials
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    assert auth.default()[1] == "p"


def test_a_key_is_shown_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth

    monkeypatch.setattr(google.auth, "default", lambda: ("nobody", None))
    accounts = module(Credentials=type("Credentials", (), {}))
    python_clients._patch_service_account(accounts)
    assert accounts.Credentials.from_service_account_file("/key.json") == "nobody"
    assert accounts.Credentials.from_service_account_info({"key": "x"}, scopes=[]) == "nobody"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that Python finds."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("patched_here", "left_alone"):
        sys.modules.pop(name, None)


def test_a_module_is_changed_once_it_was_executed(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("patched_here", "left_alone"):
        (made / f"{name}.py").write_text("value = 1\n")
    patched: list[Any] = []

    def patch(found: ModuleType) -> None:
        patched.append((found.__name__, vars(found)["value"]))
        vars(found)["value"] = 2

    finder = python_clients._Patcher({"patched_here": patch, "missing_here": patch})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    found = importlib.import_module("patched_here")
    assert (found.value, importlib.import_module("left_alone").value) == (2, 1)
    assert patched == [("patched_here", 1)]
    assert found.__spec__ is not None
    assert found.__loader__ is found.__spec__.loader is not finder
    assert finder.find_spec("left_alone", None) is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("missing_here")


ENTRY = {"a": "Text", "b": "5", "timestamp": "2026-01-02T03:04:05.250000+00:00"}
KNOWN = ("a", "b", "timestamp")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("a:text", True),
        ("a!=Text", False),
        ("b>4", True),
        ("NOT (a=x OR b=5)", False),
        ('timestamp="2026-01-02T03:04:05.25Z"', True),
    ],
)
def test_an_entry_fits_a_filter_or_not(text: str, fits: bool) -> None:
    assert log_filters.parse(text, KNOWN).test(ENTRY.__getitem__) is fits


def test_the_defaults_are_those_of_the_stack() -> None:
    config = {"gcp:project": "local-training", "gcp:region": "us-central1", "other": 1}
    assert cloud_sdk.defaults(config) == {
        "CLOUDSDK_CORE_PROJECT": "local-training",
        "CLOUDSDK_AI_REGION": "us-central1",
    }
    assert cloud_sdk.defaults({"gcp:project": None}) == {}


def test_gcloud_has_a_home_of_its_own(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write keys for ssh, and settings of Docker and kubectl, into the user's."""
    program = tmp_path / "sdk" / "gcloud"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$HOME;$DOCKER_CONFIG;$KUBECONFIG;$*"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home.bin}:{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    for _ in range(2):  # the second time it lies on PATH itself
        install_tools(home)
        env = environment(home, Ports(1, 2))
        done = subprocess.run(
            ["gcloud", "auth", "a b"], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{home.cloud_sdk / 'home'};;;auth a b\n"
    assert env["DOCKER_CONFIG"] == str(tmp_path)  # docker itself keeps the user's
    program.unlink()
    monkeypatch.setenv("PATH", "/usr/bin-without")
    install_tools(home)
    assert not (home.bin / "gcloud").exists()


LOG_KNOWN = ("a", "b", "timestamp", "insertId")


@pytest.mark.parametrize(
    "text",
    ["a", "a=",  '="1"', 'c="1"', "(", '(a="1"', 'a="1")', 'a="1" AND', 'a="open',
     "timestamp>=now", 'timestamp:"2026"', "(" * 5000, "NOT " * 5000, 'a=~"x"',
     'timestamp>="9999-99-99T99:99:99Z"'],
)  # fmt: skip
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        parse(text, LOG_KNOWN)


def test_what_is_no_severity_has_no_place_among_them() -> None:
    with pytest.raises(FilterError) as told:
        parse("severity>=LOUD", ["severity"])
    assert str(told.value) == "Unparseable filter: 'LOUD' is not a severity."
