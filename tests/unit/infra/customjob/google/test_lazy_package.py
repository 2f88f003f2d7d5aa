"""Packages loaded without running their own code, and Google's client among them."""

import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from vertex_training.customjob.google import load_lazily


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package ``outer.eager`` whose code counts how often it runs."""
    files = {
        "outer/__init__.py": "runs = 0",
        "outer/eager/__init__.py": """
            import outer
            outer.runs += 1
            from outer.eager import part
            from .part import thing
            fails = outer.__dict__.get("fails")
            if fails:
                raise RuntimeError("broken")
            late = thing + 1
            """,
        "outer/eager/part.py": "thing = 1",
        "outer/eager/other.py": "from outer.eager import part",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "outer"]:
        monkeypatch.delitem(sys.modules, name)
    load_lazily("outer.eager")
    return "outer.eager"


def outer() -> ModuleType:
    return sys.modules["outer"]


def test_a_missing_package_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'outer_not_there'"):
        load_lazily("outer_not_there")


def printed(code: str) -> str:
    """What a process of its own says: here, Google's client may be loaded already."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_the_client_comes_without_the_services_beside_it() -> None:
    loaded = printed(
        "import sys\n"
        "from vertex_training.customjob.google import vertex_api\n"
        "print(*sorted({m.split('.')[4] for m in sys.modules\n"
        "    if m.startswith('google.cloud.aiplatform_v1.services.')}))"
    )
    assert loaded == "job_service"


def test_other_classes_of_the_client_load_on_first_use() -> None:
    same = printed(
        "from vertex_training.customjob.google import vertex_api\n"
        "from google.cloud import aiplatform_v1\n"
        "print(all(getattr(aiplatform_v1, name) is getattr(vertex_api, name)\n"
        "    for name in vars(vertex_api)\n"
        "    if name[0].isupper() and name != 'JobServiceGrpcTransport'),\n"
        "    aiplatform_v1.ModelServiceClient.__name__)"
    )
    assert same == "True ModelServiceClient"
