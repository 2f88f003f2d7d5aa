"""What follows from the settings of a stack, before anything exists. Pure.

===================  =================================================================
``network``          names, owners and grants of the network
``firewalls``        what a firewall rule lets through
``reservations``     the same for reservations, and what they cost
``access``           who reaches what data, and through which accounts, by IAM and by access lists
``grants``           every grant that the stack may make, and why
``external_grants``  grants that another team must make, as a table and as commands
``stack_grants``     grants that follow from accounts, images, the key and ``members``
``job_grants``       grants that jobs and models need: a key, an image of another project
``references``       what ``${kind.name}`` in a job file stands for
``serving``          model versions, and endpoints with what they serve
``monitoring``       filters, texts and charts of what watches jobs
``packages``         code below ``jobs/`` as a deterministic source distribution
``objects``          files and folders that the stack keeps in its buckets
``facts``            the stack as the rules of job files see it
===================  =================================================================
"""
