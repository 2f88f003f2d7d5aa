"""The steps of ``make setup`` from its command line to its record, with installers of our own."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.toolchain import cache, main
from vertex_training_cli.toolchain.console import SetupError
from vertex_training_cli.toolchain.layout import PLUGINS, Layout
from vertex_training_cli.toolchain.pulumi_cli import Pulumi

UV = Path("/opt/uv")
PULUMI = Pulumi("path", "3.260.1", "/opt/pulumi, official", "official")
RECORD = {"version": "3.260.1", "engine": "/opt/pulumi, official", "language_host": "official"}
REPORT = "pulumi 3.260.1: /opt/pulumi, official\nPython language host: official\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Installers that install nothing; what each was given."""
    found: list[tuple[Any, ...]] = []

    def installer(name: str, answer: Any) -> None:
        def install(*given: Any) -> Any:
            found.append((name, *given))
            return answer

        monkeypatch.setattr(main, name, install)

    installer("ensure_uv", (UV, "uv 1.2.3"))
    installer("ensure_venv", "Python 3.11.2, new")
    installer("install_packages", "9 packages")
    installer("install_policy_packages", "3 packages")
    installer("ensure_pulumi", PULUMI)
    installer("install_gcp_plugin", "9.1.0, by SHA-256")
    return found


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d s\)", "x s)", re.sub(r"Done in \d+ s", "Done in x s", text))


@pytest.mark.parametrize("deploy", [False, True])
def test_an_installation_is_told_step_by_step_and_recorded(
    checkout: Layout, asked: list[Any], deploy: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Layout(checkout.root, checkout.cache, deploy)
    place.requirements.write_text("")
    (checkout.toolchain).rmdir()
    main.install(place, "path")
    plugin = "  gcp plugin           9.1.0, by SHA-256 (x s)\n" if deploy else ""
    assert without_times(capsys.readouterr().out) == (
        f"Setting up {checkout.root}/.venv (cache: {checkout.cache})\n"
        "  uv                   uv 1.2.3 (x s)\n"
        "  virtual environment  Python 3.11.2, new (x s)\n"
        "  packages             9 packages (x s)\n"
        "  policy pack          3 packages (x s)\n"
        "  pulumi               3.260.1, /opt/pulumi, official (x s)\n"
        f"{plugin}{REPORT}"
        "Done in x s. Next: source .venv/bin/activate\n"
    )
    steps = [
        ("ensure_uv", place), ("ensure_venv", UV, place), ("install_packages", UV, place),
        ("install_policy_packages", place, UV), ("ensure_pulumi", place, "path"),
    ]  # fmt: skip
    assert asked == steps + ([("install_gcp_plugin", place)] if deploy else [])
    assert place.stamp.read_text() == (
        f'{{\n  "digest": "{place.inputs_digest("path")}",\n  "source": "path",\n'
        '  "version": "3.260.1",\n  "engine": "/opt/pulumi, official",\n'
        '  "language_host": "official"\n}\n'
    )


def test_a_step_that_fails_leaves_no_record(
    checkout: Layout, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> str:
        raise SetupError("no packages")

    checkout.stamp.write_text("{}")
    monkeypatch.setattr(main, "install_packages", fails)
    with pytest.raises(SetupError, match="no packages"):
        main.install(checkout, "auto")
    assert not checkout.stamp.exists()
    assert [each[0] for each in asked] == ["ensure_uv", "ensure_venv"]


def test_what_another_setup_installed_meanwhile_is_not_installed_again(
    checkout: Layout, asked: list[Any], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(main, "installation_record", lambda *_: RECORD)
    main.install(checkout, "auto")
    assert (asked, capsys.readouterr().out.splitlines()[1:]) == ([], REPORT.splitlines())


@pytest.fixture
def setup(checkout: Layout, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A command line in this checkout; what ``install`` was given."""
    found: list[Any] = []

    def of_this_checkout(*, deploy: bool) -> Layout:
        return Layout(checkout.root, checkout.cache, deploy)

    monkeypatch.setattr(main.Layout, "of_this_checkout", of_this_checkout)
    monkeypatch.setattr(main, "install", lambda *given: found.append(given))
    monkeypatch.setattr(main, "installation_record", lambda *_: None)
    monkeypatch.delenv("VT_PULUMI_SOURCE", raising=False)
    return found


@pytest.mark.parametrize(
    ("arguments", "source", "deploy", "given"),
    [
        ([], None, False, "auto"),
        ([], "", False, "auto"),
        ([], "build", False, "build"),
        (["--deploy"], "path", True, "path"),
    ],
)
def test_what_is_missing_is_installed_from_the_source_that_is_asked_for(
    checkout: Layout, setup: list[Any], monkeypatch: pytest.MonkeyPatch, arguments: list[str],
    source: str | None, deploy: bool, given: str,
) -> None:  # fmt: skip
    if source is not None:
        monkeypatch.setenv("VT_PULUMI_SOURCE", source)
    assert main.main(arguments) == 0
    assert setup == [(Layout(checkout.root, checkout.cache, deploy), given)]


def test_a_check_installs_nothing(
    setup: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["--check"]) == 1
    assert capsys.readouterr().out == "setup: .venv is missing or out of date. Hint: make setup\n"
    monkeypatch.setattr(main, "installation_record", lambda *_: RECORD)
    for arguments in ([], ["--check"], ["--deploy", "--check"]):
        assert main.main(arguments) == 0
        assert capsys.readouterr().out == REPORT
    assert setup == []


def test_a_setup_that_cannot_go_on_says_why_and_nothing_else(
    setup: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VT_PULUMI_SOURCE", "nix")
    assert main.main([]) == 1
    assert capsys.readouterr().err == (
        "setup: VT_PULUMI_SOURCE is 'nix'\n  Hint: use one of auto, path, official, build\n"
    )
    monkeypatch.delenv("VT_PULUMI_SOURCE")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(main, "os", SimpleNamespace(name="nt", environ=os.environ))
        assert main.main([]) == 1
    assert capsys.readouterr().err == (
        "setup: only Linux and macOS are supported\n  Hint: use WSL on Windows\n"
    )
    assert setup == []

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "install", interrupted)
    assert main.main([]) == 130
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "\nsetup: interrupted; run it again to go on\n")


@pytest.mark.parametrize("missing", ["python", "vt", "pulumi", *PLUGINS, "policies", "digest"])
def test_an_installation_is_there_as_a_whole_and_of_these_inputs(
    checkout: Layout, missing: str
) -> None:
    policies = checkout.policy_venv / "bin" / "python"
    policies.parent.mkdir(parents=True)
    programs = [*(checkout.bin / name for name in ("python", "vt", "pulumi", *PLUGINS)), policies]
    for program in programs:
        program.touch(mode=0o755)
    record = {"digest": checkout.inputs_digest("auto"), **RECORD}
    checkout.stamp.write_text(json.dumps(record))
    assert main.installation_record(checkout, "auto") == record
    if missing == "digest":
        assert main.installation_record(checkout, "build") is None
        return
    (policies if missing == "policies" else checkout.bin / missing).chmod(0o644)
    assert main.installation_record(checkout, "auto") is None


def test_a_cache_that_cannot_be_written_is_told_with_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError) as refused, cache.lock(tmp_path / "file" / "toolchain"):
        pass
    assert str(refused.value) == (
        f"setup: cannot write the cache {tmp_path}/file/toolchain: Not a directory\n"
        "  Hint: set VT_CACHE_DIR to a folder that can be written"
    )


def test_a_file_is_linked_into_place_or_copied_from_another_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, beside = (tmp_path / name for name in ("source", "pulumi", ".pulumi.new"))
    source.write_text("engine")
    source.chmod(0o755)
    for old in (target, beside):  # the second of a setup that was killed
        old.write_text("old")
    cache.place(source, target)
    assert target.samefile(source)

    def other_disk(*_: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(cache.os, "link", other_disk)
    cache.place(source, target)
    assert not target.samefile(source)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("engine", 0o755)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pulumi", "source"]

    for old in (None, "old"):
        if old:
            beside.write_text(old)
        cache.link(source, target)
        assert (target.is_symlink(), target.readlink()) == (True, source)
        assert not beside.exists()
