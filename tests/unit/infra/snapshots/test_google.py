"""BigQuery's answers over HTTP: which mean that something is not there, and which do not."""

import http.server
import json
import threading

import pytest

from vertex_training.errors import PermissionDeniedError
from vertex_training.snapshots import google

RESULT = {"projectId": "local-training", "datasetId": "_a", "tableId": "t"}


@pytest.fixture
def answered(monkeypatch):
    """BigQuery that gives these answers in turn, the last of them from then on."""
    waiting, asked = list[tuple[int, str]](), list[str]()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, reason = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            errors = [{"reason": reason, "message": reason}]
            body = json.dumps({"error": {"message": reason, "errors": errors}} if reason else {})
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv(google.EMULATOR, f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(google, "PAUSES", (0.0, 0.0))

    def table(*answers):
        waiting[:], asked[:] = answers, []
        return google.BigQuery("local-training", "US").table(RESULT)

    table.asked = asked
    yield table
    server.shutdown()
    server.server_close()


def test_a_table_is_absent_only_if_bigquery_has_none_or_denies_it(answered):
    assert answered((404, "notFound")) is None
    assert answered((403, "accessDenied")) is None
    with pytest.raises(PermissionDeniedError, match="billingNotEnabled"):
        answered((403, "billingNotEnabled"))
