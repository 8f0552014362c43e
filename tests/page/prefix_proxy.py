"""A reverse proxy that serves a web server below a path prefix, byte by byte."""
import re
import socket
import threading


class PrefixProxy:
    def __init__(self, prefix: str, target: int, headers: dict[str, str] | None = None):
        """It sends `headers` in place of the client's; an empty one is left out."""
        self.prefix = prefix.encode()
        self.headers = headers or {}
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = [self.listener]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for each in self.open:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def _accept(self):
        try:
            while True:
                client = self.listener.accept()[0]
                self.open.append(client)
                threading.Thread(target=self._serve, args=[client], daemon=True).start()
        except OSError:
            pass

    def _serve(self, client: socket.socket):
        """One request for each connection."""
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(65536)
                if not part:
                    return
                head += part
            line, rest = head.split(b"\r\n", 1)
            method, path, version = line.split(b" ")
            if not path.startswith(self.prefix + b"/"):
                client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            for name, value in self.headers.items():
                rest = re.sub(rf"(?im)^{name}: .*\r\n".encode(), f"{name}: {value}\r\n".encode() if value else b"", rest)
            server = socket.create_connection(("127.0.0.1", self.target))
            self.open.append(server)
            server.sendall(b" ".join([method, path[len(self.prefix):], version]) + b"\r\nConnection: close\r\n" + rest)
            while part := server.recv(65536):
                client.sendall(part)
        except OSError:
            pass
        finally:
            client.close()
