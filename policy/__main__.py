"""Entry point of ``pulumi preview --policy-pack policy``: serve the policies to the engine.

The engine runs this in ``.venv/policy``, which ``make setup`` creates, because the policy SDK needs
an older protobuf than Google's clients. In ``guardrails``, only ``pack`` loads the SDK.
"""

import sys
from pathlib import Path

# The program, beside this folder, has the patterns of secrets that its rules for job files use.
sys.path.append(str(Path(__file__).parents[1] / "infra"))

from vertex_training.guardrails import pack, policy

# The sample: its data is public, and it calls nobody.
policy.configure("job-in-a-network", without=["training-titanic"])
pack.serve()
