"""A web server for one image."""
import http.server
import pathlib
import threading


class ImageServer(http.server.ThreadingHTTPServer):
    """Serves one file, and counts how often it was asked for."""

    def __init__(self, image: pathlib.Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.image = image
        self.requests = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/guest.qcow2"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.image.stat().st_size))
        self.end_headers()
        with self.server.image.open("rb") as image:
            while piece := image.read(1 << 20):
                self.wfile.write(piece)

    def log_message(self, *_):
        pass
