"""Entry point of ``pulumi preview --policy-pack policy``: serves the policies until it is ended.

The engine runs this in ``.venv/policy``, which ``make setup`` makes: the SDK for policies needs an
older protobuf than Google's clients. Everything below ``guardrails`` but ``pack`` is plain Python.
"""

import sys
from pathlib import Path

# Patterns that job files are judged by are shared with the program, which lies beside this folder.
sys.path.append(str(Path(__file__).parents[1]))

from guardrails import pack

pack.serve()
