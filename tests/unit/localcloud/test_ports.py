"""The ports of a server that is started for the first time."""

from localgcp import lifecycle


def test_they_are_free_ones_that_any_user_may_have(home):
    try:
        info = lifecycle.start(home, lambda _: None)
    finally:
        lifecycle.stop(home)
    assert info.vertex_port > 1023
    assert info.storage_port > 1023
    assert info.vertex_port != info.storage_port
