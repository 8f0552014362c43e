"""The receiving end of statsd."""
import re
import socket
import threading
import time


class StatsdListener:
    """Keeps every packet with its sender's port."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.packets = []
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self):
        while True:
            data, sender = self.socket.recvfrom(65536)
            if data == b"stop":
                return
            self.packets.append((time.monotonic(), sender[1], data))

    def close(self):
        self.socket.sendto(b"stop", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()

    def lines(self, pattern: str, since: float = 0) -> list[tuple[int, str]]:
        """(sender, line) of what matches from its beginning on."""
        return [(sender, line) for when, sender, data in list(self.packets) if when >= since
                for line in data.decode("ascii").split("\n") if re.match(pattern, line)]

    def last(self, key: str) -> str | None:
        found = self.lines(re.escape(key) + ":")
        return found[-1][1].split(":", 1)[1] if found else None
