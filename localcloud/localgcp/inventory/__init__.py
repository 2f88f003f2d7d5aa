"""Resources and IAM policies of the local cloud: the gcp plugin writes them, all services read
them.

====================  ================================================================
``store``             resources and IAM policies in one SQLite file
``rows``              dataclasses as rows of SQLite
``resource_paths``    references to resources, and the one form that the store compares
``vpc``               networks, what belongs to them, and their address ranges
``projects``          which projects are local, and their numbers
``machines``          machine types and their GPUs
``reservations``      Compute Engine reservations, as jobs and the plugin see them
====================  ================================================================
"""
