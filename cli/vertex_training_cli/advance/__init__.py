"""``vt jobs advance``: does what is due of a stack's jobs, from wherever a timer runs it.

============  =======================================================================
``tick``      one run of the command: what the steps are given, and what they report
``steps``     submits due slots and rungs; cancels idle jobs; reports those that wait for long
``command``   the command line; its ``STEPS`` are all steps, in order
============  =======================================================================

To add a step, write a module with a function of a :class:`tick.Tick` that yields
:class:`tick.Action`, and name it in ``command.STEPS``. A step decides by the state and by what the
cloud has, never by files of the checkout; it may be run twice at once, late, and killed anywhere.
With ``Tick.dry_run`` it changes nothing.
"""
