"""A window with a terminal, in which one command runs."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

from services import die_with_parent

SIZE = struct.pack("HHHH", 24, 80, 0, 0)
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Window:
    """80 columns, without colors. What was shown is kept, also what a line that is rewritten had before."""

    def __init__(self, words):
        self._terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, SIZE)
        self._child = subprocess.Popen([str(word) for word in words], stdin=inside, stdout=inside, stderr=inside,
                                       env={**os.environ, "TERM": "dumb"}, start_new_session=True, preexec_fn=_prepare)
        os.close(inside)
        self._shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            while part := os.read(self._terminal, 65536):
                self._shown += part
        except OSError:
            pass  # the last process has closed the terminal
        os.close(self._terminal)

    def shown(self) -> str:
        return CONTROLS.sub("", self._shown.decode(errors="replace"))

    def press(self, key: bytes):
        os.write(self._terminal, key)

    def is_running(self) -> bool:
        return self._child.poll() is None

    def wait(self, seconds: float) -> int:
        """The exit status. What the command has shown is known then."""
        status = self._child.wait(seconds)
        self._reader.join(5)
        return status

    def close(self):
        if self.is_running():
            self._child.send_signal(signal.SIGTERM)
        try:
            self.wait(20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self.wait(20)


def _prepare():
    die_with_parent()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
