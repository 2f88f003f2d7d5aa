"""``vt review``: reports the effects of a change to the reviewer who approves it.

================  ========================================================================
``command``       the command line: options, exit codes
``report``        plan -> report; images; the plan's digest
``risks``         all kinds of risks, with their texts
``jobs``          jobs: actions, machines, costs
``expenses``      schedules, snapshots and reservations, and what they cost
``serving``       model versions and endpoints: split, metrics, USD a month; their risks
``grants``        IAM: gained and lost bindings and data access, with reasons
``reachability``  networks, peerings, firewalls, public access
``destroyed``     destroyed and renamed resources, removed protection; objects, by folder
``losses``        lost data of resources that stay; encryption keys; changes that Google refuses
``guards``        raised limits; lowered policies, rules, alerts and other guards
``headline``      first screen: readiness, next commands, verdict, answers of twelve questions
``sections``      titles, tables, lists and a picture, for a comment and a page
``parts``         findings, changes, parts of a section
``escaping``      names and values escaped for Markdown and Mermaid
``markdown``      for the pull request, within GitHub's limit
``html``          for a browser: one page without scripts
``json_report``   for programs: JSON with a schema version
================  ========================================================================

All modules except ``command`` are pure: they turn a plan into a report.
``vertex_training_cli.engine`` builds the plan from the engine's events.

To add a kind of risk, write a finder and add a row to ``risks.RISKS``; to compare only an input,
add a row to ``watched`` in ``resource_types.yaml``. Sections are functions in
``sections``, questions are functions in ``headline``.
"""
