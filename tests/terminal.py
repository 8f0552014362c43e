"""What a person sees in a terminal: commands run in tmux, which shows what a terminal of a given size would."""
import os
import pathlib
import shlex
import subprocess
import tempfile

from services import wait_for


class Terminal:
    """A tmux server of its own. Used in a with statement."""

    def __enter__(self):
        # The path of a socket is short.
        self._folder = tempfile.TemporaryDirectory(prefix="screen")
        self.folder = pathlib.Path(self._folder.name)
        (self.folder / "tmux.conf").write_text("set -g status off\nset -g history-limit 5000\nset -s exit-empty off\n")
        return self

    def __exit__(self, *_):
        subprocess.run([*self._tmux(), "kill-server"], capture_output=True, timeout=30)
        self._folder.cleanup()

    def _tmux(self):
        return ["tmux", "-u", "-f", self.folder / "tmux.conf", "-S", self.folder / "socket"]

    def show(self, words, columns: int, rows: int) -> list[str]:
        """The lines that a command which ends leaves on a screen that was empty, with those that went off its top."""
        done = self.folder / "done"
        done.unlink(missing_ok=True)
        command = f"{shlex.join(map(str, words))} 2>&1; touch {done}; exec sleep 600"
        subprocess.run([*self._tmux(), "new-session", "-d", "-s", "screen", "-x", str(columns), "-y", str(rows), command],
                       check=True, timeout=30, env={**os.environ, "LC_ALL": "C.UTF-8"})
        try:
            wait_for(done.exists, f"{words} ends")
            shown = subprocess.run([*self._tmux(), "capture-pane", "-p", "-S", "-", "-t", "screen"], capture_output=True,
                                   text=True, check=True, timeout=30)
        finally:
            subprocess.run([*self._tmux(), "kill-session", "-t", "screen"], capture_output=True, timeout=30)
        return [line.rstrip() for line in shown.stdout.rstrip().splitlines()]
