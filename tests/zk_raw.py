"""ZooKeeper's client protocol, bare: one socket, one answer at a time, every byte visible."""
import base64
import hashlib
import os
import socket
import struct

CREATE, DELETE, EXISTS, GET, SET, GET_ACL, SET_ACL, CHILDREN, SYNC, PING = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11
CHILDREN2, CHECK, MULTI, CREATE2, CHECK_WATCHES, REMOVE_WATCHES, CONTAINER, MULTI_READ = 12, 13, 14, 15, 17, 18, 19, 22
AUTH, EPHEMERALS, COUNT, SET_WATCHES2, ADD_WATCH, CLOSE = 100, 103, 104, 105, 106, -11
OPEN_ACL = [(31, "world", "anyone")]
STAT = struct.Struct(">qqqqiiiqiiq")


def integer(value: int) -> bytes:
    return struct.pack(">i", value)


def long(value: int) -> bytes:
    return struct.pack(">q", value)


def text(value) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return integer(len(data)) + data


def texts(values) -> bytes:
    return integer(len(values)) + b"".join(text(value) for value in values)


def acl(entries) -> bytes:
    return integer(len(entries)) + b"".join(integer(bits) + text(scheme) + text(who) for bits, scheme, who in entries)


def digest_id(user: str, password: str) -> str:
    return user + ":" + base64.b64encode(hashlib.sha1(f"{user}:{password}".encode()).digest()).decode()


def create(path, data=b"", flags=0, access=OPEN_ACL) -> bytes:
    return text(path) + text(data) + acl(access) + integer(flags)


def part(op: int, body: bytes) -> bytes:
    return integer(op) + b"\0" + integer(-1) + body


def multi(parts) -> bytes:
    return b"".join(part(op, body) for op, body in parts) + integer(-1) + b"\1" + integer(-1)


class Reader:
    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def take(self, form: str):
        value, = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def text(self) -> bytes:
        size = max(self.take("i"), 0)
        self.at += size
        return self.data[self.at - size:self.at]

    def texts(self) -> list[bytes]:
        return [self.text() for _ in range(self.take("i"))]

    def rest(self) -> bytes:
        """What has not been read."""
        return self.data[self.at:]

    def stat(self) -> tuple:
        value = STAT.unpack_from(self.data, self.at)
        self.at += STAT.size
        return value


class Closed(Exception):
    """The server has hung up."""


class RawClient:
    def __init__(self, port: int, timeout_ms: int = 30000, session: int = 0, password: bytes = bytes(16), seen: int = 0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.events: list[tuple[int, int, bytes]] = []
        self.xid = 0
        self.zxid = seen
        self.send_frame(integer(0) + long(seen) + integer(timeout_ms) + long(session) + text(password) + b"\0")
        answer = Reader(self.read_frame())
        answer.take("i")
        self.timeout_ms = answer.take("i")
        self.session = answer.take("q")
        self.password = answer.text()

    def send_frame(self, body: bytes):
        try:
            self.socket.sendall(integer(len(body)) + body)
        except ConnectionError as error:
            raise Closed() from error

    def read_exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionError as error:
                raise Closed() from error
            if not more:
                raise Closed()
            data += more
        return data

    def read_frame(self) -> bytes:
        return self.read_exactly(struct.unpack(">i", self.read_exactly(4))[0])

    def send(self, op: int, body: bytes = b"", xid: int | None = None) -> int:
        if xid is None:
            self.xid += 1
            xid = self.xid
        self.send_frame(integer(xid) + integer(op) + body)
        return xid

    def receive(self) -> tuple[int, int, int, Reader]:
        """(xid, zxid, error, body) of the next answer; events on the way are kept."""
        while True:
            reader = Reader(self.read_frame())
            xid, zxid, error = reader.take("i"), reader.take("q"), reader.take("i")
            if xid != -1:
                if zxid > 0:
                    self.zxid = zxid
                return xid, zxid, error, reader
            self.events.append((reader.take("i"), reader.take("i"), reader.text()))

    def ask(self, op: int, body: bytes = b"", xid: int | None = None) -> tuple[int, int, Reader]:
        sent = self.send(op, body, xid)
        got, zxid, error, reader = self.receive()
        assert got == sent, f"an answer to {got} in the place of {sent}"
        return zxid, error, reader

    def ping(self):
        self.ask(PING, xid=-2)

    def take_events(self) -> list[tuple[int, int, bytes]]:
        self.ping()
        events, self.events = self.events, []
        return events

    def drop(self):
        """Breaks the connection; the session goes on."""
        self.socket.close()

    def close(self):
        try:
            self.ask(CLOSE)
        except (Closed, OSError):
            pass
        self.socket.close()


def word(port: int, command: str) -> str:
    """The answer to a four-letter word; empty when the connection is refused."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            connection.sendall(command.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except ConnectionError:
            return ""


def from_environment(name: str, default: int) -> int:
    return int(os.environ.get(name, default))
