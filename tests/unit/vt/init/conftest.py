"""Journals of interrupted commands stay out of the user's cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
