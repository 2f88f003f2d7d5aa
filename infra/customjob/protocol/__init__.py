"""Submit one request as one job, whatever process dies in between. Imports no Pulumi, no Google.

==============  ======================================================================
``ports``       what the protocol needs: a job service, an intent store, a process
``submission``  the protocol, step by step; start reading here
``turn``        its third step: at most one live request of a job at a time
``adoption``    chooses the job to adopt among those that carry a request id
``withdrawal``  cancels a job that leaves the stack
``waiting``     waits for a job, in the program
``timing``      how long each step may take
==============  ======================================================================
"""
