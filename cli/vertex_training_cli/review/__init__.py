"""``vt review``: reports the effects of a change to the reviewer who approves it.

================  ========================================================================
``command``       the command line: options, exit codes
``report``        plan -> report; the list of kinds of risks; images; the plan's digest
``jobs``          jobs: actions, machines, costs
``expenses``      schedules, snapshots and reservations, and what they cost
``serving``       model versions and endpoints: split, metrics, USD a month; their risks
``grants``        IAM: gained and lost bindings and data access, with reasons
``reachability``  networks, peerings, firewalls, public access
``destroyed``     destroyed and renamed resources, removed protection; objects, by folder
``losses``        lost data of resources that stay; encryption keys; changes that Google refuses
``guards``        raised limits; lowered policies, rules, alerts and other guards
``first_screen``  readiness, remaining commands, and a table of answers
``headline``      the verdict, and twelve questions of an approver with their answers
``sections``      titles, tables, lists and a picture, for a comment and a page
``parts``         findings, kinds of risks, parts of a section
``escaping``      names and values escaped for Markdown and Mermaid
``markdown``      for the pull request, within GitHub's limit
``html``          for a browser: one page without scripts
``json_report``   for programs: JSON with a schema version
================  ========================================================================

All modules except ``command`` are pure: they turn a plan into a report.
``vertex_training_cli.engine`` builds the plan from the engine's events.

To add a kind of risk, write a function with ``@risk`` and list it in ``report``; to compare only
an input, add a row to ``watched`` in ``resource_types.yaml``. Sections are functions in
``sections``, questions are functions in ``headline``.
"""
