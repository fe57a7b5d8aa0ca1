"""Runs an oracle script as two Gloo processes on this host: SCRIPT OUTPUT starts SCRIPT OUTPUT
DIRECTORY RANK twice, which meet by a file in DIRECTORY."""
import os
import subprocess
import sys
import tempfile


def _launch(script, output, timeout_s):
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as directory:
        ranks = [
            subprocess.Popen([sys.executable, script, output, directory, str(rank)],
                             env=environment)
            for rank in range(2)
        ]
        try:
            return max(abs(process.wait(timeout=timeout_s)) for process in ranks)
        except subprocess.TimeoutExpired:
            print(f"{os.path.basename(script)}: timed out", file=sys.stderr)
            return 1
        finally:
            for process in ranks:
                process.kill()


def main(run_rank, timeout_s):
    """`run_rank(rank, directory, output)` is a process."""
    script, *words = sys.argv
    if len(words) == 3:
        run_rank(int(words[2]), words[1], words[0])
    elif len(words) == 1:
        sys.exit(_launch(script, words[0], timeout_s))
    else:
        sys.exit(f"usage: {os.path.basename(script)} OUTPUT")
