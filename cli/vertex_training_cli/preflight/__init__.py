"""``vt preflight``: what a project would refuse of a deployment, asked before anything is made.

=========================  ======================================================================
``command``                the command line; the table of parts, and how they are run
``answers``                one answer, and all of them as text, Markdown and JSON
``context``                what a stack declares, its state, and who is asked in whose name
``asking``                 reads of Google's services: GET and ``testIamPermissions``, nothing else
``identity``               the project: number, state, billing, APIs, Google's service agents
``rights``                 permissions of who deploys, for everything that the plan needs
``names``                  names that are taken; what exists and is otherwise than declared
``images``                 images of jobs: whether they exist, and who may pull them
``organization_policies``  policies in effect, and which resources they would stop
``quotas``                 limits against what jobs and resources take of which quota
``networks``               the network of jobs: there or not, its addresses, peering, host and zones
``reservations``           reservations that are there, and what they match
=========================  ======================================================================

To add a part: a module with a function ``(PreflightContext) -> Iterator[Answer]``, and a row in
``command.PARTS``. To rehearse a refusal of it: a method in ``localgcp.reads``, and a fault of kind
``deny``, ``patch`` or ``error`` on that (``localgcp.faults.model``).
"""
