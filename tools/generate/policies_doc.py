"""Write ``docs/policies.md``: every policy with its severity, reason, settings and standards.

    .venv/bin/python -m tools.generate.policies_doc          rewrite the file
    .venv/bin/python -m tools.generate.policies_doc --check  exit 1 if it is not up to date

A test runs ``--check``.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Final

from tools.generate import generated
from vertex_training.guardrails.policy import NOT_IN_STACKS, Policy, load

ROOT: Final = Path(__file__).parents[2]
TARGET: Final = ROOT / "docs" / "policies.md"
TITLES: Final = {
    "grants": "Rights and networks",
    "storage": "Buckets, repositories and secrets",
    "jobs": "Jobs, models and endpoints",
}
HEAD: Final = """\
# Policies

Policies find what the service would accept and the team would not; [rules](rules.md) find job
files that the service would refuse. They are a part of the package, and a folder `policy/` serves
them, here and in every [repository of one's own](new-repository.md), without Pulumi Cloud.

```sh
.venv/bin/vt local shell -c 'pulumi preview -s prod --policy-pack policy'
```

A violation of a mandatory policy fails the preview with exit code 1, after all violations are
listed; `pulumi up` stops before it changes the resource. A value that a preview does not know
passes, and is checked during `up`.

**Levels** are `advisory`, `mandatory` and `disabled`. Every policy is `mandatory`, unless the
stack file says otherwise:

```yaml
vertex-training:policyLevels: {job-in-a-network: advisory, registry-cleanup: disabled}
```

`vt review`, `vt deploy` and `vt up` apply these levels wherever a pack is given. A review names
every policy that is not mandatory, and has a level that is lower than in the deployed stack in its
headline. Policies that only production needs do not apply to stacks named `local…` and `dev…`
(`notInStacks`).

**Another level for once**, such as what production would require of `dev`, is a file, which may
have settings too. It wins over the stack file, policy by policy:

```json
{
  "data-protected": {"enforcementLevel": "advisory", "notInStacks": []},
  "job-image-by-digest": {"enforcementLevel": "advisory", "notInStacks": []},
  "job-in-a-network": {"enforcementLevel": "advisory", "notInStacks": []},
  "registry-immutable-tags": {"enforcementLevel": "advisory", "notInStacks": []}
}
```

```sh
vt review --stack dev --policy-pack policy --policy-levels production.json
make preview STACK=dev LEVELS=production.json   # and make report, make deploy
```

A plain `pulumi` takes it as `--policy-pack-config`, and does not apply the levels of the stack
file.

**Patterns and accounts.** In `byTag`, `*` stands for text without `/`, `**` for many parts, and a
name with `..` matches nothing. `accounts` lists addresses in full: an account is judged by its
address, `NAME-STACK@PROJECT`, not by its rights.

**Settings of one's own** stand in `policy/__main__.py` of a repository, before `pack.serve()`:

```py
policy.configure("job-in-a-network", without=["training-mnist"])
```

**A policy of one's own** stands in the folder `policy/`, in a module that `__main__.py` imports:

```python
from vertex_training.guardrails.policy import policy, text


@policy("acme-names", "low", why="Invoices are sorted by it.", url="https://acme.example/names")
def bucket_name(resource, settings):
    "Names of buckets begin with acme-."
    if resource.type == "gcp:storage/bucket:Bucket":
        if not text(resource.props, "name").startswith("acme-"):
            yield "its name begins otherwise. Hint: so does the project's id"
```

CIS GCP: CIS Google Cloud Platform Foundation Benchmark, version 2.0. CKV: checks of Checkov with
the same aim.
"""


def generate() -> str:
    """The file's text."""
    parts = [HEAD]
    for subject, group in itertools.groupby(load(), key=lambda policy: policy.subject):
        parts += [f"## {TITLES[subject]}\n"]
        parts += ["| Policy | Severity | Requirement, and why | Settings | Elsewhere |"]
        parts += ["|---|---|---|---|---|", *(_row(policy) for policy in group), ""]
    return "\n".join(parts).rstrip() + "\n"


def _row(policy: Policy) -> str:
    given = {k: v for k, v in policy.settings.items() if v or k != NOT_IN_STACKS}
    settings = "<br>".join(f"`{k}`: `{json.dumps(v)}`" for k, v in given.items())
    elsewhere = "<br>".join(policy.standards)
    text = f"{policy.what}<br>{policy.why} ([docs]({policy.url}))"
    return f"| `{policy.id}` | {policy.severity} | {text} | {settings} | {elsewhere} |"


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.policies_doc"))
