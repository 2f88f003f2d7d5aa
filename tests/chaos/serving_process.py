"""Uploads a version and updates an endpoint, by the real providers, in processes to kill.

``python -m tests.chaos.serving_process`` loads Google's clients once. For each line of its stdin,
the properties of both resources as JSON, a child does the work; its id is printed, and after one
more line how it ended: so its id is nobody else's while it may be killed. A process that only loads
libraries would be killed at nothing.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, ClassVar, Final

from tests.chaos.impatient import TIMING
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.protocol.ports import Timing
from vertex_training.customjob.protocol.waiting import PollBackoff
from vertex_training.serving import google, provider
from vertex_training.serving.ports import OperationWait

#: What ``connect`` loads late in a provider.
LOADED: Final = (intent_store, google)
WAIT: Final = OperationWait(backoff=PollBackoff(0.05, 0.3), doubt=4.0)


class ImpatientVersions(provider.ModelVersionProvider):
    """The real provider with shorter bounds."""

    timing: ClassVar[Timing] = TIMING
    wait: ClassVar[OperationWait] = WAIT


class ImpatientTraffic(provider.DeployedModelsProvider):
    """The real provider with shorter bounds."""

    wait: ClassVar[OperationWait] = WAIT


def work(given: dict[str, Any]) -> int:
    """Upload, then deploy and split, as the engine calls the providers. Return the exit code."""
    versions, traffic = ImpatientVersions(), ImpatientTraffic()
    try:
        made = {name: versions.create(each).id for name, each in given["versions"].items()}
        deployed = given["traffic"]["deployed"]
        for name, each in deployed.items():
            each["model"] = made[name]
        traffic.update("", {}, given["traffic"])
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def main(work: Callable[[dict[str, Any]], int]) -> None:
    """Fork a child for each input line."""
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            with open(os.environ["CHAOS_LOG"], "a") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            os._exit(work(json.loads(line)))
        print(pid, flush=True)
        sys.stdin.readline()
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    main(work)
