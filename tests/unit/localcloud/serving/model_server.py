"""A model's container in the standard library: predicts ``slope * x`` of its ``model.json``.

Its words: ``unhealthy`` (health is 503), ``until FILE`` and ``while FILE`` (healthy once, and
while, FILE is there), ``ends N`` (ends at once), ``status N`` and ``answer TEXT`` (to requests),
``slow N`` (seconds for an answer), ``tell`` (predicts its variables), ``raw`` (sends back).
"""

import http.server
import json
import os
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

WORDS = sys.argv[1:]


def given(word: str, default: str = "") -> str:
    return WORDS[WORDS.index(word) + 1] if word in WORDS else default


def slope() -> float:
    uri = os.environ["AIP_STORAGE_URI"]
    if not uri:
        return 1.0
    bucket, _, folder = uri.removeprefix("gs://").partition("/")
    name = urllib.parse.quote(f"{folder}/model.json", safe="")
    url = f"{os.environ['STORAGE_EMULATOR_HOST']}/storage/v1/b/{bucket}/o/{name}?alt=media"
    with urllib.request.urlopen(url) as found:
        return json.load(found)["slope"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        well = "unhealthy" not in WORDS and self.path == os.environ["AIP_HEALTH_ROUTE"]
        well = well and (not given("until") or Path(given("until")).exists())
        well = well and (not given("while") or Path(given("while")).exists())
        self.answer(200 if well else 503, b"{}")

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        print("asked", flush=True)
        time.sleep(float(given("slow", "0")))
        if self.path != os.environ["AIP_PREDICT_ROUTE"]:
            self.answer(404, b"no such route")
        elif "raw" in WORDS:
            self.answer(200, sent, "text/plain")
        elif "tell" in WORDS:
            told = ("AIP_", "MY_", "VERTEX_JOB_")
            known = {k: v for k, v in os.environ.items() if k.startswith(told)}
            self.answer(200, json.dumps({"predictions": [known], "metadata": WORDS}).encode())
        elif given("answer"):
            self.answer(int(given("status", "200")), given("answer").encode())
        else:
            found = [SLOPE * float(each) for each in json.loads(sent)["instances"]]
            body = json.dumps({"predictions": found}).encode()
            self.answer(int(given("status", "200")), body)

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        print(format % args, flush=True)


if given("ends"):
    sys.exit(int(given("ends")))
SLOPE = slope()
address = ("127.0.0.1", int(os.environ["AIP_HTTP_PORT"]))
print(f"serving at {address}", flush=True)
http.server.ThreadingHTTPServer(address, Handler).serve_forever()
