"""Server of survival probabilities, one number per passenger."""

import sys

from vertex_job.serving import artifact, serve

from titanic import portable


class Survival:
    """Model from a run of ``titanic.task``."""

    def __init__(self):
        self.model = portable.load(artifact("model.json"))

    def parse(self, instance):
        return portable.parse(instance)

    def predict(self, rows):
        return self.model.probabilities(portable.columns(rows)).tolist()


if __name__ == "__main__":
    sys.exit(serve(Survival))
