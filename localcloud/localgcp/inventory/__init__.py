"""Resources and IAM policies of the local cloud. The gcp plugin writes; all services read.

====================  ================================================================
``store``             resources, IAM policies, service agents; dataclasses as rows
``resource_paths``    ids of local projects; references to resources, and their paths
``vpc``               networks, their subnetworks and address ranges
``machines``          regions, machine types, GPUs, reservations of Compute Engine
====================  ================================================================
"""
