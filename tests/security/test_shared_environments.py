"""Checkouts share environments of jobs: none of them says what is installed there."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.runner.executors import Executor, environment

CONFIG = {
    "uv.toml": '[[index]]\nurl = "http://127.0.0.1:9/simple"\ndefault = true\n',
    "pyproject.toml": "[tool.uv]\nno-index = true\n[tool.uv.pip]\nno-index = true\n",
}


@pytest.mark.parametrize("name", CONFIG)
def test_settings_of_a_checkout_do_not_reach_the_installation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "checkout" / ".vt-local"
    home.mkdir(parents=True)
    (home.parent / name).write_text(CONFIG[name])
    monkeypatch.chdir(home)  # as the server runs
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    executor = Executor(
        name="x", image="x", python=">=3.11", framework="wheel==0.45.1", libraries=()
    )
    said: list[str] = []
    folder = environment(executor, said.append)
    assert list((folder / "lib").glob("python*/site-packages/wheel/__init__.py")), said
