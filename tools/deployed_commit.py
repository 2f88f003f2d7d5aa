"""Print the commit of main that a stack was last deployed from: ``make deployed``, in a workflow.

The engine stores each update, with its commit, below ``.pulumi/history`` in the state's bucket.
Only the deployment account writes there. A commit counts only if its update succeeded, and if the
commit is HEAD or an ancestor of HEAD.

Prints the commit and adds ``commit=…`` to GITHUB_OUTPUT. Exit code 1: no such commit.

Runs before any package is installed: requires only Python, git, and a signed-in gcloud.
"""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import zlib

#: Number of updates to read, newest first. Updates by hand can be from commits outside of main.
READ = 20


def main(stack):
    backend = os.environ.get("PULUMI_BACKEND_URL", "").rstrip("/")
    if not backend.startswith("gs://"):
        return "PULUMI_BACKEND_URL is not set to the gs:// URL of the state."
    folder = f"{backend}/.pulumi/history/{project()}/{stack}"
    # With PULUMI_DIY_BACKEND_GZIP the engine writes .history.json.gz; older files keep their names.
    listed = run("gcloud", "storage", "ls", f"{folder}/*.history.json*")
    if listed.returncode:
        return f"cannot read the deployments of stack {stack} in {folder}: {text(listed.stderr)}"
    # Names end with the time in nanoseconds.
    names = [name for name in text(listed.stdout).split() if name.endswith((".json", ".gz"))]
    for name in sorted(names, reverse=True)[:READ]:
        read = run("gcloud", "storage", "cat", name)
        if read.returncode:
            return f"cannot read {name}: {text(read.stderr)}"
        commit = commit_of(read.stdout)
        if commit and run("git", "merge-base", "--is-ancestor", commit, "HEAD").returncode == 0:
            print(commit)
            if output := os.environ.get("GITHUB_OUTPUT"):
                with open(output, "a", encoding="utf-8") as file:
                    file.write(f"commit={commit}\n")
            return 0
        print(f"skipped: {name} is not a successful update from a commit of main", file=sys.stderr)
    return (
        f"none of the last {READ} updates of stack {stack} is from a commit of main. Deploy "
        "main first."
    )


def project():
    """Return the name in Pulumi.yaml."""
    text = pathlib.Path("Pulumi.yaml").read_text(encoding="utf-8")
    match = re.search(r"^name:\s*[\"']?([A-Za-z0-9_.-]+)", text, re.MULTILINE)
    return match[1] if match else ""


def commit_of(update):
    """Return the commit of a successful ``pulumi up``; empty for a failed one or a refresh."""
    try:
        document = json.loads(gzip.decompress(update) if update.startswith(b"\x1f\x8b") else update)
        deployed = document["kind"] == "update" and document["result"] == "succeeded"
        commit = document["environment"]["git.head"] if deployed else ""
    except (ValueError, LookupError, TypeError, RecursionError, OSError, EOFError, zlib.error):
        return ""
    return commit if isinstance(commit, str) and re.fullmatch("[0-9a-f]{40}", commit) else ""


def run(*command):
    return subprocess.run(command, capture_output=True, check=False)


def text(output):
    return output.decode(errors="replace").strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
