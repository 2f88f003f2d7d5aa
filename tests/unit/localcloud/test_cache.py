"""Where downloads and builds are kept between runs: the place that `make setup` uses as well."""

from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import cache_dir


def test_without_a_home_the_variable_to_set_is_named(monkeypatch):
    def no_home():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(LocalCloudError, match="VT_CACHE_DIR"):
        cache_dir({})
