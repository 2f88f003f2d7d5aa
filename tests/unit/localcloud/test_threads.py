"""Threads of the local cloud."""

from __future__ import annotations

import threading

from localgcp.threads import make_thread


def test_a_thread_calls_once_it_is_started_and_keeps_no_process_alive() -> None:
    called = list[tuple[object, ...]]()
    thread = make_thread(lambda *given: called.append((*given, threading.current_thread())), 1, "a")
    assert thread.daemon
    assert called == []
    thread.start()
    thread.join(20)
    assert called == [(1, "a", thread)]
