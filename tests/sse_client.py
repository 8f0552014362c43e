"""A client of Server-Sent Events."""
import dataclasses
import json
import socket
import ssl
import time


@dataclasses.dataclass
class Event:
    id: str
    name: str
    data: dict
    at: float  # time.monotonic() when it was received


class EventStream:
    """A stream of events; `head` is its head. Comments are counted."""

    def __init__(self, port: int, target: str = "/api/v1/events", version: str = "1.1", receive_buffer: int = 0,
                 tls: ssl.SSLContext | None = None, **headers):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        lines = [f"GET {target} HTTP/{version}", "Host: x", *(f"{name.replace('_', '-')}: {value}"
                                                              for name, value in headers.items())]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.raw = b""
        self.end = None
        while b"\r\n\r\n" not in self.raw:
            assert self._receive(), f"the server hung up: {self.raw!r}"
        head, self.raw = self.raw.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        self.is_chunked = "transfer-encoding: chunked" in self.head.lower()
        self.text = ""
        self.comments = 0
        self.is_ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def _receive(self) -> bool:
        assert self.end is None or time.monotonic() < self.end, "the event has not come"
        part = self.socket.recv(1 << 16)
        self.raw += part
        return bool(part)

    def _take_chunks(self):
        if not self.is_chunked:
            self.text += self.raw.decode()
            self.raw = b""
        while b"\r\n" in self.raw and self.is_chunked:
            size, rest = self.raw.split(b"\r\n", 1)
            length = int(size, 16)
            if len(rest) < length + 2:
                return
            self.text += rest[:length].decode()
            self.raw = rest[length + 2:]
            self.is_ended = self.is_ended or length == 0

    def next(self) -> Event:
        """The next event; fails when the stream ends or is silent for too long."""
        while True:
            while "\n\n" in self.text:
                block, self.text = self.text.split("\n\n", 1)
                if event := self._event(block):
                    return event
            self._take_chunks()
            if "\n\n" not in self.text:
                assert not self.is_ended and self._receive(), "the stream has ended"
                self._take_chunks()

    def _event(self, block: str) -> Event | None:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" not in fields:
            self.comments += 1
            return None
        return Event(fields["id"], fields["event"], json.loads(fields["data"]), time.monotonic())

    def until(self, is_wanted, seconds: float = 20) -> Event:
        """The next event that is wanted; others are passed over."""
        self.end = time.monotonic() + seconds
        while not is_wanted(event := self.next()):
            pass
        self.end = None
        return event
