"""The parts of `make setup` that need neither a network nor an engine."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_training_cli.toolchain import build, layout, main, pulumi_cli, python_env
from vertex_training_cli.toolchain.console import SetupError
from vertex_training_cli.toolchain.layout import PLUGINS, Layout
from vertex_training_cli.toolchain.pulumi_cli import Pulumi, SourceUnavailableError

ROOT = Path(__file__).resolve().parents[3]


def installation(folder: Path, version: str = "v3.260.1", host: bytes = b"\x7fELF") -> Path:
    """A folder that looks like an installed Pulumi release."""
    folder.mkdir(parents=True)
    (folder / "pulumi").write_text(f"#!/bin/sh\necho {version}\n")
    for name in PLUGINS:
        (folder / name).write_bytes(host if name == "pulumi-language-python" else b"#!/bin/sh\n")
    for file in folder.iterdir():
        file.chmod(0o755)
    return folder


class TestEntry:
    def test_is_readable_for_pythons_that_are_too_old(self) -> None:
        ast.parse((ROOT / "tools" / "setup.py").read_text(), feature_version=(3, 5))

    def test_says_which_python_it_needs(self, tmp_path: Path) -> None:
        old = (
            "import sys, runpy\nsys.version_info = (3, 9, 1)\n"
            f"runpy.run_path({str(ROOT / 'tools' / 'setup.py')!r}, run_name='__main__')\n"
        )
        answer = subprocess.run(
            [sys.executable, "-c", old], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert answer.returncode == 1
        assert "Python 3.11 or newer is needed (this is 3.9" in answer.stderr
        assert "Traceback" not in answer.stderr


class TestLayout:
    def test_cache_is_where_the_environment_says(self, tmp_path: Path) -> None:
        both = {"VT_CACHE_DIR": str(tmp_path / "own"), "XDG_CACHE_HOME": "/xdg"}
        assert layout.cache_home(both) == tmp_path / "own"
        assert layout.cache_home({"XDG_CACHE_HOME": "/xdg"}) == Path("/xdg/vertex-training")
        assert layout.cache_home({}) == Path.home() / ".cache" / "vertex-training"
        assert layout.cache_home({"XDG_CACHE_HOME": "xdg"}) == layout.cache_home({})

    def test_a_user_without_a_home_gets_a_hint_what_to_set(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("HOME", "VT_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)

        def nobody(_number: int) -> None:
            raise KeyError("uid not found")

        monkeypatch.setattr("pwd.getpwuid", nobody)
        assert main.main(["--check"]) == 1
        message = capsys.readouterr().err
        assert "no place for the cache" in message
        assert "Hint: set VT_CACHE_DIR" in message


class TestPythonSide:
    def test_a_package_without_pin_is_an_error(self) -> None:
        with pytest.raises(SetupError, match="uv is not pinned in requirements"):
            python_env.pinned_requirement("uv", "")

    def test_a_uv_that_does_not_run_is_passed_over_and_reported(
        self, checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "path").mkdir()
        broken = tmp_path / "path" / "uv"
        broken.write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
        broken.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "path"))
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(SetupError) as caught:
            python_env.ensure_uv(checkout)
        assert [line.split(":")[0] for line in caught.value.tried] == [
            "uv on PATH",
            "/nowhere/python -m pip install uv==1.2.3",
        ]
        assert "no such version" in str(caught.value)
        assert not list(checkout.toolchain.glob("unfinished-*"))


class TestPulumiOnPath:
    def test_a_good_installation_is_linked(
        self, checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = installation(tmp_path / "good")
        monkeypatch.setenv("PATH", str(folder))
        found = pulumi_cli.link_from_path(checkout)
        assert (found.source, found.version, found.language_host) == (
            "path",
            "3.260.1",
            "official",
        )
        for name in ("pulumi", *PLUGINS):
            assert (checkout.bin / name).resolve() == folder / name

    def test_the_first_that_is_good_is_taken_and_all_before_it_are_told_if_none_is(
        self, checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def folder(name: str) -> Path:
            return installation(tmp_path / name)

        (folder("plain") / "pulumi").chmod(0o644)
        (tmp_path / "folder" / "pulumi").mkdir(parents=True)
        (folder("silent") / "pulumi").write_text("#!/bin/sh\nexit 3\n")
        (folder("bare") / PLUGINS[0]).unlink()
        old = installation(tmp_path / "old", "v3.258.9")
        bad = [tmp_path / name for name in ("plain", "folder", "silent", "bare")] + [old]
        monkeypatch.setenv("PATH", ":".join(map(str, bad)))
        with pytest.raises(SourceUnavailableError) as refused:
            pulumi_cli.link_from_path(checkout)
        assert str(refused.value) == (
            f"{tmp_path}/silent/pulumi: exit code 3; "
            f"{tmp_path}/bare/pulumi has no official {PLUGINS[0]} beside it; "
            f"{old}/pulumi is 3.258.9, needed is 3.259.0 up to 4"
        )
        assert not list(checkout.bin.iterdir())
        good = installation(tmp_path / "good", "v3.259.0")
        later = installation(tmp_path / "later", "v3.999.0")
        monkeypatch.setenv("PATH", ":".join(map(str, [*bad, good, later])))
        found = pulumi_cli.link_from_path(checkout)
        assert found == Pulumi("path", "3.259.0", f"{good}/pulumi, official", "official")
        assert {each.name: each.resolve().parent for each in checkout.bin.iterdir()} == {
            name: good for name in ("pulumi", *PLUGINS)
        }


class TestSources:
    def test_are_tried_in_order_until_one_works(
        self, checkout: Layout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        def refuses(_: Layout) -> Pulumi:
            asked.append("refuses")
            raise SourceUnavailableError("not here")

        def works(_: Layout) -> Pulumi:
            asked.append("works")
            return Pulumi("works", "1.0.0", "", "")

        monkeypatch.setattr(pulumi_cli, "SOURCES", {"a": refuses, "b": works, "c": refuses})
        assert pulumi_cli.ensure_pulumi(checkout, "auto").source == "works"
        assert asked == ["refuses", "works"]

    def test_when_none_works_every_reason_and_a_hint_are_shown(
        self, checkout: Layout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "")
        with pytest.raises(SetupError) as caught:
            pulumi_cli.ensure_pulumi(checkout, "auto")
        shown = str(caught.value)
        assert "tried: path: no pulumi on PATH" in shown
        assert "tried: official: download of 3.259.0: " in shown
        assert "tried: build: no Go on PATH" in shown
        assert "Hint: install the official Pulumi release" in shown


class TestInstalling:
    def test_a_downloaded_release_is_kept_and_placed(self, checkout: Layout) -> None:
        release = installation(checkout.toolchain / "official-3.259.0" / "bin")
        found = pulumi_cli.install_official(checkout)
        assert (found.source, found.language_host) == ("official", "official")
        for name in ("pulumi", *PLUGINS):
            assert not (checkout.bin / name).is_symlink()
        assert (checkout.bin / "pulumi").samefile(release / "pulumi")

    def test_a_build_lies_in_the_environment_itself_beside_the_stand_in(
        self, checkout: Layout
    ) -> None:
        # The engine looks for plugins beside the file it is, so a symbolic link would not do.
        installation(checkout.toolchain / build.cache_name(checkout) / "bin")
        found = pulumi_cli.install_build(checkout)
        assert found.language_host.startswith("stand-in")
        for name in ("pulumi", *PLUGINS):
            assert not (checkout.bin / name).is_symlink()
        assert (checkout.bin / "pulumi-language-python").read_text() == "#!/bin/sh\n"
