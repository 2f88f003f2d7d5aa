"""Which environment stands in for an image, and a job's own packages on top of it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from localgcp.errors import ExecutorError, PackageError
from localgcp.runner import executors
from localgcp.runner.executors import Executor
from localgcp.runner.preparation import build_wheels, install_wheels


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    source = tmp_path / "demo-1.0"
    (source / "demo").mkdir(parents=True)
    (source / "demo" / "__init__.py").write_text("")
    (source / "demo" / "task.py").write_text("import yaml, sys; print('ran', sys.argv[1:])\n")
    # pyyaml stands for a requirement that the executor has: pip must not look for it elsewhere.
    (source / "setup.py").write_text(
        "from setuptools import setup\n"
        "setup(name='demo', version='1.0', packages=['demo'], install_requires=['pyyaml'])\n"
    )
    archive = tmp_path / "demo-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source, "demo-1.0")
    return archive


def test_a_package_that_pip_refuses_is_named(tmp_path: Path, sdist: Path) -> None:
    with pytest.raises(PackageError, match=r"Building demo-1\.0\.tar\.gz failed: .* status 2"):
        build_wheels(Path("python"), [sdist], tmp_path, tmp_path, lambda _c, _e: 2)
    with pytest.raises(PackageError, match=r"Installing demo-1\.0\.tar\.gz failed: .* status 2"):
        install_wheels(Path("python"), [sdist], tmp_path, lambda _c, _e: 2)


EXECUTOR = Executor("small", "small", ">=3.10", "torch==2.4.1", ("demo-library==1.0",))
NO_SERVER = "http://127.0.0.1:9"


def write_wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"__version__ = {version!r}\n")
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", text)
        wheel.writestr(f"{info}/WHEEL", tag)
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one package index that can be reached, as folders of wheels; caches of their own."""
    simple = tmp_path / "simple"
    for name, version in (("torch", "2.4.1"), ("demo-library", "1.0")):
        (simple / name).mkdir(parents=True)
        write_wheel(simple / name, name.replace("-", "_"), version)
    serve = functools.partial(SimpleHTTPRequestHandler, directory=str(simple))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = tmp_path / "uv.toml"
        config.write_text(f'index-url = "http://127.0.0.1:{server.server_port}/"\n')
        monkeypatch.setenv("UV_CONFIG_FILE", str(config))
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv(name.lower(), NO_SERVER)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield simple
        server.shutdown()


def write_torch(index: Path, *, cuda: str | None) -> None:
    """Let the index have this build of PyTorch."""
    write_wheel(index / "torch", "torch", "2.4.1")
    with zipfile.ZipFile(index / "torch" / "torch-2.4.1-py3-none-any.whl", "a") as wheel:
        wheel.writestr("torch/__init__.py", "__version__ = '2.4.1'\n")
        wheel.writestr("torch/version.py", f"cuda: Optional[str] = {cuda!r}\n")


@pytest.mark.parametrize("cuda", [None, "12.1"])
def test_a_build_of_torch_for_processors_does_not_serve_a_job_with_gpus(
    index: Path, cuda: str | None
) -> None:
    write_torch(index, cuda=None)
    for_gpus = executors.for_gpus(EXECUTOR, "us-docker.pkg.dev/x/pytorch-gpu.2-4.py310:latest")
    without = executors.environment(EXECUTOR, lambda _line: None)
    assert without.name.endswith("-cpu")
    write_torch(index, cuda=cuda)
    if cuda is None:
        with pytest.raises(ExecutorError, match=r"has torch==2\.4\.1 without CUDA for .* Hint: "):
            executors.environment(for_gpus, lambda _line: None)
        return
    shutil.rmtree(os.environ["UV_CACHE_DIR"])  # it has the wheel of that name already
    with_cuda = executors.environment(for_gpus, lambda _line: None)
    assert with_cuda.name == without.name.replace("-cpu", "-cuda")
    assert executors.environment(EXECUTOR, lambda _line: None) == without
    shutil.rmtree(without)
    assert executors.environment(EXECUTOR, lambda _line: None) == with_cuda
    unnamed = with_cuda.rename(with_cuda.with_name(with_cuda.name.removesuffix("-cuda")))
    assert executors.environment(for_gpus, lambda _line: None) == unnamed


def test_an_image_for_gpus_has_a_framework_with_cuda() -> None:
    base = "us-docker.pkg.dev/vertex-ai/training/"
    frameworks = {}
    for name in (
        "tf-gpu.2-17.py310",
        "tf-cpu.2-17.py310",
        "xgboost-gpu.2-1",
        "pytorch-gpu.2-4.py310",
    ):
        executor = executors.for_image(base + name)
        assert executor
        frameworks[name] = executors.for_gpus(executor, f"{base}{name}:latest").framework
    assert list(frameworks.values()) == [
        "tensorflow[and-cuda]==2.17.1", "tensorflow-cpu==2.17.1", "xgboost==2.1.4", "torch==2.4.1"
    ]  # fmt: skip


def imported(folder: Path) -> str:
    """Versions of what an executor has, by its own Python."""
    code = "import torch, demo_library as d; print(torch.__version__, d.__version__)"
    command = [str(folder / "bin" / "python"), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.usefixtures("index")
def test_without_the_index_of_cpu_wheels_an_executor_has_the_default_ones() -> None:
    lines: list[str] = []
    folder = executors.environment(EXECUTOR, lines.append)
    assert imported(folder) == "2.4.1 1.0"
    assert any("default wheels" in line for line in lines)
    assert executors.environment(EXECUTOR, lines.append) == folder


def test_where_cpu_wheels_can_be_had_an_executor_has_these(index: Path, tmp_path: Path) -> None:
    folders = [str(folder) for folder in index.iterdir()]
    # In place of every index, that of CPU wheels too.
    (tmp_path / "uv.toml").write_text(f"no-index = true\nfind-links = {folders}\n")
    lines: list[str] = []
    assert imported(executors.environment(EXECUTOR, lines.append)) == "2.4.1 1.0"
    assert not any("default wheels" in line for line in lines)


def test_an_executor_whose_packages_cannot_be_had_is_built_by_the_next_job(index: Path) -> None:
    wheels, away = index / "demo-library", index.with_name("away")
    wheels.rename(away)
    with pytest.raises(ExecutorError, match="cannot build the environment"):
        executors.environment(EXECUTOR, lambda _line: None)
    away.rename(wheels)
    assert imported(executors.environment(EXECUTOR, lambda _line: None)) == "2.4.1 1.0"
