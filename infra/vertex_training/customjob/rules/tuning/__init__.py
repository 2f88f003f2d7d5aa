"""Rules about tuning jobs: what is searched for, in what space, and what each trial gets.

==============  ====================================================================
``study``       a studySpec as the rules read it; has no rules itself
``metrics``     what the trials report
``parameters``  what is tried: ids, ranges, values, scales, conditions
``trials``      how many there are, how they are searched, what their program receives
==============  ====================================================================

The rules of CustomJobs hold for ``trialJobSpec`` as well.
"""
