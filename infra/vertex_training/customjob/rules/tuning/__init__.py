"""Rules about tuning jobs: what is searched for, in what space, and what each trial gets.

==============  ====================================================================
``study``       a studySpec as the rules read it; has no rules itself
``metrics``     what the trials report
``parameters``  what is tried: ids, ranges, values, scales, conditions
``search``      the algorithm, and when it stops
``trials``      how many there are, and what their program receives
==============  ====================================================================

The rules of CustomJobs hold for ``trialJobSpec`` as well.
"""
