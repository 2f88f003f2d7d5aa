"""``world_of_a_listener.py FOLDER USER COMMAND…``: run COMMAND where a listener has every address.

Run as root of new user, network and mount namespaces. Names are those of FOLDER/hosts; the daemons
behind Unix sockets are the listener, too. Writes FOLDER/received.json: texts by address or socket.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

FOLDER, USER, COMMAND = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
received: dict[str, list[str]] = {}


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def serve(listener: socket.socket, name: str = "") -> None:
    def read(connection: socket.socket) -> None:
        at = name or connection.getsockname()[0].removeprefix("::ffff:")
        connection.settimeout(1)
        texts = received.setdefault(at, [])
        try:
            texts.append(connection.recv(65536).decode(errors="replace"))
        except OSError:
            texts.append("")
        connection.close()

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=read, args=(connection,), daemon=True).start()

    listener.listen(64)
    threading.Thread(target=accept, daemon=True).start()


def serve_datagrams(port: int) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO: the address that it was sent to
    listener.bind(("", port))

    def read() -> None:
        while True:
            data, extra, _, _ = listener.recvmsg(65536, 256)
            at = socket.inet_ntoa(extra[0][2][8:12])
            received.setdefault(at, []).append(data.decode(errors="replace"))

    threading.Thread(target=read, daemon=True).start()


def serve_unix(path: str, name: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    serve(listener, name)


run("mount", "--bind", str(FOLDER / "hosts"), "/etc/hosts")
run("mount", "--bind", str(FOLDER / "resolv.conf"), os.path.realpath("/etc/resolv.conf"))
run("mount", "-t", "tmpfs", "none", os.path.realpath("/run"))
run("ip", "link", "set", "lo", "up")
run("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo")
run("ip", "-6", "route", "add", "local", "::/0", "dev", "lo")
for port in (443, 80):
    serve(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True))
for port in (53, 443):
    serve_datagrams(port)
serve_unix("\0abstract", "abstract")
os.chdir("/run")
serve_unix("docker.sock", "docker")  # the kernel has no path of it
# As ssh does: bound by one name, found by another one.
serve_unix(str(FOLDER / "bound"), "renamed")
(FOLDER / "bound").rename(FOLDER / "renamed")
# In a folder with a character at which Python's splitlines() splits.
(FOLDER / "a\u2028b").mkdir()
serve_unix(str(FOLDER / "a\u2028b/socket"), "odd")
# As in a container with the machine's Docker: a socket that is bound elsewhere, mounted as a file.
for name in ("other", "another"):
    (FOLDER / name).mkdir()
os.chdir(FOLDER / "another")
serve_unix("elsewhere", "mounted")
(FOLDER / "other/mounted").touch()
run("mount", "--bind", "elsewhere", str(FOLDER / "other/mounted"))
os.chdir(FOLDER)
Path("net").touch()
run("mount", "--bind", "/proc/self/ns/net", "net")

user = ["unshare", "--user", f"--map-user={USER}", f"--map-group={USER}"] if USER != "0" else []
code = subprocess.run([*user, *COMMAND], check=False).returncode
Path("ended").touch()
time.sleep(6)  # for what outlives the command
Path("received.json").write_text(json.dumps(received))
sys.exit(code)
