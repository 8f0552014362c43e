"""SIGUSR2 of a real launcher (operations.md 2.4, 16.20)."""
import os
import pathlib
import re
import signal
import tempfile

from services import wait_for


def dumps(process):
    return process.output().count("nodepool.stack_dump: End debug handler")


def dump(process):
    """Sends the signal and returns what was logged for it."""
    before = dumps(process)
    begin = len(process.output())
    os.kill(process.pid, signal.SIGUSR2)
    wait_for(lambda: dumps(process) == before + 1, "the dump is complete")
    return process.output()[begin:]


# operations.16.20
def test_threads_tasks_and_profile(site):
    process = site.launcher()
    first = dump(process)
    lines = [line.split("nodepool.stack_dump: ", 1)[1] for line in first.splitlines() if "nodepool.stack_dump: " in line]
    assert lines[0] == "Beginning debug handler"
    assert lines[-1] == "End debug handler"
    threads = [line for line in lines if re.match(r" *Thread: \d+ ", line)]
    assert any(re.fullmatch(rf" *Thread: {process.pid} nodepool-launch d: False", line) for line in threads)
    assert any(re.fullmatch(r" *Thread: \d+ stack dump d: True", line) for line in threads)
    assert len([line for line in threads if "blocking pool d: True" in line]) >= 1
    assert any(line.strip() == "main" for line in lines)
    assert any("nodepool::debug::StackDump::Run" in line for line in lines)
    tasks = [line for line in lines if line.strip().startswith("Task: ")]
    assert any(re.search(r"Task: wait for a signal age: \d+\.\d s", line) for line in tasks)
    assert any(re.search("remove request locks age: .* awaits locks of served requests", line) for line in tasks)
    assert any("sweep dead nodes" in line for line in tasks)
    assert "Starting the CPU profiler" in first
    # Every line of the records has the prefix.
    assert all("DEBUG nodepool.stack_dump: " in line for line in first.splitlines() if "Thread: " in line)

    second = dump(process)
    assert "Stopping the CPU profiler" in second
    assert re.search(rf"nodepool.stack_dump:   \d+\.\d\d\d s thread {process.pid} nodepool-launch\n", second)
    assert re.search(r"nodepool.stack_dump:   \d+\.\d\d\d s thread \d+ stack dump\n", second)
    assert list(pathlib.Path(tempfile.gettempdir()).glob(f"nodepool-{process.pid}-*.prof")) == []
    assert "Starting the CPU profiler" in dump(process)
    assert "Stopping the CPU profiler" in dump(process)
    assert process.is_running()


def test_nothing_is_printed_for_a_profile(site):
    """Neither when it is stopped, nor when it is still running at the end."""
    process = site.launcher()
    for _ in range(3):
        dump(process)
    process.stop(number=signal.SIGINT)
    assert "Starting the CPU profiler" in process.output() and "PROFILE" not in process.output()


def test_a_profile_stays_where_it_is_wanted(site, monkeypatch):
    monkeypatch.setenv("NODEPOOL_PROFILE_DIR", str(site.folder))
    process = site.launcher()
    dump(process)
    path = pathlib.Path(re.search(r"For google-pprof: (\S+\.prof)", dump(process)).group(1))
    assert path.parent == site.folder and path.stat().st_size > 0


def test_a_busy_launcher_goes_on(site):
    """Interrupting its threads harms no work under way."""
    process = site.launcher()
    tree = site.tree()
    requests = [tree.add_request(["small"], reuse=False) for _ in range(5)]
    for _ in range(4):
        dump(process)
    for request_id in requests:
        tree.wait_request(request_id, "fulfilled", 60)
