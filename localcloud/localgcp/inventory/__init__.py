"""Resources and IAM policies of the local cloud. The gcp plugin writes; all services read.

====================  ================================================================
``store``             resources and IAM policies in SQLite; dataclasses as rows
``resource_paths``    references to resources, and their canonical paths
``vpc``               networks, their subnetworks and address ranges
``projects``          ids and numbers of local projects
``machines``          regions, machine types and GPUs
``reservations``      reservations of Compute Engine
====================  ================================================================
"""
