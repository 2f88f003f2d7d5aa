"""What is over a stack's limits is told at its place, in the stack file as in job files."""
