"""Write ``docs/policies.md``: every policy with its severity, reason, settings and kin elsewhere.

    .venv/bin/python -m tools.generate.policies_doc          rewrite the file
    .venv/bin/python -m tools.generate.policies_doc --check  exit 1 if it is not what the code says

A test runs ``--check``.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
sys.path.append(str(ROOT / "policy"))

from guardrails.policy import NOT_IN_STACKS, Policy, load  # noqa: E402 - needs the path above
from tools.generate import generated  # noqa: E402

TARGET: Final = ROOT / "docs" / "policies.md"
TITLES: Final = {
    "grants": "Who may do what",
    "buckets": "Buckets",
    "registry": "Docker repositories",
    "jobs": "Training jobs",
    "encryption": "Keys",
    "network": "Networks",
}
HEAD: Final = """\
# Policies

What a stack must not do, whoever wrote its files. The checks of the program (see
[rules.md](rules.md)) tell the author of a job what the service would refuse; policies tell the
reviewer what the service would accept and the team would not.

```sh
.venv/bin/vt local shell -c 'pulumi preview -s prod --policy-pack policy'
.venv/bin/vt local shell -c 'pulumi preview -s dev --policy-pack policy \\
    --policy-pack-config policy/levels.dev.json'
```

No Pulumi Cloud is involved. A mandatory policy that is broken fails the preview with exit code 1,
after all violations were listed; in `pulumi up` it stops before the resource is touched. What a
preview does not know yet passes, and is judged during `up`, when it is known.

**Levels.** Every policy is `mandatory`. Policies that only make sense in production leave stacks
called `local…` and `dev…` alone; all other stacks are held to everything, whatever their name.
`--policy-pack-config FILE` changes levels (`advisory`, `mandatory`, `disabled`) and settings, by
policy: [policy/levels.dev.json](../policy/levels.dev.json) shows developers what production will
ask for, [policy/levels.prod.json](../policy/levels.prod.json) holds to it a stack of any name.

**Adding one.** A function with `@policy` in `policy/guardrails/`, a resource made wrong in
`tests/policy/cases.yaml`, then `python -m tools.generate.policies_doc`, which writes this page.

CIS GCP: CIS Google Cloud Platform Foundation Benchmark, version 2.0. CKV: checks of Checkov with
the same aim.
"""


def generate() -> str:
    """The file's text."""
    parts = [HEAD]
    for subject, group in itertools.groupby(load(), key=lambda policy: policy.subject):
        parts += [f"## {TITLES[subject]}\n"]
        parts += ["| Policy | Severity | What it holds, and why | Settings | Elsewhere |"]
        parts += ["|---|---|---|---|---|", *(_row(policy) for policy in group), ""]
    return "\n".join(parts).rstrip() + "\n"


def _row(policy: Policy) -> str:
    given = {k: v for k, v in policy.settings.items() if v or k != NOT_IN_STACKS}
    settings = "<br>".join(f"`{k}`: `{json.dumps(v)}`" for k, v in given.items())
    elsewhere = "<br>".join(policy.standards)
    told = f"{policy.what}<br>{policy.why} ([docs]({policy.url}))"
    return f"| `{policy.id}` | {policy.severity} | {told} | {settings} | {elsewhere} |"


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.policies_doc"))
