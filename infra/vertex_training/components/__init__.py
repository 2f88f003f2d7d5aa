"""The components of a stack: one logical entity a module, each with its IAM inside.

===============  ============================================================
``apis``         the project's APIs, and the Vertex AI service agent
``storage``      buckets, objects, code of jobs, snapshots; ``TrainingBuckets``
``registry``     the Docker repository, and the account that builds images
``secrets``      containers of secrets, never their values
``identities``   accounts that jobs run as, their grants; ``TrainingAccount``
``network``      the network jobs reach; ``TrainingNetwork``
``connections``  how machines join it: peering, an interface, a Shared VPC
``capacity``     reservations; ``GpuReservation``
``training``     the jobs; ``TrainingJob``
``serving``      model versions, endpoints, and what each endpoint serves
``monitoring``   channels, alerts, the budget, dashboards, TensorBoard
``iam``          makes every grant
``ordering``     order of resources; scope of a component; its provider's project and account
``environment``  what was declared, for what is declared beside it
``arguments``    arguments of a component -> a stack, mistakes at their paths
``sections``     sections of a stack file as typed dicts (generated)
===============  ============================================================

A component takes its scope, the stack or its settings, and what it waits for. Those whose names
begin with ``Training``, and ``GpuReservation``, are for other programs: each reads its arguments as
a part of a stack file and makes what the program makes of that part, with the same names, rules and
messages (docs/components.md). It checks before it declares; with a mistake, nothing is declared.

Modules with those have no ``from __future__ import annotations``: Pulumi's component provider host
reads annotations as objects.
"""
