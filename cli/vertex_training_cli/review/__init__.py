"""``vt review``: what a change does, as the page a reviewer reads before saying yes.

=================  ================================================================
``command``        the command line: options, exit codes
``report``         plan -> report
``jobs``           jobs: what happens to them, what they run on, what they can cost
``images``         images of which jobs get another digest
``capacity``       reservations: what they cost, used or not; machines that are given back
``grants``         IAM: bindings that are gained or lost, and why
``reachability``   networks, peerings, firewalls, public members
``risks``            what must not be missed, over all of a plan
``digest``         the plan's digest, which a deployment is bound to
``verdict``        a report in one line
``picture``        the stack after the change as a graph, and as Mermaid
``svg``            the same graph laid out for the page
``cells``          columns, cells and phrases that Markdown and the page share
``headline``       twelve questions of an approver, and their answers
``escaping``       names and values made harmless for Markdown and Mermaid
``markdown``       for the pull request, within GitHub's limit
``html``           for a browser: one page, no scripts
``json_report``    for programs: JSON with a schema version
=================  ================================================================

Everything but ``command`` is pure: a plan in, a report out. ``vertex_training_cli.engine`` makes
the plan of the engine's events.
"""
