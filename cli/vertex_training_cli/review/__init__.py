"""``vt review``: reports the effects of a change to the reviewer who approves it.

================  ========================================================================
``command``       the command line: options, exit codes
``report``        plan -> report; images; the plan's digest
``risks``         all kinds of risks, with their texts
``jobs``          jobs: actions, machines, costs
``expenses``      schedules, snapshots and reservations, with their costs
``serving``       model versions and endpoints: traffic, metrics, costs, risks
``grants``        IAM: gained and lost bindings and data access, with reasons
``reachability``  networks, peerings, firewalls, public access
``destroyed``     destroyed and renamed resources, removed protection; changed folders
``losses``        lost data of kept resources; encryption keys; changes that Google refuses
``guards``        raised limits; lowered policies, rules, alerts and other guards
``headline``      first screen: readiness, next commands, verdict, summary of twelve topics
``sections``      titles, tables, lists and a graph, for a comment and a page
``parts``         findings, changes, parts of a section; escaped names and values
``formats``       Markdown within GitHub's limit, an HTML page, and JSON with a version
================  ========================================================================

All modules except ``command`` only convert a plan, without side effects. To add a kind of risk,
write a finder and add a row to ``risks.RISKS``. To compare only an input, add a row to ``watched``
in ``resource_types.yaml``.
"""
