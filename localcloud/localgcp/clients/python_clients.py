"""Redirect Google's Python clients to the local cloud, in every Python of the local shell.

This file patches ``google.auth``, ``grpc``, ``requests`` and ``httplib2`` after their import: calls
to Google's hosts go to ``VERTEX_EMULATOR_HOST`` and ``STORAGE_EMULATOR_HOST``, with anonymous
credentials. This isolates nothing: other libraries, ``python -I``, ``-S`` or ``-E``, and a replaced
``PYTHONPATH`` still call Google. ``localgcp.access.isolation`` isolates programs.

The file imports only the standard library, because a Python without this package also runs it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

#: Variable with the address HOST:PORT of all services except Cloud Storage.
VERTEX: Final = "VERTEX_EMULATOR_HOST"
#: Variable with the address http://HOST:PORT of Cloud Storage.
STORAGE: Final = "STORAGE_EMULATOR_HOST"
_GOOGLE: Final = ".googleapis.com"
_FILE: Final = "sitecustomize"
#: Global variable of this module with the folder of ``sitecustomize``.
_FOLDER: Final = "FOLDER"


def environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which Python runs the module of ``write_settings(folder)``."""
    paths = [str(folder / "python"), env.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def write_settings(folder: Path) -> None:
    """Write the module that each Python runs (https://docs.python.org/3/library/site.html)."""
    target = folder / "python" / f"{_FILE}.py"
    target.parent.mkdir(0o700, parents=True, exist_ok=True)
    target.write_text(
        f"# Written at each start of the local shell.\nimport os\nimport runpy\n\n"
        f"runpy.run_path({str(Path(__file__).resolve())!r}, run_name={_FILE!r},\n"
        f"               init_globals={{{_FOLDER!r}: os.path.dirname(__file__)}})\n"
    )


def local_host(host: str) -> str:
    """Return the local ``HOST:PORT`` for one of Google's hosts, or "" for another host."""
    name = host.removeprefix("dns:///")
    name = (name.partition("://")[2] or name).partition("/")[0].partition(":")[0]
    if not name.endswith((_GOOGLE, ".prediction.vertexai.goog")):  # or a dedicated endpoint
        return ""
    if name == f"storage{_GOOGLE}" or name.endswith(f".storage{_GOOGLE}"):
        return os.environ.get(STORAGE, "").partition("://")[2]
    return os.environ.get(VERTEX, "")


def local_url(url: str) -> str:
    """Return the local URL for one of Google's URLs; other URLs stay unchanged."""
    parts = urlsplit(url)
    host = local_host(parts.netloc)
    return urlunsplit(("http", host, *parts[2:])) if host else url


def _patch_auth(module: ModuleType) -> None:
    credentials = importlib.import_module("google.auth.credentials")

    class LocalCredentials(credentials.AnonymousCredentials):
        service_account_email = "nobody@localhost"

        def __init__(self) -> None:
            super().__init__()
            self.token = "local"

        def refresh(self, request: object) -> None:
            """Do nothing: anonymous credentials do not expire."""

        def with_quota_project(self, quota_project_id: str) -> LocalCredentials:
            return self

    def default(*_args: object, **_options: object) -> tuple[object, str | None]:
        return LocalCredentials(), os.environ.get("GOOGLE_CLOUD_PROJECT")

    module.default = default  # type: ignore[attr-defined]


def _patch_service_account(module: ModuleType) -> None:
    def from_key(*_args: object, **_options: object) -> object:
        """Return anonymous credentials, because only Google can verify a key."""
        return importlib.import_module("google.auth").default()[0]

    for name in ("from_service_account_file", "from_service_account_info"):
        setattr(module.Credentials, name, from_key)


def _patch_grpc(module: ModuleType) -> None:
    secure, insecure = module.secure_channel, module.insecure_channel

    def channel(target: str, credentials: Any, *args: Any, **options: Any) -> Any:
        host = local_host(target)
        if host:
            return insecure(host, *args, **options)
        return secure(target, credentials, *args, **options)

    module.secure_channel = channel  # type: ignore[attr-defined]


def _patch_requests(module: ModuleType) -> None:
    send = module.HTTPAdapter.send

    def send_locally(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        request.url = local_url(request.url)
        return send(self, request, *args, **options)

    module.HTTPAdapter.send = send_locally


def _patch_httplib2(module: ModuleType) -> None:
    request = module.Http.request

    def request_locally(self: Any, uri: str, *args: Any, **options: Any) -> Any:
        return request(self, local_url(uri), *args, **options)

    module.Http.request = request_locally


class _Patcher(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import hook that patches a module after its execution."""

    def __init__(self, patches: dict[str, Callable[[ModuleType], None]]) -> None:
        self._patches = patches
        self._loaders: dict[str, Any] = {}
        self._searched = ""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._patches or name == self._searched:
            return None
        self._searched = name  # find_spec calls this method again
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searched = ""
        if spec is not None and spec.loader is not None:
            self._loaders[name], spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loaders[spec.name].create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        loader = self._loaders[module.__name__]
        module.__loader__ = loader
        if module.__spec__ is not None:
            module.__spec__.loader = loader
        loader.exec_module(module)
        self._patches[module.__name__](module)


def _run_others(own: str) -> None:
    """Run another ``sitecustomize`` module, which the module in the folder ``own`` hides."""
    # Paths before `own` have no such module, and sys.path may contain `own` twice.
    after = sys.path[sys.path.index(own) + 1 :] if own in sys.path else []
    others = [path for path in after if path != own]
    spec = importlib.machinery.PathFinder.find_spec(_FILE, others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == _FILE:
    _PATCHES: Final = {
        "google.auth": _patch_auth,
        "google.oauth2.service_account": _patch_service_account,
        "grpc": _patch_grpc,
        "grpc.aio": _patch_grpc,
        "requests.adapters": _patch_requests,
        "httplib2": _patch_httplib2,
    }
    sys.meta_path.insert(0, _Patcher(_PATCHES))
    _run_others(globals()[_FOLDER])
