"""Tests that no checkout controls which packages the shared job environments contain."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localgcp.runner import executors
from localgcp.runner.executors import Executor, environment
from tests.unit.structure.tree import ROOT
from vertex_training_cli.toolchain import python_env

#: What every start of uv in the product goes through.
STARTS: tuple[Callable[..., list[str | Path]], ...] = (
    lambda *words: [*executors.uv_command(*words)],
    lambda *words: python_env.uv_command(Path(sys.executable).with_name("uv"), *words),
)
#: Functions that name the program beside calls of ``find_uv``.
FINDERS = {"find_uv", "uv_command", "ensure_venv"}
#: Programs of this repository's developers, which read its own settings.
DEVELOPERS = ("bench/", "tools/")
CONFIG = {
    "uv.toml": '[[index]]\nurl = "http://127.0.0.1:9/simple"\ndefault = true\n',
    "pyproject.toml": "[tool.uv]\nno-index = true\n[tool.uv.pip]\nno-index = true\n",
}


@pytest.mark.parametrize("name", CONFIG)
def test_installation_ignores_settings_of_a_checkout(
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


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    "settings", ['required-version = "==99.0"', "no such line", "cache-dir = './c'"]
)
def test_uv_ignores_settings_of_a_checkout(
    start: Callable[..., list[str | Path]], settings: str, tmp_path: Path
) -> None:
    (tmp_path / "uv.toml").write_text(settings)
    command = start("python", "find", "--no-project", "--system", sys.executable)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [each.name for each in tmp_path.iterdir()] == ["uv.toml"]


def uses_of_uv(tree: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """Yield function and use for each mention of the program and each command that begins
    with it.
    """
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef) else function
        match node:
            case ast.Call(func=ast.Name(id="find_uv")):
                continue
            case ast.Constant(value=str(text)) if text == "uv" or text.endswith("/uv"):
                yield inner, text
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
                names = {each.id for each in ast.walk(first) if isinstance(each, ast.Name)}
                if names & {"uv", "find_uv"}:
                    yield inner, ast.unparse(node)
        yield from uses_of_uv(node, inner)


def test_every_call_of_uv_disables_project_settings() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    product = [each for each in listed if not each.startswith(("tests/", "docs/", *DEVELOPERS))]
    texts = {path: text for path in product if "uv" in (text := (ROOT / path).read_text())}
    found = [(path, *use) for path, text in texts.items() for use in uses_of_uv(ast.parse(text))]
    outside = [each for each in found if each[1] not in FINDERS]
    assert outside == [], "start uv by uv_command"
