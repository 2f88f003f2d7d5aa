"""REST methods of other Google services, answered from the inventory.

Callers have no identity here, so who asks holds every permission on what exists; and there are no
quotas. What a real project may have otherwise, a fault puts over an answer: ``deny`` makes it a no,
``answer`` changes fields of it, ``error`` makes it a refusal (``localgcp.faults.model``).

=================  =======================================================================
``methods``        a request, and a method: what answers it, and what faults name it
``serving``        finds the method of a request, applies its faults; the table of methods
``resources``      IAM policies and permissions; resources read, made, changed and deleted
``compute``        reservations and networks, constraints and quotas
``projects``       a project, and what in it has a name that can be taken
``time_series``    utilization of accelerators: unknown, unless a fault gives it
``secretmanager``  values of secrets, by the rights of a job's account
=================  =======================================================================

To serve one more method of Google's, add a row to one of these (``METHODS``), and its name to
``METHODS`` of ``localgcp.faults.model``; then ``python -m tools.generate.discovery``. What is no
read, and no question of a deployment, is in ``resources.METHODS``.
"""
