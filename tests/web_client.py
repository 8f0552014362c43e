"""What tests ask of a launcher's web server."""
import socket
import ssl
import urllib.error
import urllib.request

from services import free_port, wait_for


def get(port: int, path: str, tls: ssl.SSLContext | None = None, **headers) -> tuple[int, dict, str]:
    """Status, headers and body; a `_` in the name of a header stands for a dash."""
    server = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(server + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def connect(port: int, sent: bytes = b"", receive_buffer: int | None = None) -> socket.socket:
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", port))
    connection.sendall(sent)
    return connection


def exchange(port: int, sent: bytes) -> bytes:
    """Everything that the server answers until it hangs up."""
    with connect(port) as connection:
        parts = []
        try:
            connection.sendall(sent)
            while part := connection.recv(1 << 20):
                parts.append(part)
        except (ConnectionResetError, BrokenPipeError):
            pass  # it did not want to hear all of it
        return b"".join(parts)


def first_answer(port: int, path: str, tls: ssl.SSLContext | None = None):
    """The first answer of a server that is about to listen."""
    def ask():
        try:
            return get(port, path, tls)
        except OSError:
            return None

    return wait_for(ask, "the web server answers")


def web_config(site, port, tls=None, **settings):
    """With `tls`, a WebTls, the web server has its certificate."""
    webapp = {"listen_address": "127.0.0.1", "port": port, **({"tls": tls.settings} if tls else {})}
    return site.config(webapp=webapp, **settings)


def web_config_without_zookeeper(site, port):
    """The same with a ZooKeeper that is not there."""
    config = web_config(site, port)
    config.write_text(config.read_text().replace(f"port: {site.hosts.rsplit(':', 1)[1]}", f"port: {free_port()}"))
    return config
