#!/usr/bin/python3
"""deaf_clients.py PORT COUNT NETWORKS [AUTHORITY]: COUNT clients of a web server, from so many addresses of this host. Each asks for
answers without reading one, and comes back when it is hung up on. The server has TLS, with a certificate for localhost, if the
authority that signed it is given.

Prints a line when all have asked, or tried to; ends with its input.
"""
import select
import socket
import ssl
import sys
import threading
import time

RECEIVE_BUFFER = 4096
ASKED = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100


def ask(port: int, source: str, tls: ssl.SSLContext | None) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    connection.settimeout(20)
    connection.bind((source, 0))
    connection.connect(("127.0.0.1", port))
    if tls:
        connection = tls.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(ASKED)
    return connection


def stay(port: int, source: str, tls: ssl.SSLContext | None, has_asked: threading.Semaphore):
    is_first = True
    while True:
        try:
            with ask(port, source, tls) as connection:
                if is_first:
                    has_asked.release()
                is_first = False
                hung_up = select.poll()
                hung_up.register(connection.fileno(), select.POLLRDHUP)
                hung_up.poll()
        except OSError:  # hung up on before it has asked
            if is_first:
                has_asked.release()
            is_first = False
            time.sleep(0.01)


def main():
    port, count, networks = map(int, sys.argv[1:4])
    tls = ssl.create_default_context(cafile=sys.argv[4]) if len(sys.argv) > 4 else None
    has_asked = threading.Semaphore(0)
    threading.stack_size(256 * 1024)
    for number in range(count):
        source = f"127.0.{number % networks // 200}.{number % networks % 200 + 1}"
        threading.Thread(target=stay, args=(port, source, tls, has_asked), daemon=True).start()
    for _ in range(count):
        has_asked.acquire()
    print("asked", flush=True)
    sys.stdin.read()


main()
