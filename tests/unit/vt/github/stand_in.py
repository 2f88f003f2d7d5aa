"""A stand-in for ``gh api``: a GitHub of one repository in a JSON file, named by GH_STATE.

It knows what the commands here ask for, gives two entries a page, and prints page after page as
``gh api --paginate`` does. What it does not know ends it with an error, as GitHub's 404 does.
"""

import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

PAGE = 2
REPO = "repos/acme/training"
#: The commits that a pull request brought to the main branch.
MAIN = ("d" * 40,)


def main(words):
    if not os.environ.get("GH_TOKEN"):
        sys.exit("gh: To use GitHub CLI in a GitHub Actions workflow, set GH_TOKEN")
    file = Path(os.environ["GH_STATE"])
    state = json.loads(file.read_text())
    if "--paginate" in words:
        path, _, query = words[-1].removeprefix(f"{REPO}/").partition("?")
        asked = dict(pair.split("=") for pair in query.split("&") if pair)
        if (found := document(state, path, asked)) is not None:
            print(json.dumps(found))
            return
        entries = listed(state, path, asked)
        for start in range(0, len(entries) or 1, PAGE):
            print(json.dumps(entries[start : start + PAGE]))
        return
    if len(words) == 1 and (
        found := re.fullmatch(rf"{REPO}/actions/artifacts/(\d+)/zip", words[0])
    ):
        artifact = next(each for each in state["artifacts"] if each["id"] == int(found[1]))
        sys.stdout.buffer.write(Path(artifact["file"]).read_bytes())
        return
    method, path = words[1], words[2].removeprefix(f"{REPO}/")
    state["calls"].append(f"{method} {path}")
    entry = written(state, method, path, json.loads(sys.stdin.read()))
    file.write_text(json.dumps(state))
    print(json.dumps(entry))


def document(state, path, query):
    """What is one object, not a list."""
    if path == "actions/artifacts":
        named = [each for each in state["artifacts"] if each["name"] == query["name"]]
        return {"total_count": len(named), "artifacts": named}
    if found := re.fullmatch(r"actions/runs/(\d+)", path):
        return next(each for each in state["runs"] if each["id"] == int(found[1]))
    if found := re.fullmatch(r"actions/runs/(\d+)/artifacts", path):
        run = int(found[1])
        own = [a for a in state["artifacts"] if (a["workflow_run"] or {}).get("id") == run]
        return {"total_count": len(own), "artifacts": own}
    if found := re.fullmatch(r"pulls/(\d+)", path):
        return next(each for each in state["open_pulls"] if each["number"] == int(found[1]))
    if found := re.fullmatch(r"git/commits/(\w+)", path):
        return next(each for each in state["commits"] if each["sha"] == found[1])
    return None


def listed(state, path, query):
    if found := re.fullmatch(r"issues/(\d+)/comments", path):
        return [each for each in state["comments"] if each["issue"] == int(found[1])]
    if found := re.fullmatch(r"commits/(\w+)/pulls", path):
        return [pull for pull in state["pulls"] if found[1] in pull.get("commits", MAIN)]
    if path == "pulls":
        assert query["state"] == "open"
        owner, _, branch = unquote(query["head"]).partition(":")
        return [
            each
            for each in state["open_pulls"]
            if each["head"]["ref"] == branch
            and each["head"]["repo"]["full_name"].partition("/")[0] == owner
        ]
    if path == "issues":
        assert query["state"] == "all"
        return [each for each in state["issues"] if query["labels"] in each["labels"]]
    sys.exit(f"gh: Not Found (HTTP 404): {path}")


def written(state, method, path, body):
    bot = {"login": "github-actions[bot]"}
    if method == "POST" and (found := re.fullmatch(r"issues/(\d+)/comments", path)):
        entry = {"id": 100 + len(state["comments"]), "issue": int(found[1]), "user": bot, **body}
        state["comments"].append(entry)
    elif method == "POST" and path == "issues":
        number = 1 + len(state["issues"])
        entry = {"id": number, "number": number, "state": "open", "user": bot, **body}
        state["issues"].append(entry)
    elif method == "PATCH":
        kind = "comments" if "comments" in path else "issues"
        number = int(path.rpartition("/")[2])
        entry = next(each for each in state[kind] if each["id"] == number)
        entry.update(body)
    else:
        sys.exit(f"gh: Not Found (HTTP 404): {method} {path}")
    entry["updated_at"] = f"written {len(state['calls'])}"
    entry["html_url"] = f"https://github.example/{path}"
    return entry


if __name__ == "__main__":
    main(sys.argv[2:])
