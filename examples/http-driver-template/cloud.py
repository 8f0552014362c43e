#!/usr/bin/python3
"""A simulated cloud: GET /quota, GET and POST /machines, DELETE /machines/ID. Usage: cloud.py [PORT]"""
import http.server
import itertools
import json
import sys

LIMIT = 20
machines = {}  # by id
ids = itertools.count(1)


class Cloud(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_call(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        kind, _, name = self.path.strip("/").partition("/")
        if self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, {"code": "Unauthorized", "message": "wrong token"})
        if self.command == "GET":
            found = {"quota": {"machines": LIMIT}, "machines": {"machines": list(machines.values())}}
            return self.answer(200, found[kind])
        if self.command == "DELETE":
            known = machines.pop(name, None) is not None
            return self.answer(200 if known else 404, {} if known else {"code": "NotFound", "message": "no such machine"})
        if len(machines) >= LIMIT:
            return self.answer(403, {"code": "LimitExceeded", "message": f"the account has {LIMIT} machines"})
        machine = {**body, "id": f"m{next(ids)}", "state": "running", "address": "127.0.0.1"}
        machines[machine["id"]] = machine
        return self.answer(201, machine)

    do_GET = do_POST = do_DELETE = handle_call

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8099), Cloud).serve_forever()
