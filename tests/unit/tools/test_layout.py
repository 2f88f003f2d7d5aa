"""Where an installation has its files, and what its digest covers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vertex_training_cli.toolchain import layout
from vertex_training_cli.toolchain.console import SetupError
from vertex_training_cli.toolchain.layout import Layout, cache_home

ROOT, CACHE = Path("/srv/checkout"), Path("/srv/cache")


def paths(made: Layout) -> dict[str, str]:
    names = (
        *("venv", "bin", "python", "stamp", "toolchain", "requirements", "policy_venv"),
        *("policy_requirements", "tools", "package", "plugin_callers", "releases"),
        "offline_engine",
    )
    return {name: str(getattr(made, name)) for name in names}


def test_a_checkout_has_its_own_environment() -> None:
    package = "/srv/checkout/cli/vertex_training_cli/toolchain"
    assert paths(Layout(ROOT, CACHE)) == {
        "venv": "/srv/checkout/.venv",
        "bin": "/srv/checkout/.venv/bin",
        "python": "/srv/checkout/.venv/bin/python",
        "stamp": "/srv/checkout/.venv/setup.json",
        "toolchain": "/srv/cache/toolchain",
        "requirements": "/srv/checkout/requirements/dev.txt",
        "policy_venv": "/srv/checkout/.venv/policy",
        "policy_requirements": f"{package}/policy.txt",
        "tools": "/srv/checkout/tools",
        "package": package,
        "plugin_callers": "/srv/checkout/infra/vertex_training/plugin_callers.py",
        "releases": f"{package}/releases.sha256",
        "offline_engine": "/srv/checkout/tools/offline_engine",
    }
    deploys = Layout(ROOT, CACHE, deploy=True)
    assert str(deploys.requirements) == "/srv/checkout/requirements/runtime.txt"


def test_an_installed_package_is_in_the_environment_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VT_OFFLINE_ENGINE", raising=False)
    made = Layout(ROOT, CACHE, environment=Path("/srv/env"))
    package = "/srv/checkout/vertex_training_cli/toolchain"
    found = paths(made)
    assert (found["bin"], found["stamp"]) == ("/srv/env/bin", "/srv/env/pulumi.json")
    assert (found["package"], found["releases"]) == (package, f"{package}/releases.sha256")
    assert found["plugin_callers"] == "/srv/checkout/vertex_training/plugin_callers.py"
    assert found["offline_engine"] == f"{package}/offline_engine"
    monkeypatch.setenv("VT_OFFLINE_ENGINE", "/srv/engine")
    assert str(made.offline_engine) == "/srv/engine"
    assert str(Layout(ROOT, CACHE).offline_engine) == "/srv/checkout/tools/offline_engine"


@pytest.mark.parametrize(
    ("environment", "home"),
    [
        ({"VT_CACHE_DIR": "/srv/own", "XDG_CACHE_HOME": "/srv/xdg"}, "/srv/own"),
        ({"XDG_CACHE_HOME": "/srv/xdg"}, "/srv/xdg/vertex-training"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/ml/.cache/vertex-training"),
        ({"VT_CACHE_DIR": "", "XDG_CACHE_HOME": ""}, "/home/ml/.cache/vertex-training"),
        ({"VT_CACHE_DIR": "~/own"}, "/home/ml/own"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], home: str
) -> None:
    monkeypatch.setenv("HOME", "/home/ml")
    assert str(cache_home(environment)) == home


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", staticmethod(nowhere))
    with pytest.raises(SetupError) as refused:
        cache_home({})
    assert str(refused.value) == (
        "setup: no place for the cache: no home\n"
        "  Hint: set VT_CACHE_DIR to a folder that can be written"
    )


def test_only_a_virtual_environment_that_can_be_written_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(SetupError, match=r"cannot read .*gone"):
        Layout.of_this_environment(own_releases=tmp_path / "gone")
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    with pytest.raises(SetupError, match="is in no virtual environment"):
        Layout.of_this_environment()
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    with pytest.raises(SetupError, match=r"cannot write .*env/bin"):
        Layout.of_this_environment()
    (tmp_path / "env/bin").mkdir(parents=True)
    (own := tmp_path / "own").write_text("")
    package = Path(layout.__file__).parents[2]
    assert Layout.of_this_environment(deploy=True, own_releases=own) == Layout(
        package, tmp_path / "cache", True, tmp_path / "env", own
    )
    assert Layout.of_this_environment() == Layout(
        package, tmp_path / "cache", False, tmp_path / "env", None
    )
    assert Layout.of_this_checkout(deploy=True) == Layout(
        package.parent, tmp_path / "cache", deploy=True
    )


@pytest.fixture
def inputs(tmp_path: Path) -> Layout:
    """A checkout with all that its digest covers."""
    made = Layout(tmp_path, CACHE)
    names = ("policy.txt", "releases.sha256")
    engine = ("go.mod", "go.sum", "pulumi-language-python")
    for file in (
        *(made.package / name for name in names),
        *(made.offline_engine / name for name in engine),
        *(tmp_path / name for name in ("pyproject.toml", "localcloud/pyproject.toml")),
        *(tmp_path / "requirements" / name for name in ("dev.txt", "runtime.txt")),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    return made


CHECKOUT = "cli/vertex_training_cli/toolchain"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (f"{CHECKOUT}/policy.txt", True),
        (f"{CHECKOUT}/releases.sha256", True),
        ("tools/offline_engine/go.mod", True),
        ("tools/offline_engine/go.sum", True),
        ("tools/offline_engine/pulumi-language-python", True),
        ("pyproject.toml", True),
        ("localcloud/pyproject.toml", True),
        ("requirements/dev.txt", True),
        ("requirements/runtime.txt", False),
    ],
)
def test_a_change_of_an_input_is_another_digest(inputs: Layout, name: str, counts: bool) -> None:
    before = inputs.inputs_digest("auto")
    assert inputs.inputs_digest("auto") == before
    (inputs.root / name).write_text("changed")
    assert (inputs.inputs_digest("auto") != before) is counts


def test_each_way_of_installing_has_a_digest_of_its_own(inputs: Layout, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("x")
    installed = tmp_path / "vertex_training_cli/toolchain"
    installed.mkdir(parents=True)
    for name in ("policy.txt", "releases.sha256"):
        (installed / name).write_text(name)
    environment = tmp_path / "env"
    digests = [
        inputs.inputs_digest("auto"),
        inputs.inputs_digest("path"),
        Layout(tmp_path, Path("/srv/other")).inputs_digest("auto"),
        Layout(tmp_path, CACHE, own_releases=tmp_path / "own").inputs_digest("auto"),
        Layout(tmp_path, CACHE, deploy=True).inputs_digest("auto"),
        Layout(tmp_path, CACHE, environment=environment).inputs_digest("auto"),
        Layout(tmp_path, CACHE, deploy=True, environment=environment).inputs_digest("auto"),
    ]
    assert len(set(digests)) == len(digests)
    assert all(len(each) == 64 for each in digests)
    (tmp_path / "pyproject.toml").write_text("changed")  # not of an installed package
    assert Layout(tmp_path, CACHE, environment=environment).inputs_digest("auto") == digests[5]
