"""Training that resumes from its last checkpoint after a preemption."""
