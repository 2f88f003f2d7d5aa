"""The stand-in language host: environments of projects, plugins of packages, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import language_host
from language_host import Environment, OptionError, plugin_version, plugins_of
from vertex_training import engine


def package(site: Path, name: str, version: str, plugin: dict[str, object] | None = None) -> None:
    """Install the metadata of a package, and its plugin file if it has one."""
    module = name.lower().replace("-", "_")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if plugin is not None:
        (site / module).mkdir()
        (site / module / "pulumi-plugin.json").write_text(json.dumps(plugin))


def virtualenv(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch(mode=0o755)
    return folder


def test_a_relative_virtualenv_is_in_the_project(tmp_path: Path) -> None:
    venv = virtualenv(tmp_path / ".venv")
    found = Environment.of(tmp_path, {"virtualenv": ".venv", "toolchain": "pip"}, must_exist=True)
    assert found == Environment(str(venv / "bin" / "python"), venv)


def test_without_virtualenv_the_python_of_the_environment_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_PYTHON_CMD", "/opt/python")
    assert Environment.of(tmp_path, {}, must_exist=True).python == "/opt/python"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"virtualenv": "none"}, "'none'.*is not a virtual environment. Hint: create the"),
        ({"toolchain": "uv"}, "does not support the runtime option toolchain: uv"),
        ({"typechecker": "mypy"}, "does not support the runtime option typechecker"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        Environment.of(tmp_path, options, must_exist=True)


def test_activation_is_that_of_the_activate_script(tmp_path: Path) -> None:
    environment = Environment(str(tmp_path / "bin" / "python"), tmp_path)
    activated = environment.activate({"PATH": "/usr/bin", "PYTHONHOME": "/x", "A": "b"})
    assert activated == {"PATH": f"{tmp_path}/bin:/usr/bin", "A": "b", "VIRTUAL_ENV": str(tmp_path)}
    assert environment.activate(activated) == activated


def test_plugins_follow_the_official_rules(tmp_path: Path) -> None:
    package(tmp_path, "pulumi-gcp", "9.35.0", {"resource": True, "name": "gcp", "version": "9.35"})
    package(tmp_path, "Pulumi_Random", "4.1.0")
    package(tmp_path, "acme-cloud", "1.0", {"resource": True, "server": "s", "name": "acme"})
    package(tmp_path, "pulumi-library", "2.0.0", {"resource": False})
    package(tmp_path, "pulumi-policy", "1.20.0")
    package(tmp_path, "requests", "2.0.0")
    plugins = plugins_of([tmp_path])
    assert [(plugin.name, plugin.version, plugin.server) for plugin in plugins] == [
        ("acme", "v1.0.0", "s"),
        ("gcp", "v9.35", ""),
        ("random", "v4.1.0", ""),
    ]
    assert {plugin.kind for plugin in plugins} == {"resource"}


@pytest.mark.parametrize(
    ("package_version", "expected"),
    [
        ("1.0", "1.0.0"),
        ("1.2.3", "1.2.3"),
        ("1.2.3a4", "1.2.3-alpha.4"),
        ("1.2.3rc4", "1.2.3-rc.4"),
        ("1.2.3.post4.dev5", "1.2.3+post4dev5"),
        ("1!2.3", None),
    ],
)
def test_package_versions_become_plugin_versions(
    package_version: str, expected: str | None
) -> None:
    assert plugin_version(package_version) == expected


def test_the_host_and_the_program_use_the_same_exit_code_for_a_shown_message() -> None:
    assert language_host.MESSAGE_SHOWN == engine.MESSAGE_SHOWN
