"""./test on a file system with little space."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

RUN = """
mount -t tmpfs -o size=64m none "$1"
mkdir "$1/tests"
cp -r tools "$1/"
cp tests/allowed-skips.txt "$1/tests/"
"$1/tools/run-tests"
"""


def test_too_little_space_is_said_before_anything_is_built(tmp_path):
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", RUN, "sh", tmp_path], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (f"./test: 0 GB are free in {tmp_path}, and building and testing take up to 8: "
                           "make room there\n"), done.stderr
