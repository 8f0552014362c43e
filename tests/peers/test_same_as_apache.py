"""Random operations from a seed give the same answers, errors, stats and watch events from
Apache ZooKeeper and from the embedded server. NODEPOOL_ZOOKEEPER_SEQUENCES sets how many
sequences are tried (300)."""
import pathlib
import random

import pytest

import zk_raw as raw
from services import EmbeddedZooKeeper, ZooKeeper
from zk_raw import Closed, RawClient

OPERATIONS = 40
# From 3.9 on, Apache's server tells only those who may read a node that it exists. Ours is as 3.8, which most sites have.
SAME_EXISTS = not list(pathlib.Path("/usr/share/java").glob("zookeeper-3.9.*.jar"))
READS = [raw.GET, *([raw.EXISTS] if SAME_EXISTS else []), raw.CHILDREN, raw.CHILDREN2]
NAMES = ["a", "b", "a/c", "a/d", "a/c/e", "b/x"]
# What a transaction makes, removes, or makes anew, from the top: clients give up a record, its lock and its contenders so.
CHAINS = [["a", "a/c", "a/c/e"], ["a", "a/d"], ["b", "b/x"]]
SECRET = raw.digest_id("user", "word")
# Everybody may change it, and only the user read it.
UNREADABLE = [(30, "world", "anyone"), (31, "digest", SECRET)]
ACCESS = [raw.OPEN_ACL, raw.OPEN_ACL, raw.OPEN_ACL, raw.OPEN_ACL, UNREADABLE, UNREADABLE, [(31, "auth", "")],
          [(31, "digest", SECRET)], [(1, "world", "anyone"), (30, "digest", SECRET)], [(31, "nonsense", "x")], []]


class Player:
    """Plays one sequence against one server and writes down what can be compared."""

    def __init__(self, port: int, root: str):
        self.port = port
        self.root = root
        self.clients = [RawClient(port) for _ in range(2)]
        self.sessions = [client.session for client in self.clients]
        self.base = self.clients[0].ask(raw.EXISTS, raw.text("/") + b"\0")[0]
        self.log = []

    def number(self, zxid: int) -> int:
        return zxid - self.base

    def stat(self, reader: raw.Reader) -> tuple:
        (czxid, mzxid, _, _, version, cversion, aversion, owner, size, children, pzxid) = reader.stat()
        if owner in self.sessions:
            owner = self.sessions.index(owner) + 1
        return (self.number(czxid), self.number(mzxid), version, cversion, aversion, owner, size, children,
                self.number(pzxid))

    def body(self, op: int, reader: raw.Reader):
        if op == raw.CREATE:
            return reader.text()
        if op in (raw.CREATE2, raw.CONTAINER):
            return reader.text(), self.stat(reader)
        if op in (raw.EXISTS, raw.SET, raw.SET_ACL):
            return self.stat(reader)
        if op == raw.GET:
            return reader.text(), self.stat(reader)
        if op in (raw.CHILDREN, raw.EPHEMERALS):
            return sorted(reader.texts())
        if op == raw.CHILDREN2:
            return sorted(reader.texts()), self.stat(reader)
        if op == raw.GET_ACL:
            entries = [(reader.take("i"), reader.text(), reader.text()) for _ in range(reader.take("i"))]
            return entries, self.stat(reader)
        if op == raw.COUNT:
            return reader.take("i")
        if op == raw.MULTI:
            return self.parts(reader, False)
        if op == raw.MULTI_READ:
            return self.parts(reader, True)
        return None

    def parts(self, reader: raw.Reader, is_read: bool) -> list:
        found = []
        while True:
            kind, is_end, error = reader.take("i"), reader.take("b"), reader.take("i")
            if is_end:
                return found
            if kind == -1:
                found.append((error, reader.take("i")))
            elif kind in (raw.CREATE, raw.CREATE2):
                # Apache 3.8 answers every create of a transaction as one without a stat.
                found.append(("created", error, reader.text()))
                if kind == raw.CREATE2:
                    reader.stat()
            else:
                found.append((kind, error, self.body(kind, reader)))

    def play(self, step):
        action, who, *rest = step
        client = self.clients[who]
        if action == "ask":
            op, body = rest
            zxid, error, reader = client.ask(op, body)
            self.log.append((self.number(zxid), error, self.body(op, reader) if error == 0 else None, reader.rest()))
        elif action == "auth":
            self.log.append(client.ask(raw.AUTH, raw.integer(0) + raw.text("digest") + raw.text("user:word"), xid=-4)[1])
        elif action == "drop":
            client.drop()
            self.log.append("dropped")
        elif action == "return":
            paths = rest[0]
            seen = client.zxid
            self.clients[who] = client = RawClient(self.port, session=client.session, password=client.password, seen=seen)
            assert client.session in self.sessions, "the session was not taken up again"
            body = raw.long(seen) + b"".join(raw.texts([self.root + path for path in group]) for group in paths)
            _, error, reader = client.ask(raw.SET_WATCHES2, body, xid=-8)
            self.log.append((error, reader.rest()))
        elif action == "renew":
            client.close()
            self.clients[who] = RawClient(self.port)
            self.sessions.append(self.clients[who].session)
            self.log.append("renewed")
        for index, each in enumerate(self.clients):
            if step[0] == "drop" and index == who:
                continue
            for event in sorted(each.take_events()) if step[0] == "return" else each.take_events():
                self.log.append((index, event))

    def finish(self):
        for client in self.clients:
            client.close()
        cleaner = RawClient(self.port)
        cleaner.ask(raw.AUTH, raw.integer(0) + raw.text("digest") + raw.text("user:word"), xid=-4)
        self.delete_all(cleaner, self.root)
        cleaner.close()

    def delete_all(self, client: RawClient, path: str):
        _, error, reader = client.ask(raw.CHILDREN, raw.text(path) + b"\0")
        for name in reader.texts() if error == 0 else []:
            self.delete_all(client, f"{path}/{name.decode()}")
        client.ask(raw.DELETE, raw.text(path) + raw.integer(-1))


def steps(seed: int, root: str) -> list:
    """What is done: the same for both servers."""
    dice = random.Random(seed)
    # A client sets one kind of watches on a path only, since Apache 3.8 keeps one for each path.
    kinds = {name: dice.choice(["persistent", "recursive", "once", "once"]) for name in NAMES}
    of_kind = lambda kind: [name for name in NAMES if kinds[name] == kind] or ["nothing"]  # noqa: E731
    path = lambda: f"{root}/{dice.choice(NAMES)}"  # noqa: E731
    version = lambda: raw.integer(dice.choice([-1, -1, 0, 1, 2]))  # noqa: E731

    def read(op):
        name = dice.choice(NAMES)
        return op, raw.text(f"{root}/{name}") + (dice.choice([b"\0", b"\1"]) if kinds[name] == "once" else b"\0")

    def watched(kind):
        return raw.text(f"{root}/{dice.choice(of_kind(kind))}")

    def creation():
        op = dice.choice([raw.CREATE, raw.CREATE, raw.CREATE2, raw.CONTAINER])
        flags = 4 if op == raw.CONTAINER else dice.choice([0, 0, 0, 1, 2, 3])
        name = path() + (dice.choice(["", "/", "/n-"]) if flags in (2, 3) else "")
        return op, raw.create(name, dice.choice([b"", b"data", b"\0\xff"]), flags, dice.choice(ACCESS))

    def write():
        return dice.choice([
            creation, creation, lambda: (raw.SET, raw.text(path()) + raw.text(b"x" * dice.randrange(5)) + version()),
            lambda: (raw.DELETE, raw.text(path()) + version())])()

    def removal(names):
        return [(raw.DELETE, raw.text(f"{root}/{name}") + raw.integer(-1)) for name in reversed(names)]

    def making(names):
        return [(raw.CREATE, raw.create(f"{root}/{name}", b"made", 0, dice.choice(ACCESS[:6]))) for name in names]

    def chain():
        names = dice.choice(CHAINS)
        names = names[dice.randrange(len(names)):]
        change = (raw.SET, raw.text(f"{root}/{names[-1]}") + raw.text(b"changed") + raw.integer(-1))
        return raw.MULTI, raw.multi(dice.choice([
            making(names), making(names) + [change], removal(names), removal(names), [change] + removal(names),
            removal(names) + making(names), making(names) + removal(names)]))

    def transaction():
        parts = [creation, write, write, lambda: (raw.CHECK, raw.text(path()) + version())]
        return raw.MULTI, raw.multi([dice.choice(parts)() for _ in range(dice.randrange(1, 5))])

    def ask():
        return dice.choice([
            write, write, write, write, transaction, chain, chain, chain,
            lambda: read(dice.choice(READS)),
            lambda: read(dice.choice(READS)),
            lambda: read(dice.choice([raw.CHILDREN, raw.CHILDREN2])),
            lambda: (raw.GET_ACL, raw.text(path())),
            lambda: (raw.SET_ACL, raw.text(path()) + raw.acl(dice.choice(ACCESS)) + version()),
            lambda: (raw.SYNC, raw.text(path())),
            lambda: (raw.EPHEMERALS, raw.text(root)),
            lambda: (raw.COUNT, raw.text(root)),
            lambda: (raw.ADD_WATCH, watched("persistent") + raw.integer(0)),
            lambda: (raw.ADD_WATCH, watched("recursive") + raw.integer(1)),
            lambda: (raw.MULTI_READ, raw.multi([(dice.choice([raw.GET, raw.CHILDREN]), raw.text(path()) + b"\0")
                                                for _ in range(3)])),
            lambda: (raw.REMOVE_WATCHES, watched(dice.choice(["persistent", "recursive"])) + raw.integer(3)),
            lambda: (raw.REMOVE_WATCHES, watched("once") + raw.integer(dice.randrange(1, 4))),
        ])()

    plan = [("ask", 0, raw.CREATE, raw.create(root))]
    for _ in range(OPERATIONS):
        who = dice.randrange(2)
        kind = dice.randrange(40)
        if kind == 0:
            plan.append(("renew", who))
        elif kind == 1:
            plan.append(("auth", who))
        elif kind == 2:
            # Absent: the other client writes, and nobody reads what this one would hear.
            plan.append(("away", who, [dice.choice([write, write, chain])() for _ in range(3)],
                         [[f"/{name}" for name in of_kind(each) if dice.randrange(3) == 0]
                          for each in ["once"] * 3 + ["persistent", "recursive"]]))
        else:
            plan.append(("ask", who, *ask()))
    return plan


def play(port: int, seed: int) -> list:
    root = f"/s{seed}"
    player = Player(port, root)
    try:
        for step in steps(seed, root):
            if step[0] != "away":
                player.play(step)
                continue
            _, who, writes, paths = step
            player.clients[who].drop()
            for op, body in writes:
                zxid, error, reader = player.clients[1 - who].ask(op, body)
                player.log.append((player.number(zxid), error, player.body(op, reader) if error == 0 else None, reader.rest()))
            player.play(("return", who, paths))
        return player.log
    finally:
        try:
            player.finish()
        except Closed:
            player.log.append("hung up")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    both = [ZooKeeper(tmp_path_factory.mktemp("apache")).start(), EmbeddedZooKeeper(tmp_path_factory.mktemp("own")).start()]
    yield both
    for server in both:
        server.stop()


@pytest.mark.long
def test_same_answers(servers):
    count = raw.from_environment("NODEPOOL_ZOOKEEPER_SEQUENCES", 300)
    for seed in range(count):
        logs = [play(server.port, seed) for server in servers]
        for index, (apache, own) in enumerate(zip(*logs)):
            assert own == apache, f"seed {seed}, entry {index}: embedded {own}, Apache {apache}"
        assert len(logs[0]) == len(logs[1]), f"seed {seed}"
