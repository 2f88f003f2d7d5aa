"""The components of the package: parts of an environment beside the resources of other programs.

=================  ========================================================================
``environment``    ``TrainingEnvironment``: all of it, as a stack file describes it
``buckets``        ``TrainingBuckets``: buckets for data, artifacts, code and records
``account``        ``TrainingAccount``: an account that jobs run as, and its grants
``network``        ``TrainingNetwork``: how jobs reach a network
``reservation``    ``GpuReservation``: machines that are kept for jobs
``job``            ``TrainingJob``: one job, submitted once
``sections``       the sections of a stack file as typed dicts (generated)
``reading``        arguments -> the config of a stack, with every mistake at its path
``declaring``      order, APIs and outputs, as all components declare them
``host``           the plugin that serves them to programs in other languages
``shared_status``  lets that plugin also load Google's clients
=================  ========================================================================

A component reads its arguments as a part of a stack file and makes what the program of a stack file
makes of that part: the same names, rules and messages (docs/components.md). It checks before it
declares; with a mistake, nothing of it is declared.

Modules with components have no ``from __future__ import annotations``: Pulumi's component provider
host reads annotations as objects.
"""
