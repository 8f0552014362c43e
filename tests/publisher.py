"""What publishes events of jobs over ZeroMQ."""
import json

import zmq


class Publisher:
    """As Jenkins' ZMQ event publisher, or a Zuul launcher of old."""

    def __init__(self):
        self.socket = zmq.Context.instance().socket(zmq.PUB)
        self.socket.linger = 0
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{self.port}"

    def send(self, topic, name, node_name, **build):
        event = {"name": name, "url": f"job/{name}/", "build": {"number": 1, "node_name": node_name, **build}}
        self.raw(f"{topic} {json.dumps(event)}".encode())

    def raw(self, message: bytes):
        self.socket.send(message)

    def close(self):
        self.socket.close()
