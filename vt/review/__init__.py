"""``vt review``: what a change does, as the page a reviewer reads before saying yes.

=================  ================================================================
``command``        the command line: options, exit codes
``runner``         runs ``pulumi preview`` and reads the engine's events
``events``         the events -> a plan: steps, diagnostics, policy results
``values``         what may be shown of a value: secrets, unknowns, files
``fields``         two values -> the fields that differ
``jobs``           jobs: what happens to them, what they run on, what they can cost
``capacity``       reservations: what they cost, used or not
``rights``         IAM: who gains or loses what on what, and why
``reach``          networks, peerings, firewalls, public members: what can reach what
``picture``        the stack after the change as a graph, and as Mermaid
``svg``            the same graph laid out for the page
``report``         plan -> report
``verdict``        a report in one line
``words``          words and cells that Markdown and the page share
``digest``         the plan's digest, which a deployment is bound to
``text``           names and values made harmless for Markdown and Mermaid
``markdown``       for the pull request, within GitHub's limit
``html``           for a browser: one page, no scripts
``machine``        for programs: JSON with a schema version
=================  ================================================================

Everything but ``runner`` and ``command`` is pure: events in, report out.
"""
