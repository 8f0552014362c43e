"""The embedded ZooKeeper server as others use it: kazoo's recipes, restarts, kills, bad clients."""
import random
import socket
import sqlite3
import threading

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.security import make_digest_acl

import zk_raw as raw
from services import EmbeddedZooKeeper, wait_for
from zk_raw import Closed, RawClient


@pytest.fixture
def server(tmp_path):
    server = EmbeddedZooKeeper(tmp_path / "zookeeper").start()
    yield server
    server.stop()


@pytest.fixture
def connect(server):
    clients = []

    def start(**options):
        client = KazooClient(server.hosts, **options)
        clients.append(client)
        client.start(20)
        return client

    yield start
    for client in clients:
        client.stop()
        client.close()


def test_lock(connect):
    first, second = connect(), connect()
    held, wanted = first.Lock("/lock", "one"), second.Lock("/lock", "two")
    assert held.acquire(timeout=5)
    assert not wanted.acquire(blocking=False)
    assert held.contenders() == ["one"]
    order = []
    waiter = threading.Thread(target=lambda: (wanted.acquire(timeout=10), order.append("second")))
    waiter.start()
    wait_for(lambda: len(first.get_children("/lock")) == 2, "the second contender is in line")
    order.append("first")
    held.release()
    waiter.join(10)
    assert order == ["first", "second"]


def test_lock_of_a_client_that_closes(connect):
    first, second = connect(), connect()
    assert first.Lock("/lock").acquire(timeout=5)
    wanted = second.Lock("/lock")
    waiter = threading.Thread(target=lambda: wanted.acquire(timeout=10))
    waiter.start()
    wait_for(lambda: len(second.get_children("/lock")) == 2, "the second contender is in line")
    first.stop()
    waiter.join(10)
    assert wanted.is_acquired


def test_election(connect):
    leaders = []
    clients = [connect() for _ in range(3)]
    done = threading.Event()

    def lead(number):
        leaders.append(number)
        done.wait(10 if len(leaders) < 3 else 0)

    elections = [client.Election("/election", str(number)) for number, client in enumerate(clients)]
    threads = [threading.Thread(target=election.run, args=(lead, number)) for number, election in enumerate(elections)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(leaders) == 1 and len(clients[0].get_children("/election")) == 3, "one leads, two wait")
    done.set()
    for thread in threads:
        thread.join(10)
    assert sorted(leaders) == [0, 1, 2]


def test_watchers(connect):
    client, other = connect(), connect()
    data, children = [], []
    client.ensure_path("/watched")
    client.DataWatch("/watched", lambda value, stat: data.append(value))
    client.ChildrenWatch("/watched", lambda names: children.append(sorted(names)))
    other.set("/watched", b"1")
    wait_for(lambda: data[-1:] == [b"1"], "the data is told")
    for name in "ab":
        other.create(f"/watched/{name}")
        wait_for(lambda: name in children[-1], "the child is told")
    other.delete("/watched/a")
    wait_for(lambda: children[-1] == ["b"], "the deletion is told")


def test_watches_on_what_a_transaction_removes(connect):
    """As a scheduler watches nodes and their locks while a launcher removes them, a few at a time."""
    client, other = connect(), connect()
    told = {}
    nodes = [f"/nodes/{number}" for number in range(10)]
    for node in nodes:
        other.create(f"{node}/lock/contender", makepath=True)
        for path in (node, f"{node}/lock"):
            client.get_children(path, watch=lambda event: told.setdefault(event.path, []).append(event.type))
        client.exists(f"{node}/lock/contender", watch=lambda event: told.setdefault(event.path, []).append(event.type))
    for node in nodes:
        transaction = other.transaction()
        for path in (f"{node}/lock/contender", f"{node}/lock", node):
            transaction.delete(path)
        assert transaction.commit() == [True] * 3
    client.sync("/nodes")
    wait_for(lambda: len(told) == 3 * len(nodes), "all is told")
    for node in nodes:
        # The change of the children comes first, and one event ends a watch.
        assert told == {**told, node: ["CHILD"], f"{node}/lock": ["CHILD"], f"{node}/lock/contender": ["DELETED"]}
    assert client.get_children("/nodes") == []


def test_a_lock_whose_record_is_removed_with_it(connect):
    owner, waiting = connect(), connect()
    held, wanted = owner.Lock("/record/lock"), waiting.Lock("/record/lock")
    assert held.acquire(timeout=5)
    ended = []

    def wait():
        try:
            ended.append(wanted.acquire(timeout=10))
        except NoNodeError as error:
            ended.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_for(lambda: len(owner.get_children("/record/lock")) == 2, "the second contender is in line")
    transaction = owner.transaction()
    for name in sorted(owner.get_children("/record/lock")):
        transaction.delete(f"/record/lock/{name}")
    transaction.delete("/record/lock")
    transaction.delete("/record")
    assert transaction.commit() == [True] * 4
    waiter.join(15)
    # The one that waits was told: it did not wait for its time-out.
    assert len(ended) == 1 and isinstance(ended[0], NoNodeError) and owner.exists("/record") is None


def test_tree_cache(connect):
    client, other = connect(), connect()
    cache = TreeCache(client, "/tree")
    events = []
    cache.listen(lambda event: events.append(event.event_type))
    cache.start()
    wait_for(lambda: TreeEvent.INITIALIZED in events, "the cache is filled")
    other.create("/tree/a/b", b"deep", makepath=True)
    wait_for(lambda: cache.get_data("/tree/a/b") is not None, "the new znode is there")
    assert cache.get_data("/tree/a/b").data == b"deep"
    other.delete("/tree", recursive=True)
    wait_for(lambda: cache.get_data("/tree/a") is None, "it is gone")
    other.create("/tree/b/c", makepath=True)
    wait_for(lambda: cache.get_data("/tree/b/c") is not None, "it is followed when it is created again")
    transaction = other.transaction()
    for path in ("/tree/b/c", "/tree/b", "/tree"):
        transaction.delete(path)
    transaction.create("/tree", b"anew")
    assert transaction.commit()[-1] == "/tree"
    wait_for(lambda: cache.get_data("/tree/b") is None and (root := cache.get_data("/tree")) and root.data == b"anew",
             "it was made anew")
    cache.close()


def test_queue_counter_semaphore_party(connect):
    client, other = connect(), connect()
    queue = client.Queue("/queue")
    queue.put(b"one")
    queue.put(b"two")
    assert [other.Queue("/queue").get() for _ in range(3)] == [b"one", b"two", None]
    counters = [c.Counter("/counter") for c in (client, other)]
    for counter in counters:
        counter += 2
    assert counters[0].value == 4
    with client.Semaphore("/semaphore", max_leases=1):
        assert not other.Semaphore("/semaphore", max_leases=1).acquire(blocking=False)
    locking = client.LockingQueue("/locking")
    locking.put_all([b"first", b"second"])
    assert locking.get(5) == b"first" and locking.consume()
    assert other.LockingQueue("/locking").get(5) == b"second"
    party = client.Party("/party", "me")
    party.join()
    assert list(other.Party("/party", "you")) == ["me"]


def test_transaction(connect):
    client = connect()
    transaction = client.transaction()
    transaction.create("/t", b"1")
    transaction.create("/t/n-", sequence=True, ephemeral=True)
    transaction.set_data("/t", b"2", version=0)
    transaction.check("/t", 1)
    results = transaction.commit()
    assert results[:2] == ["/t", "/t/n-0000000000"] and results[3] is True
    transaction = client.transaction()
    transaction.delete("/t/n-0000000000")
    transaction.delete("/missing")
    assert [type(result).__name__ for result in transaction.commit()] == ["RolledBackError", "NoNodeError"]
    assert client.get("/t")[0] == b"2" and client.exists("/t/n-0000000000")


def test_access_lists(connect, server):
    owner = connect(auth_data=[("digest", "user:word")])
    stranger = connect()
    owner.create("/private", b"secret", acl=[make_digest_acl("user", "word", all=True)])
    for forbidden in (lambda: stranger.get("/private"), lambda: stranger.create("/private/a"),
                      lambda: stranger.set("/private", b""), lambda: stranger.get_children("/private")):
        with pytest.raises(NoAuthError):
            forbidden()
    assert owner.get("/private")[0] == b"secret"
    server.restart()
    wait_for(lambda: stranger.connected and owner.connected, "both are back")
    with pytest.raises(NoAuthError):
        stranger.get("/private")
    assert owner.get("/private")[0] == b"secret"


def test_who_says_twice_who_he_is_counts_once(server):
    client = RawClient(server.port)
    for _ in range(2):
        assert client.ask(raw.AUTH, raw.integer(0) + raw.text("digest") + raw.text("user:word"), xid=-4)[1] == 0
    assert client.ask(raw.CREATE, raw.create("/mine", access=[(31, "auth", "")]))[1] == 0
    assert client.ask(raw.GET_ACL, raw.text("/mine"))[2].take("i") == 1


def test_restart_keeps_sessions_and_data(connect, server):
    client, other = connect(timeout=20), connect(timeout=20)
    states = []
    client.add_listener(states.append)
    client.create("/kept", b"data", makepath=True)
    client.create("/ephemeral", ephemeral=True)
    seen = []
    other.DataWatch("/kept", lambda value, stat: seen.append(value))
    before = client.exists("/kept")
    server.restart()
    wait_for(lambda: states == [KazooState.SUSPENDED, KazooState.CONNECTED], "the session goes on")
    assert client.exists("/kept") == before
    assert client.exists("/ephemeral").owner_session_id == client.client_id[0]
    client.set("/kept", b"new")
    wait_for(lambda: seen[-1] == b"new", "the watch is there again")


def test_session_that_nobody_takes_up_expires_after_a_restart(connect, server):
    client = RawClient(server.port, timeout_ms=1000)
    client.ask(raw.CREATE, raw.create("/e", flags=1))
    client.drop()
    server.restart()
    other = connect()
    assert other.exists("/e")
    wait_for(lambda: not other.exists("/e"), "the ephemeral znode is gone", 10)
    again = RawClient(server.port, session=client.session, password=client.password)
    assert again.timeout_ms == 0, "told that it has expired"


def test_session_is_not_given_to_a_stranger(server):
    client = RawClient(server.port)
    stranger = RawClient(server.port, session=client.session, password=b"x" * 16)
    assert stranger.timeout_ms == 0
    client.ping()


def test_session_moves_to_its_new_connection(server):
    client = RawClient(server.port)
    client.ask(raw.CREATE, raw.create("/e", flags=1))
    again = RawClient(server.port, session=client.session, password=client.password)
    assert again.session == client.session
    with pytest.raises(Closed):
        client.ping()
    assert again.ask(raw.EXISTS, raw.text("/e") + b"\0")[1] == 0


def test_four_letter_words(server, connect):
    connect().create("/e", ephemeral=True)
    assert raw.word(server.port, "ruok") == "imok"
    assert "Mode: standalone" in raw.word(server.port, "stat")
    assert "Node count: 5" in raw.word(server.port, "srvr")
    monitored = dict(line.split("\t") for line in raw.word(server.port, "mntr").splitlines())
    assert monitored["zk_znode_count"] == "5" and monitored["zk_ephemerals_count"] == "1"
    assert monitored["zk_num_alive_connections"] == "2"
    assert raw.word(server.port, "isro") == "rw"
    assert "\t/e\n" in raw.word(server.port, "dump")


def hung_up_after(port: int, data: bytes, hello: bool = True) -> bool:
    client = RawClient(port) if hello else None
    connection = client.socket if client else socket.create_connection(("127.0.0.1", port), timeout=20)
    try:
        connection.sendall(data)
        while connection.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    finally:
        connection.close()


def test_bad_clients_end_their_own_connection_only(server, connect):
    good = connect()
    frame = lambda body: raw.integer(len(body)) + body  # noqa: E731
    request = lambda op, body=b"": frame(raw.integer(1) + raw.integer(op) + body)  # noqa: E731
    bad = [raw.integer(-1), raw.integer(2**31 - 1), raw.integer(1_048_576), frame(b""), frame(b"abc"), request(raw.CREATE),
           request(raw.CREATE, raw.integer(2**30)), request(raw.GET, raw.text("/a")), request(raw.MULTI, b"\0" * 9),
           request(raw.SET_WATCHES2, raw.long(0) + raw.integer(2**31 - 1)),
           request(raw.SET_WATCHES2, raw.long(0) + raw.texts(["no path"]) + raw.texts([]) * 4)]
    for data in bad:
        assert hung_up_after(server.port, data), data
    for data in [b"GET / HTTP/1.1\r\n\r\n", raw.integer(2), frame(b"\0" * 20) + b"x", raw.integer(44) + b"\xff" * 44]:
        assert hung_up_after(server.port, data, hello=False), data
    dice = random.Random(4711)
    for _ in range(200):
        op = dice.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15, 17, 18, 19, 21, 22, 100, 101, 103, 104, 105, 106, 107])
        client = RawClient(server.port)
        try:
            client.send(op, bytes(dice.choice([0, 0, 0, 1, 47, 97, 255]) for _ in range(dice.randrange(60))))
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        client.drop()
    unknown = RawClient(server.port)
    assert unknown.ask(4711)[1] == -6
    assert good.exists("/") and raw.word(server.port, "ruok") == "imok"


def test_limits(tmp_path):
    server = EmbeddedZooKeeper(tmp_path / "zookeeper", options=["tree-bytes=300000", "connections=3"]).start()
    try:
        client = RawClient(server.port)
        assert client.ask(raw.CREATE, raw.create("/a", b"x" * 200_000))[1] == 0
        assert client.ask(raw.CREATE, raw.create("/b", b"x" * 200_000))[1] == -125
        assert client.ask(raw.SET, raw.text("/a") + raw.text(b"x" * 400_000) + raw.integer(-1))[1] == -125
        assert client.ask(raw.DELETE, raw.text("/a") + raw.integer(-1))[1] == 0
        assert client.ask(raw.CREATE, raw.create("/b", b"x" * 200_000))[1] == 0
        others = [RawClient(server.port) for _ in range(2)]
        with pytest.raises(Closed):
            RawClient(server.port)
        others[0].close()
        wait_for(lambda: raw.word(server.port, "ruok") == "imok", "there is room again")
    finally:
        server.stop()


def start_fails(folder, journal) -> str:
    server = EmbeddedZooKeeper(folder)
    server.words[0] = f"journal={journal}"
    server.start(wait=False)
    assert server.process.wait(20) == 1
    return server.process.output()


def test_state_that_cannot_be_used_is_refused(tmp_path, server):
    assert "in use by process" in start_fails(tmp_path / "second", server.journal)
    client = RawClient(server.port)
    client.ask(raw.CREATE, raw.create("/a", b"x" * 100_000))
    server.stop()
    newer = tmp_path / "newer.sqlite"
    newer.write_bytes(server.journal.read_bytes())
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
    assert "newer version" in start_fails(tmp_path / "third", newer)
    damaged = tmp_path / "damaged.sqlite"
    content = bytearray(server.journal.read_bytes())
    content[4096:4196] = b"\xff" * 100
    damaged.write_bytes(content)
    refused = start_fails(tmp_path / "fourth", damaged)
    assert "cannot be used: it is damaged; put a back-up in its place, or move it away to begin anew" in refused
    damaged.write_bytes(b"no database" * 1000)
    refused = start_fails(tmp_path / "no-database", damaged)
    assert "cannot be used: it is damaged; put a back-up in its place, or move it away to begin anew: file is not a" in refused
    orphan = tmp_path / "orphan.sqlite"
    orphan.write_bytes(server.journal.read_bytes())
    with sqlite3.connect(orphan) as database:
        database.execute("UPDATE znode SET path = '/gone/a' WHERE path = '/a'")
    assert "/gone/a is stored without its parent" in start_fails(tmp_path / "fifth", orphan)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE other (x)")
    assert "not a file of this server" in start_fails(tmp_path / "sixth", foreign)
    assert oct(server.journal.stat().st_mode & 0o777) == "0o600"


def test_back_up_while_it_runs(tmp_path, server):
    client = RawClient(server.port)
    client.ask(raw.CREATE, raw.create("/before", b"data"))
    copy = tmp_path / "copy.sqlite"
    with sqlite3.connect(server.journal) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    client.ask(raw.CREATE, raw.create("/after"))
    restored = EmbeddedZooKeeper(tmp_path / "restored")
    restored.words[0] = f"journal={copy}"
    restored.start()
    try:
        reader = RawClient(restored.port)
        assert reader.ask(raw.GET, raw.text("/before") + b"\0")[2].text() == b"data"
        assert reader.ask(raw.EXISTS, raw.text("/after") + b"\0")[1] == -101
    finally:
        restored.stop()


def storm(client: RawClient, root: str, dice: random.Random, kill_after: float, server) -> tuple[int, int]:
    """Pairs of znodes in `root`, each with its number in the parent in one transaction, sent without waiting
    until the server is killed. How many were sent, and how many of them, the first ones, acknowledged."""
    sent = acknowledged = 0
    killer = threading.Timer(kill_after, server.process.kill)
    killer.start()
    try:
        while True:
            for _ in range(dice.randrange(1, 30)):
                pair = [(raw.CREATE, raw.create(f"{root}/{sent}-{side}", str(sent).encode())) for side in "ab"]
                number = (raw.SET, raw.text(root) + raw.text(str(sent)) + raw.integer(-1))
                client.send(raw.MULTI, raw.multi([*pair, number]))
                sent += 1
            while acknowledged < sent:
                _, _, error, results = client.receive()
                assert error == 0 and results.take("i") == raw.CREATE, "refused"
                acknowledged += 1
    except Closed:
        pass
    killer.join()
    return sent, acknowledged


def test_killed_in_a_storm_of_writes_nothing_acknowledged_is_lost(server):
    dice = random.Random(17)
    RawClient(server.port).ask(raw.CREATE, raw.create("/storm"))
    total = 0
    for turn in range(raw.from_environment("NODEPOOL_KILLS", 30)):
        root = f"/storm/{turn}"
        client = RawClient(server.port)
        assert client.ask(raw.CREATE, raw.create(root))[1] == 0
        sent, acknowledged = storm(client, root, dice, dice.uniform(0.01, 0.2), server)
        server.start()
        reader = RawClient(server.port)
        children = lambda path: {name.decode() for name in reader.ask(raw.CHILDREN, raw.text(path) + b"\0")[2].texts()}  # noqa: E731
        assert children("/storm") == {str(turn)}, "what was deleted before an earlier kill is there again"
        names = children(root)
        kept = len(names) // 2
        assert acknowledged <= kept <= sent, "an acknowledged write is lost"
        assert names == {f"{number}-{side}" for number in range(kept) for side in "ab"}, "a transaction is torn"
        answer = reader.ask(raw.GET, raw.text(root) + b"\0")[2]
        last, stat = int(answer.text() or b"-1"), answer.stat()
        assert last == kept - 1 and stat[9] == len(names)
        paths = [f"{root}/{name}" for name in names] + [root]
        for start in range(0, len(paths), 1000):
            deletions = [(raw.DELETE, raw.text(path) + raw.integer(-1)) for path in paths[start:start + 1000]]
            assert reader.ask(raw.MULTI, raw.multi(deletions))[1] == 0
        total += acknowledged
    assert total


def test_stopping_in_good_order_keeps_everything(server):
    client = RawClient(server.port)
    for number in range(200):
        client.send(raw.CREATE, raw.create(f"/{number}"))
    for _ in range(200):
        assert client.receive()[2] == 0
    server.stop()
    server.start()
    assert len(RawClient(server.port).ask(raw.CHILDREN, raw.text("/") + b"\0")[2].texts()) == 201
