"""Which official archive a machine gets, by which digest, and what is unpacked of it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.toolchain import releases
from vertex_training_cli.toolchain.console import SubprocessError


def archive(**files: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as out:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"pulumi/{name}")
            entry.size = len(text)
            out.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch):
    """Serves a download; the addresses that were asked for."""

    def serve(content: bytes | OSError) -> list[Any]:
        asked: list[Any] = []

        def urlopen(url: str, timeout: float) -> Any:
            asked.append((url, timeout))
            if isinstance(content, OSError):
                raise content
            return io.BytesIO(content)

        monkeypatch.setattr(releases.urllib.request, "urlopen", urlopen)
        return asked

    return serve


def test_programs_of_a_release_are_unpacked_into_bin(served, tmp_path: Path) -> None:
    content = archive(pulumi="engine", other="x")
    asked = served(content)
    releases.unpack_engine("p.tar.gz", hashlib.sha256(content).hexdigest(), tmp_path)
    assert asked == [("https://get.pulumi.com/releases/sdk/p.tar.gz", 30.0)]
    assert [each.name for each in tmp_path.iterdir()] == ["bin"]
    assert {each.name: each.read_text() for each in (tmp_path / "bin").iterdir()} == {
        "pulumi": "engine", "other": "x",
    }  # fmt: skip


def test_another_content_than_pinned_is_not_unpacked(served, tmp_path: Path) -> None:
    content = archive(pulumi="evil")
    served(content)
    with pytest.raises(SubprocessError) as refused:
        releases.unpack_engine("p.tar.gz", "0" * 64, tmp_path)
    digest = hashlib.sha256(content).hexdigest()
    assert str(refused.value) == f"p.tar.gz: SHA-256 is {digest}, pinned is {'0' * 64}"
    assert not (tmp_path / "pulumi").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"no archive", "ReadError: "), (OSError("no route"), "OSError: no route")],
)
def test_what_cannot_be_fetched_or_unpacked_is_one_line(
    served, tmp_path: Path, content: Any, told: str
) -> None:
    served(content)
    digest = hashlib.sha256(content if isinstance(content, bytes) else b"").hexdigest()
    with pytest.raises(SubprocessError) as failed:
        releases.unpack_engine("p.tar.gz", digest, tmp_path)
    assert str(failed.value).startswith(told)
