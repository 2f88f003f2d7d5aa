"""Finds secrets in texts, for job rules, reports and scans.

=============  =======================================================================
``names``      names of secrets, and values that only reference secrets
``redaction``  forms of well-known tokens; finds and redacts secrets in a text
``files``      secrets in files for upload, without allowed secrets
=============  =======================================================================

The modules use only the standard library, since the policy pack has a separate environment. The
time for a text is linear in its length. ``tokens.toml`` has the forms of secrets, and
``tests/corpus/secrets`` has examples of detected secrets.
"""
