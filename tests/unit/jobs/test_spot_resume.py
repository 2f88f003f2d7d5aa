import json
import os
import signal
import subprocess
import sys
import time

from tests.fixture_project import SAMPLES as JOBS


def command(data, steps):
    task = [sys.executable, "-m", "spot_resume.task", "--data", str(data)]
    return [*task, f"--steps={steps}", "--checkpoint-every=100"]


def environment(folder):
    return {
        **os.environ,
        "PYTHONPATH": str(JOBS),
        "AIP_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "AIP_MODEL_DIR": str(folder / "model"),
    }


def model(folder):
    return json.loads((folder / "model" / "model.json").read_text())


def test_a_killed_run_goes_on_and_ends_like_one_that_was_left_alone(data, tmp_path):
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    subprocess.run(command(data, 5_000), env=environment(quiet), check=True, capture_output=True)

    first = subprocess.Popen(command(data, 10**9), env=environment(killed))
    deadline = time.monotonic() + 60
    while len(list(killed.glob("checkpoints/*.npz"))) < 4:  # begun: the third is complete
        assert time.monotonic() < deadline, "no checkpoints"
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    for late in sorted(killed.glob("checkpoints/*.npz"))[3:]:
        late.unlink()  # as if it had been killed earlier

    second = subprocess.run(
        command(data, 5_000),
        env=environment(killed),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "starting at step 300 of 5000" in second.stdout
    assert model(killed) == model(quiet)
    assert model(quiet)["accuracy"] > 0.9


def test_a_checkpoint_that_is_not_complete_is_passed_over(data, tmp_path):
    subprocess.run(command(data, 200), env=environment(tmp_path), check=True, capture_output=True)
    newest = tmp_path / "checkpoints" / "step-000000200.npz"
    newest.write_bytes(newest.read_bytes()[:50])
    again = subprocess.run(
        command(data, 300),
        env=environment(tmp_path),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "step-000000200.npz is incomplete" in again.stdout
    assert "starting at step 100 of 300" in again.stdout
