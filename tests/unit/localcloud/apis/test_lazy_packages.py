"""A package that is loaded without its own code, until somebody reads a name of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localgcp.apis.client import load_lazily

CODE = """\
import sys
sys.ran = [*getattr(sys, "ran", ()), __name__]
from lazyouter.inner import module
import lazyouter.inner
NAME = (lazyouter.inner.module.VALUE, module.VALUE)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """``lazyouter.inner``, whose code notes in ``sys.ran`` that it runs."""
    inner = tmp_path / "lazyouter" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").touch()
    (inner / "__init__.py").write_text(CODE)
    (inner / "module.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "ran", [], raising=False)
    importlib.invalidate_caches()
    yield inner
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazyouter"]:
        del sys.modules[name]


def ran() -> list[str]:
    return sys.ran  # type: ignore[attr-defined]


@pytest.mark.usefixtures("package")
def test_the_code_of_a_package_runs_once_a_name_of_it_is_read() -> None:
    load_lazily("lazyouter.inner")
    found = importlib.import_module("lazyouter.inner")
    assert sys.modules["lazyouter"].inner is found
    assert importlib.import_module("lazyouter.inner.module").VALUE == 7
    assert found.module.VALUE == 7
    assert ran() == []
    assert found.NAME == (7, 7)
    with pytest.raises(AttributeError, match=r"^module 'lazyouter\.inner' has no attribute 'NO'$"):
        _ = found.NO
    load_lazily("lazyouter.inner")
    assert importlib.import_module("lazyouter.inner") is found
    assert ran() == ["lazyouter.inner"]


def test_code_that_fails_is_run_again_by_who_reads_a_name_next(package: Path) -> None:
    (package / "__init__.py").write_text(f"{CODE}\nif len(sys.ran) < 2:\n    raise OSError('no')\n")
    load_lazily("lazyouter.inner")
    found = importlib.import_module("lazyouter.inner")
    with pytest.raises(OSError, match="no"):
        _ = found.OTHER
    with pytest.raises(AttributeError):
        _ = found.OTHER
    assert ran() == ["lazyouter.inner"] * 2
