"""Entry point of ``pulumi preview --policy-pack policy``: serve the policies to the engine.

The engine runs this file in ``.venv/policy``, which ``make setup`` creates, because the policy SDK
needs an older protobuf than Google's clients.
"""

import sys
from pathlib import Path

# The policies import the patterns of secrets from the program in the folder `infra`.
sys.path.append(str(Path(__file__).parents[1] / "infra"))

from vertex_training.guardrails import pack, policy

# The sample job uses public data and no network.
policy.configure("job-in-a-network", without=["training-titanic"])
pack.serve()
