"""What is asked of other services over REST, answered from the inventory.

Callers have no identity here, so who asks holds every permission on what exists; and there are no
quotas. What a real project may have otherwise, a fault puts over an answer: ``deny`` makes it a no,
``answer`` changes fields of it, ``error`` makes it a refusal (``localgcp.faults.model``).

=================  =======================================================================
``methods``        one method: the requests that call it, what answers them
``serving``        finds the method of a request, applies its faults; the table of methods
``access``         IAM policies and permissions
``compute``        reservations, what is in a network, and what it is joined to
``limits``         organization policies in effect, and quotas
``projects``       a project: number, state, billing, APIs
``time_series``    how much accelerators of jobs do: nobody knows, unless a fault says it
``secretmanager``  values of secrets, by the rights of a job's account
``named``          what has a name that can be taken: buckets, accounts, secrets, keys
=================  =======================================================================

To serve one more method of Google's, add a row to one of these (``METHODS``), and its name to
``METHODS`` of ``localgcp.faults.model``; then ``python -m tools.generate.discovery``. What is no
read, and no question of a deployment, is in ``resources``.
"""
