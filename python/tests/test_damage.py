"""Damaged indexes give the same answers or raise errors, and never end the process."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


# A test of the engine makes the copies, and reports the signal if one ends the process that reads them. TWINDEX_DAMAGED is the
# number of copies, which `scripts/damage --door python` sets.
@pytest.mark.skipif(os.name != "posix", reason="the program that makes damaged copies needs a Unix")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo, which builds the program that makes damaged copies")
def test_damaged_copies_give_the_same_answers_or_errors():
    door = shlex.join([sys.executable, str(ROOT / "python/tests/damage_door.py")])
    # Without -p, this is the test program that `cargo test` builds, so it is not compiled again.
    run = ["cargo", "test", "--locked", "--test", "alone_allocator", "damage_doors::", "--", "--ignored", "--nocapture"]
    subprocess.run(run, cwd=ROOT, env={**os.environ, "TWINDEX_DOOR": door}, check=True)
