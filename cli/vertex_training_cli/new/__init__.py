"""``vt new`` and ``vt jobs rerun``: what is to run is written into files, as a diff first.

============  ==================================================================
``command``   the command line of ``vt new``, and the questions on a terminal
``template``  what was asked for -> a job as an import would have found it
``code``      what a job runs of code that is there
``rerun``     one more run of a job, with other arguments
============  ==================================================================
"""
