"""Answers with the probability of surviving, a number a passenger."""

import sys

from vertex_job.serving import artifact, serve

from titanic import portable


class Survival:
    """The model that a run of ``titanic.task`` left."""

    def __init__(self):
        self.model = portable.load(artifact("model.json"))

    def parse(self, instance):
        return portable.parse(instance)

    def predict(self, rows):
        return self.model.probabilities(portable.columns(rows)).tolist()


if __name__ == "__main__":
    sys.exit(serve(Survival))
