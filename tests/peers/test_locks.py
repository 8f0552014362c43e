"""Our lock recipe against kazoo's, on a real server (coordination.md 6, 17.27)."""
import subprocess
import time

import pytest

from nodepool_helpers import BIN
from services import wait_for


@pytest.fixture
def hold(site):
    """Starts processes that contend with our recipe."""
    running = []

    def start(directory, seconds=20.0):
        process = subprocess.Popen([BIN / "lock_tool", site.hosts, site.chroot + directory, str(seconds)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def let_go(process):
    process.stdin.close()
    assert process.wait(10) == 0


# coordination.17.27
def test_17_27_ours_waits_for_kazoo(site, hold):
    tree = site.tree()
    tree.zk.ensure_path("/parent")
    lock = tree.zk.Lock("/parent/lock")
    assert lock.acquire(timeout=5)
    ours = hold("/parent/lock")
    wait_for(lambda: len(tree.children("/parent/lock")) == 2, "our contender stands in line")
    lock.release()
    assert ours.stdout.readline() == "held\n"
    let_go(ours)
    assert tree.children("/parent/lock") == []


# coordination.17.27
def test_17_27_kazoo_waits_for_ours(site, hold):
    tree = site.tree()
    tree.zk.ensure_path("/parent")
    ours = hold("/parent/lock")
    assert ours.stdout.readline() == "held\n"
    lock = tree.zk.Lock("/parent/lock")
    assert not lock.acquire(blocking=False)
    waiting = site.tree()
    line = waiting.zk.handler.spawn(waiting.zk.Lock("/parent/lock").acquire, True, 20)
    wait_for(lambda: len(tree.children("/parent/lock")) == 2, "kazoo's contender stands in line")
    assert line.is_alive()
    let_go(ours)
    line.join(10)
    assert not line.is_alive()
    assert len(tree.children("/parent/lock")) == 1


# coordination.17.27
def test_17_27_ours_gives_up_in_time_and_leaves_nothing(site, hold):
    tree = site.tree()
    tree.zk.ensure_path("/parent")
    lock = tree.zk.Lock("/parent/lock")
    assert lock.acquire(timeout=5)
    start = time.monotonic()
    ours = hold("/parent/lock", 1.0)
    assert ours.stdout.readline() == "timeout\n"
    assert 0.9 < time.monotonic() - start < 10
    assert ours.wait(10) == 0
    assert len(tree.children("/parent/lock")) == 1
    lock.release()


# coordination.17.27
def test_17_27_the_line_is_first_in_first_out(site, hold):
    """kazoo, ours, kazoo, ours: each gets the lock in the order of arrival."""
    tree = site.tree()
    tree.zk.ensure_path("/parent")
    first = tree.zk.Lock("/parent/lock")
    assert first.acquire(timeout=5)
    second = hold("/parent/lock", 30)
    wait_for(lambda: len(tree.children("/parent/lock")) == 2, "two in line")
    other = site.tree()
    third = other.zk.Lock("/parent/lock")
    line = other.zk.handler.spawn(third.acquire, True, 30)
    wait_for(lambda: len(tree.children("/parent/lock")) == 3, "three in line")
    fourth = hold("/parent/lock", 30)
    wait_for(lambda: len(tree.children("/parent/lock")) == 4, "four in line")

    first.release()
    assert second.stdout.readline() == "held\n"
    assert line.is_alive()
    let_go(second)
    line.join(10)
    assert third.is_acquired
    third.release()
    assert fourth.stdout.readline() == "held\n"
    let_go(fourth)


# coordination.17.27
def test_17_27_a_dead_holder_is_followed_by_the_next(site, hold):
    tree = site.tree()
    tree.zk.ensure_path("/parent")
    ours = hold("/parent/lock")
    assert ours.stdout.readline() == "held\n"
    ours.kill()
    assert tree.zk.Lock("/parent/lock").acquire(timeout=30)  # after the session time-out


def test_read_locks_do_not_count(site, hold):
    """Only names with __lock__ contend for the exclusive lock (coordination.md 6.1)."""
    tree = site.tree()
    tree.zk.ensure_path("/parent/lock")
    tree.zk.create("/parent/lock/0123456789abcdef0123456789abcdef__rlock__", ephemeral=True, sequence=True)
    ours = hold("/parent/lock", 10)
    assert ours.stdout.readline() == "held\n"
    let_go(ours)


def test_a_vanished_parent_is_not_made_again(site, hold):
    """D-07: locking does not resurrect what was deleted."""
    tree = site.tree()
    ours = hold("/parent/lock", 2)
    assert ours.wait(20) != 0
    assert tree.zk.exists("/parent") is None
