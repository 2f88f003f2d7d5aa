"""``vt preflight``: read-only checks before a deployment, for requests that Google would refuse.

=========================  ======================================================================
``command``                the command line; the table of checks
``context``                the read-only client, the declared stack, its state, the caller; answers
``rights``                 project, billing, APIs; permissions of the deploying account
``names``                  unused names of new resources; existing resources; images
``organization_policies``  policies in effect, and the resources that they refuse
``quotas``                 limits of quotas; existing reservations, and their machines
``networks``               the network of jobs: existence, addresses, peering, host, zones
=========================  ======================================================================

To add a check, write a function ``(PreflightContext) -> Iterator[Answer]``, and add a row to
``command.PARTS``. To test a refusal, add a method to ``localgcp.reads``, and a fault of kind
``deny``, ``patch`` or ``error`` for the method (``localgcp.faults.model``).
"""
