"""What hostile ZooKeeper clients do: many connections, requests without end, answers that are not read."""
import contextlib
import select
import socket
import threading

from services import wait_for
from zk_raw import CREATE, MULTI, Closed, RawClient, create, integer, multi, word

MOST_BYTES = 900_000  # of a frame


def frame(op: int, body: bytes, xid: int = 1) -> bytes:
    content = integer(xid) + integer(op) + body
    return integer(len(content)) + content


def connect(port: int, count: int, receive_buffer: int = 0, timeout_ms: int = 30_000) -> list[RawClient]:
    clients = [RawClient(port, timeout_ms) for _ in range(count)]
    for client in clients:
        client.socket.settimeout(60)
        if receive_buffer:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    return clients


def create_all(client: RawClient, paths: list[str], data: bytes = b""):
    """Creates the znodes in as few transactions as their sizes permit."""
    batch, size = [], 0
    for path in paths:
        part = (CREATE, create(path, data))
        if batch and size + len(part[1]) > MOST_BYTES:
            commit(client, batch)
            batch, size = [], 0
        batch.append(part)
        size += len(part[1]) + 16
    commit(client, batch)


def commit(client: RawClient, parts: list):
    assert client.ask(MULTI, multi(parts))[1] == 0


def send_all(client: RawClient, data: bytes):
    """Sends as much as the server takes before it hangs up."""
    with contextlib.suppress(ConnectionError, TimeoutError, Closed):
        client.socket.sendall(data)


def is_hung_up(client: RawClient, seconds: float = 20) -> bool:
    """Reads until the server hangs up."""
    client.socket.settimeout(seconds)
    try:
        while client.socket.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def is_admitted(port: int) -> bool:
    """Whether a new client gets a session."""
    try:
        RawClient(port).close()
        return True
    except (Closed, OSError):
        return False


def wait_answered(clients: list[RawClient]):
    """Returns when each client has got something to read, or has been hung up on."""
    waiting = select.poll()
    for client in clients:
        waiting.register(client.socket, select.POLLIN)
    wait_for(lambda: len(waiting.poll(0)) == len(clients), "all clients have answers", 60)


def statistics(port: int) -> dict[str, int]:
    """The numbers of `mntr`."""
    pairs = (line.split("\t") for line in word(port, "mntr").splitlines())
    return {name: int(value) for name, value in pairs if value.isdigit()}


class Flood:
    """Sends the same bytes without end, and discards the answers, until the server hangs up."""

    def __init__(self, client: RawClient, data: bytes):
        self.client = client
        self.data = data
        for work in (self._send, self._read):
            threading.Thread(target=work, daemon=True).start()

    def _send(self):
        with contextlib.suppress(OSError):
            while True:
                self.client.socket.sendall(self.data)

    def _read(self):
        with contextlib.suppress(OSError):
            while self.client.socket.recv(1 << 20):
                pass
