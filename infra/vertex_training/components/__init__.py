"""Components of a stack: one logical entity per module, with its IAM.

===============  ============================================================
``storage``      buckets, code of jobs, secrets, snapshots, repository; ``TrainingBuckets``
``identities``   accounts that jobs run as, their grants; ``TrainingAccount``
``network``      network of jobs, and the connection of job machines; ``TrainingNetwork``
``capacity``     reservations; ``GpuReservation``
``training``     jobs; ``TrainingJob``
``serving``      model versions, endpoints and their traffic
``monitoring``   channels, alerts, budget, dashboards, TensorBoard
``iam``          APIs of the project, service agents and grants
``ordering``     order of resources; scope and provider of a component
``arguments``    from arguments of a component to a stack; mistakes by path
``sections``     sections of a stack file as typed dicts (generated)
===============  ============================================================

``Training*`` and ``GpuReservation`` are public components: each reads its arguments like a part of
a stack file and declares the same resources (docs/components.md). With a mistake in its arguments,
a component declares nothing. Modules with public components have no ``from __future__ import
annotations``, since Pulumi's component provider host reads annotations as objects.
"""
