"""What an approver reads before anything else.

``answers``  twelve questions, and what the report says to each
"""
