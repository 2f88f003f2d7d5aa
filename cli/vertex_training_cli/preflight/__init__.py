"""``vt preflight``: read-only checks before a deployment, for requests that Google would refuse.

=========================  ======================================================================
``command``                the command line; the table of parts, and their execution
``answers``                one answer, and all of them as text, Markdown and JSON
``context``                the declared stack, its state, and the account of the requests
``asking``                 requests to Google's services: only GET and ``testIamPermissions``
``identity``               the project: number, state, billing, APIs, Google's service agents
``rights``                 permissions of the deploying account for all steps of the plan
``names``                  taken names; differences of existing resources
``images``                 images of jobs: existence and pull access
``organization_policies``  policies in effect, and the resources that they refuse
``quotas``                 limits of quotas, and the need of jobs and resources
``networks``               the network of jobs: existence, addresses, peering, host and zones
``reservations``           existing reservations, and their machines
=========================  ======================================================================

To add a part, write a module with a function ``(PreflightContext) -> Iterator[Answer]``, and add a
row to ``command.PARTS``. To test a refusal, add a method to ``localgcp.reads``, and a fault of kind
``deny``, ``patch`` or ``error`` for it (``localgcp.faults.model``).
"""
