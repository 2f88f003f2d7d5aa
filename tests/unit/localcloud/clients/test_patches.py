"""What an import of Google's clients is followed by, and filters of logs by their rules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from localgcp.clients import log_filters, python_clients
from localgcp.errors import FilterError


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:2")


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("aiplatform.googleapis.com", "127.0.0.1:1"),
        ("us-central1-aiplatform.googleapis.com:443", "127.0.0.1:1"),
        ("dns:///us-central1-aiplatform.googleapis.com", "127.0.0.1:1"),
        ("https://logging.googleapis.com/v2/x", "127.0.0.1:1"),
        ("1.us-central1-2.prediction.vertexai.goog", "127.0.0.1:1"),
        ("storage.googleapis.com", "127.0.0.1:2"),
        ("https://storage.googleapis.com/b", "127.0.0.1:2"),
        ("bucket.storage.googleapis.com", "127.0.0.1:2"),
        ("mystorage.googleapis.com", "127.0.0.1:1"),
        ("example.com", ""),
        ("googleapis.com.example.com", ""),
        ("127.0.0.1:9", ""),
    ],
)
def test_googles_hosts_are_at_this_machines_addresses(host: str, local: str) -> None:
    assert python_clients.local_host(host) == local


def test_without_an_address_a_host_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    assert python_clients.local_host("logging.googleapis.com") == ""
    assert python_clients.local_host("storage.googleapis.com") == ""


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("https://storage.googleapis.com/b/o?x=1#y", "http://127.0.0.1:2/b/o?x=1#y"),
        ("https://logging.googleapis.com:443/v2", "http://127.0.0.1:1/v2"),
        ("https://example.com/a?b", "https://example.com/a?b"),
    ],
)
def test_a_url_of_googles_keeps_all_but_its_host(url: str, local: str) -> None:
    assert python_clients.local_url(url) == local


def test_pythons_find_the_file_first(tmp_path: Path) -> None:
    folder = str(tmp_path / "python")
    assert python_clients.environment(tmp_path, {}) == {"PYTHONPATH": folder}
    assert python_clients.environment(tmp_path, {"PYTHONPATH": "/a:/b"}) == {
        "PYTHONPATH": f"{folder}:/a:/b"
    }
    python_clients.write_settings(tmp_path)
    python_clients.write_settings(tmp_path)
    text = (tmp_path / "python" / "sitecustomize.py").read_text()
    assert text == (
        "# Written at each start of the local shell.\nimport os\nimport runpy\n\n"
        f"runpy.run_path({str(Path(python_clients.__file__).resolve())!r}, "
        "run_name='sitecustomize',\n"
        "               init_globals={'FOLDER': os.path.dirname(__file__)})\n"
    )


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


def test_a_channel_to_google_comes_here_without_credentials() -> None:
    def secure(*args: Any, **options: Any) -> Any:
        return "secure", args, options

    def insecure(*args: Any, **options: Any) -> Any:
        return "insecure", args, options

    grpc = module(secure_channel=secure, insecure_channel=insecure)
    python_clients._patch_grpc(grpc)
    assert grpc.secure_channel("logging.googleapis.com:443", "c", [1], compression=2) == (
        "insecure", ("127.0.0.1:1", [1]), {"compression": 2},
    )  # fmt: skip
    assert grpc.secure_channel("example.com", "c", [1]) == ("secure", ("example.com", "c", [1]), {})


def test_requests_to_google_come_here() -> None:
    class HTTPAdapter:
        def send(self, request: Any, *args: Any, **options: Any) -> Any:
            return request.url, args, options

    requests = module(HTTPAdapter=HTTPAdapter)
    python_clients._patch_requests(requests)
    sent = SimpleNamespace(url="https://storage.googleapis.com/b")
    assert requests.HTTPAdapter().send(sent, 1, timeout=2) == (
        "http://127.0.0.1:2/b", (1,), {"timeout": 2},
    )  # fmt: skip

    class Http:
        def request(self, uri: str, *args: Any, **options: Any) -> Any:
            return uri, args, options

    httplib2 = module(Http=Http)
    python_clients._patch_httplib2(httplib2)
    assert httplib2.Http().request("https://logging.googleapis.com/x", "GET", body=b"") == (
        "http://127.0.0.1:1/x", ("GET",), {"body": b""},
    )  # fmt: skip


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
        ('a="Text"', True),
        ('a="text"', False),
        ("a:text", True),
        ("a:EX", True),
        ("a:y", False),
        ("a!=Text", False),
        ("a!=x", True),
        ("b>4", True),
        ("b>5", False),
        ("b>=5", True),
        ("b<5", False),
        ("b<=5", True),
        ("a=Text b=5", True),
        ("a=Text b=6", False),
        ("a=Text AND b=6", False),
        ("a=Text OR b=6", True),
        ("a=x OR b=6", False),
        ("NOT a=x", True),
        ("NOT a=Text", False),
        ("NOT (a=x OR b=5)", False),
        ("a=x OR (a=Text AND b=5)", True),
        ("a=x AND b=6 OR b=5", True),
        ('timestamp="2026-01-02T03:04:05.25Z"', True),
        ('timestamp!="2026-01-02T03:04:05.25Z"', False),
        ('timestamp>"2026-01-02T03:04:05.2499999Z"', True),
        ('timestamp<="2026-01-02T04:04:05.250+01:00"', True),
        ('timestamp<"2026-01-02T03:04:05.250Z"', False),
    ],
)
def test_an_entry_fits_a_filter_or_not(text: str, fits: bool) -> None:
    assert log_filters.parse(text, KNOWN).test(ENTRY.__getitem__) is fits


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("", {}),
        ('a="x y" b=1', {"a": "x y", "b": "1"}),
        (r'a="x\"y\\z"', {"a": r'x"y\z'}),
        ("a=x (b=1)", {"a": "x", "b": "1"}),
        ("a=x OR b=1", {}),
        ("NOT a=x", {}),
        ("a:x b!=1 b>0", {}),
        ("(a=x OR a=y) b=1", {"b": "1"}),
    ],
)
def test_what_every_entry_has_is_known(text: str, equal: dict[str, str]) -> None:
    assert log_filters.parse(text, KNOWN).equal == equal


SIGNS = "Unparseable filter: a comparison is FIELD SIGN VALUE."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=", SIGNS),
        ("a", SIGNS),
        ('"a"=x', SIGNS),
        ("a=x OR", SIGNS),
        ("c=x", "Unparseable filter: 'c' (the local cloud knows few)."),
        ("a=~x", "Unparseable filter: the local cloud knows no regular expressions."),
        ("a!~x", "Unparseable filter: the local cloud knows no regular expressions."),
        ("(a=x", "Unparseable filter: a parenthesis is open."),
        ("a=x)", "Unparseable filter: 'a=x)' (the local cloud knows few)."),
        ('a="x', "Unparseable filter: '\"x'."),
        ("timestamp:x", "Unparseable filter: 'x' is no time."),
        ('timestamp:"2026-01-02T03:04:05Z"', "Unparseable filter: timestamp:."),
        ("timestamp>2026", "Unparseable filter: '2026' is no time."),
    ],
)
def test_what_is_half_understood_is_refused(text: str, said: str) -> None:
    with pytest.raises(FilterError) as refused:
        log_filters.parse(text, KNOWN)
    assert str(refused.value) == said


@pytest.mark.parametrize("form", ["({})", "NOT {}"])
@pytest.mark.parametrize(("levels", "well"), [(20, True), (21, False)])
def test_a_filter_has_a_depth(form: str, levels: int, well: bool) -> None:
    text = "a=x"
    for _ in range(levels):
        text = form.format(text)
    read: Callable[[], Any] = lambda: log_filters.parse(text, KNOWN)  # noqa: E731
    if well:
        read()
        return
    with pytest.raises(FilterError, match=r"^Unparseable filter: too deep\.$"):
        read()


@pytest.mark.parametrize(
    ("text", "micros"),
    [("", 0), (".5", 500_000), (".000001", 1), (".1234567", 123_456)],
)
def test_a_time_has_microseconds(text: str, micros: int) -> None:
    expected = datetime(2026, 1, 2, 3, 4, 5, micros, UTC)
    for zone in ("", "Z", "+00:00", "+0000"):
        assert log_filters.parse_time(f"2026-01-02T03:04:05{text}{zone}") == expected


@pytest.mark.parametrize("text", ["2026-13-02T03:04:05Z", "0001-01-01T00:00:00+10:00"])
def test_a_time_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match=f"Unparseable filter: '{text[:4]}"):
        log_filters.parse_time(text)
