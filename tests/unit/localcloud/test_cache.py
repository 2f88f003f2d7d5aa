"""Where downloads and builds are kept between runs: the place that `make setup` uses as well."""

from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import cache_dir
from vertex_training_cli.toolchain import layout


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"XDG_CACHE_HOME": "/xdg"},
        {"XDG_CACHE_HOME": "relative"},
        {"VT_CACHE_DIR": "/own", "XDG_CACHE_HOME": "/xdg"},
    ],
)
def test_it_is_where_make_setup_has_it(env):
    assert cache_dir(env) == layout.cache_home(env)


def test_it_is_below_the_home_of_the_user_unless_something_else_is_named(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert cache_dir({}) == Path("/home/ann/.cache/vertex-training")
    assert cache_dir({"VT_CACHE_DIR": "~/own"}) == Path("/home/ann/own")


def test_without_a_home_the_variable_to_set_is_named(monkeypatch):
    def no_home():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(LocalCloudError, match="VT_CACHE_DIR"):
        cache_dir({})
