"""What the tests of this folder need privileges for."""

import os
import subprocess


class Refused(Exception):
    """The machine does not permit what the test needs."""


def permitted(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except FileNotFoundError as error:
        raise Refused(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        raise Refused(f"'{' '.join(command)}': {done.stderr.strip()}")


def go_first():
    """Ahead of ordinary work, where that is permitted: what else runs must not be measured."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except (OSError, AttributeError):
        pass
