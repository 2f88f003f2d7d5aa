"""What is over a stack's limits is told at its place, in the stack file as in job files."""

LIMITS = "  vertex-training:limits: {maxUsdPerEnvironment: 1, strategies: [SPOT]}\n"


def test_limits_of_the_whole_stack_are_told_beside_those_of_a_job(project, vt):
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text() + LIMITS)
    done = vt("check", "--stack", "dev")
    assert done.exit_code == 1
    assert "the limits do not allow this strategy" in done.stdout
    stack.write_text(stack.read_text().replace(", strategies: [SPOT]", ""))
    done = vt("check", "--stack", "dev")
    assert done.exit_code == 1
    assert "Pulumi.dev.yaml:14:28" in done.stdout
    assert "all jobs together may cost" in done.stdout
