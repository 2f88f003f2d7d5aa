"""Detection of secrets in any text: one set of rules for job rules, reports and scans.

=============  =======================================================================
``names``      names whose value is a secret, and values that only refer to one
``redaction``  forms of well-known tokens, the secrets of a text, and the text without them
``files``      secrets in files that leave the machine, and which of them are allowed
=============  =======================================================================

Standard library only: the policy pack uses it in an environment of its own. The time that a text
takes grows with its length alone; ``tests/corpus/secrets`` has the shapes that are found.
"""
