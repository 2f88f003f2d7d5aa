"""``vt review``: what a change does, as the page a reviewer reads before saying yes.

================  ========================================================================
``command``       the command line: options, exit codes
``report``        plan -> report; the list of kinds of risks; images; the plan's digest
``jobs``          jobs: what happens to them, what they run on, what they can cost
``expenses``      schedules, snapshots and reservations, and what they cost
``serving``       model versions and endpoints: split, metrics, USD a month; their risks
``grants``        IAM: bindings and access to data that are gained or lost, and why
``reachability``  networks, peerings, firewalls, what everybody reaches
``destroyed``     what is destroyed or renamed, or loses its protection; objects, by folder
``losses``        data that is lost though its resource stays; keys; what Google refuses
``guards``        limits that are raised; policies, rules, alerts and other guards that are lowered
``first_screen``  whether it can be deployed, what remains, and a table of answers
``headline``      the verdict, and twelve questions of an approver with their answers
``sections``      the report as titles, tables, lists and a picture, for a comment and a page
``parts``         findings, kinds of risks, and what a section is made of
``escaping``      names and values made harmless for Markdown and Mermaid
``markdown``      for the pull request, within GitHub's limit
``html``          for a browser: one page, no scripts
``json_report``   for programs: JSON with a schema version
================  ========================================================================

Everything but ``command`` is pure: a plan in, a report out. ``vertex_training_cli.engine`` makes
the plan of the engine's events.

A new kind of risk is a function with ``@risk``, listed in ``report``. One that only compares an
input is a row of ``watched`` in ``resource_types.yaml``. A new section is a function in
``sections``, a new question one in ``headline``.
"""
