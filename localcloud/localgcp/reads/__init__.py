"""REST methods of other Google services, answered from the inventory.

Callers have all permissions on existing resources, and quotas are unlimited, unless a fault changes
the answer (``localgcp.faults.model``).

=================  =======================================================================
``methods``        a request and a method
``serving``        finds the method of a request and applies faults; utilization of jobs
``resources``      IAM policies and permissions; reads and changes of resources
``compute``        reservations, networks, constraints and quotas
``projects``       projects, and resources with globally unique names
``secretmanager``  values of secrets, for jobs whose account has a role
=================  =======================================================================

To serve another method, add a row to ``METHODS`` of one of these modules and to ``METHODS`` of
``localgcp.faults.model``, and run ``python -m tools.generate.discovery``.
"""
