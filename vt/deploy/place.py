"""Where a stack's engine works: the state and the cloud that ``pulumi`` meets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from infra.errors import CommandError
from vt.engine import stacks
from vt.engine.stacks import Place

BACKEND = "PULUMI_BACKEND_URL"


def environment(where: Place) -> dict[str, str]:
    """The environment for ``pulumi`` on this stack.

    A stack whose project begins with ``local-`` meets the local cloud, which is started. Any other
    meets the state that ``PULUMI_BACKEND_URL`` names; it has to be named, because without it a
    review starts from an empty state, and `pulumi` from wherever somebody logged in.

    Raises:
        CommandError: no state is named, or the local cloud does not start.
    """
    env = dict(stacks.environment(where, lambda text: print(f"vt: {text}", file=sys.stderr)))
    if not (where.is_local or env.get(BACKEND)):
        raise CommandError(f"{BACKEND} is not set.", "set it to the gs:// URL of the state.")
    path = env.get("PATH", os.defpath)
    tools = str(Path(sys.executable).parent)
    return env if where.is_local else {**env, "PATH": f"{tools}{os.pathsep}{path}"}
