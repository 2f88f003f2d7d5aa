"""``vt review``: what a change does, as the page a reviewer reads before saying yes.

====================  ==============================================================
``command``           the command line: options, exit codes
``report``            plan -> report; the list of kinds of risks
``jobs``              jobs: what happens to them, what they run on, what they can cost
``images``            images of which jobs get another digest
``capacity``          reservations: what they cost, used or not; machines that are given back
``grants``            IAM: bindings and access to data that are gained or lost, and why
``reachability``      networks, peerings, firewalls, what everybody reaches
``risk``              a kind of risk: what finds it, and its words
``destroyed``         what is destroyed or loses its protection; objects, by folder
``losses``            data that is lost, or no longer kept, though its resource stays
``limits``            limits that are raised, levels of policies that are lowered
``stored_data``       keys that no longer encrypt data that stays, reads that are paid for
``renames``           entries under another name, and others under the name of an entry
``guards``            exceptions of drift, rules and other guards that are lowered
``refusals``          what Google refuses half-way, or what has no effect
``digest``            the plan's digest, which a deployment is bound to
``headline``          the verdict, and twelve questions of an approver with their answers
``serving``           model versions and endpoints: split, metrics, USD a month; their risks
``schedules``         schedules of jobs: when, next slots, USD a month
``snapshots``         snapshots: bytes, USD, what is there, which jobs read it
``alerts``            alerts, channels, budgets, dashboards; who is told no more
``sections``          the report as titles, tables and lists, for a comment and for the page
``serving_sections``  those on schedules, snapshots, models, endpoints and alerts
``parts``             what a section is made of: paragraphs, lists, tables
``picture``           the stack after the change as a graph: as Mermaid, and laid out for the page
``escaping``          names and values made harmless for Markdown and Mermaid
``markdown``          for the pull request, within GitHub's limit
``html``              for a browser: one page, no scripts
``json_report``       for programs: JSON with a schema version
====================  ==============================================================

Everything but ``command`` is pure: a plan in, a report out. ``vertex_training_cli.engine`` makes
the plan of the engine's events.

A new kind of risk is declared in the module that finds it, and listed in ``report``. A new section
is a function in ``sections``, a new question one in ``headline``.
"""
