"""The job provider's earlier place: states of 0.1 name it, and the engine loads it to delete a job.

``infra`` has no ``__init__.py``, so it is a namespace: a company's own package ``infra`` hides
nothing of ours but this name.
"""

from vertex_training.infra.customjob.provider import CustomJobProvider

__all__ = ["CustomJobProvider"]
