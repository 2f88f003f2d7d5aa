"""How one request becomes one job, whatever dies in between. Knows neither Pulumi nor Google.

==============  ======================================================================
``ports``       what the protocol asks of the job service and of the intent store
``submission``  the protocol, step by step; start reading here
``turn``        its third step: the requests of one job take turns
``adoption``    which of the jobs that carry a request id is taken over
``withdrawal``  the other end: a job leaves the stack
``waiting``     waiting for a job, in the program
``timing``      how long each step may take
==============  ======================================================================
"""
