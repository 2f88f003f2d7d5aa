"""Settings of builders, and the stand-in for base images."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.containers import builders, mirror
from localgcp.errors import LocalCloudError
from localgcp.home import Home


def test_certificates_that_pip_or_a_variable_names_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("conf", "broken", "secret", "one.pem", "two.pem", "three.pem")
    conf, broken, secret, one, two, three = (tmp_path / name for name in names)
    for file in (one, two, three):
        file.touch()
    conf.write_text(f"[global]\ncert = {one}\n[install]\nindex-url = https://example.com\n")
    broken.write_text("no section\n")
    secret.write_text(f"[global]\nindex-url = https://u:p@example.com\ncert = {three}\n")
    monkeypatch.setattr(builders, "_pip_files", lambda: [conf, broken, secret])
    env = {"CURL_CA_BUNDLE": str(two), "PIP_CERT": str(tmp_path / "none"), "OTHER": str(three)}
    assert builders.readable_files(env) == sorted([broken, conf, one, two])
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        assert three in builders.readable_files({name: str(three)})


def test_settings_are_written_for_a_registry_and_removed_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, tmp_path)
    monkeypatch.setattr(builders.mirror, "has_stand_in", lambda: True)
    monkeypatch.setattr(builders, "readable_files", lambda: [Path("/etc/pip.conf")])
    builders.write_settings(home, 5000)
    assert home.registries.stat().st_mode & 0o077 == 0
    assert home.builders.exists()
    builders.write_settings(home, 0)
    assert not home.registries.exists()
    assert not home.builders.exists()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_stand_in_is_kept_in_the_cache_of_the_user(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mirror.layout()
    assert folder.parent == cache / "base-images"
    assert len(folder.name) == 16
    assert mirror.has_stand_in() is False
    folder.mkdir(parents=True)
    (folder / "index.json").touch()
    assert mirror.has_stand_in() is True

    def nowhere() -> Path:
        raise LocalCloudError("no home")

    monkeypatch.setattr(mirror, "cache_dir", nowhere)
    assert mirror.has_stand_in() is False


def test_stand_in_is_made_of_debian_packages_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[list[str], str]] = []
    work = mirror.layout().with_suffix(".partial")

    def run(command: list[str], *, env: dict[str, str], **_: object) -> Any:
        ran.append((command, env["TMPDIR"]))
        if command[0] == "mmdebstrap":
            assert not (work / "stale").exists()
            (work / "layout").mkdir()
            (work / "layout" / "index.json").touch()
        return SimpleNamespace(returncode=0)

    work.mkdir(parents=True)
    (work / "stale").touch()
    monkeypatch.setattr(mirror.subprocess, "run", run)
    said: list[str] = []
    for _ in range(2):
        mirror.make(said.append)
    base = "docker.io/library/python:3.11-slim-bookworm"
    assert said == [f"making a stand-in for {base} of Debian's packages (once)"]
    buildah = ["buildah", "--root", str(work / "storage"), "--runroot", str(work / "run"),
               "--storage-driver", "vfs"]  # fmt: skip
    assert [command for command, _ in ran] == [
        [
            *("mmdebstrap", "--quiet", "--variant=minbase"),
            "--include=ca-certificates,python3,python3-pip,python3-venv",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            '--customize-hook=ln -s python3 "$1/usr/bin/python"',
            '--customize-hook=rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
            *("bookworm", str(work / "root.tar")),
        ],
        [*buildah, "from", "--name", "base", "scratch"],
        [*buildah, "add", "--quiet", "base", str(work / "root.tar"), "/"],
        [*buildah, "config", "--cmd", "python3", "--env", "LANG=C.UTF-8", "base"],
        [*buildah, "commit", "--quiet", "--format", "oci", "base",
         f"oci:{work / 'layout'}:3.11-slim-bookworm"],
    ]  # fmt: skip
    assert {tmp for _, tmp in ran} == {str(work)}
    assert mirror.has_stand_in()
    assert not work.exists()


def test_stand_in_that_cannot_be_made_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(LocalCloudError) as failed:
        mirror.make(lambda _: None)
    assert str(failed.value) == "mmdebstrap cannot be run: No such file or directory."
    assert list((cache / "base-images").iterdir()) == [mirror.layout().with_suffix(".lock")]


def test_layout_is_copied_when_its_image_is_requested(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = mirror.layout() / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    manifest = {"config": {"digest": "sha256:c"}, "layers": [{"digest": "sha256:l"}]}
    (blobs / "m").write_text(json.dumps(manifest))
    (blobs / "c").write_text("config")
    (blobs / "l").write_text("layer!")
    (mirror.layout() / "index.json").write_text('{"manifests": [{"digest": "sha256:m"}]}')
    sent: list[tuple[str, str, object, dict[str, str]]] = []

    class Connection:
        status = 202

        def __init__(self, folder: Path) -> None:
            assert folder == tmp_path
            self.headers = {"Location": "/v2/up?_state=1" if len(sent) else "/v2/up"}

        def request(self, verb: str, path: str, body: Any, headers: dict[str, str]) -> None:
            content = body.read() if hasattr(body, "read") else body
            sent.append((verb, path, content, headers))

        def getresponse(self) -> Connection:
            return self

        def read(self) -> bytes:
            return b""

        def close(self) -> None: ...

    monkeypatch.setattr(mirror, "RegistryConnection", Connection)
    made = mirror.Mirror(tmp_path, "mirror")
    made.provide("mirror/library/python", "3.12")
    made.provide("mirror/library/other", "3.11-slim-bookworm")
    assert sent == []
    for _ in range(2):
        made.provide("mirror/library/python", "3.11-slim-bookworm")
    uploads = "/v2/mirror/library/python/blobs/uploads/"
    kind = "application/vnd.oci.image.manifest.v1+json"
    assert sent == [
        ("POST", uploads, None, {}),
        ("PUT", "/v2/up?digest=sha256:c", b"config", {"Content-Length": "6"}),
        ("POST", uploads, None, {}),
        ("PUT", "/v2/up?_state=1&digest=sha256:l", b"layer!", {"Content-Length": "6"}),
        ("PUT", "/v2/mirror/library/python/manifests/3.11-slim-bookworm",
         json.dumps(manifest).encode(), {"Content-Type": kind}),
    ]  # fmt: skip
