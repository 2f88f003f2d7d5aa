"""Packages whose own code runs only when a name is asked of them that is not one of their modules.

``google.cloud.aiplatform_v1`` loads forty services when it is first imported: four seconds, of
which the one that is used here takes less than one. It lists them as ``__lazy_modules__``, and
Python 3.15 obeys (PEP 810); this does it for earlier versions.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

#: The Python that does it by itself.
NATIVE = (3, 15)
_RAN = "__ran_on_demand__"
_one_at_a_time = threading.RLock()


class _Package(ModuleType):
    """A package whose own code has not run yet."""

    def __getattr__(self, name: str) -> Any:
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        with _one_at_a_time:  # others wait until every name is there
            if _RAN not in vars(self):
                self._run()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def _run(self) -> None:
        spec = self.__spec__
        assert spec is not None  # `load` gave it one,
        assert spec.loader is not None  # with the loader of a package of files
        vars(self)[_RAN] = True  # first: its code asks for names of its own
        try:
            spec.loader.exec_module(self)
        except BaseException:
            del vars(self)[_RAN]
            raise


def load(name: str) -> None:
    """Make a package importable without running its code; nothing if it runs or ran already.

    Raises:
        ModuleNotFoundError: there is no such package.
    """
    if sys.version_info >= NATIVE:
        return
    with _one_at_a_time:
        if name in sys.modules:
            return
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        package = importlib.util.module_from_spec(spec)
        package.__class__ = _Package
        sys.modules[name] = package
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, package)
