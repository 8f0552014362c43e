"""Who uses a state folder."""
import fcntl
import os
import pathlib


class Claim:
    """The state folder belongs to one ./run at a time; the file holds its process id."""

    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "run.pid"
        self.file = open(self.path, "a+")

    def take(self) -> bool:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.file.truncate(0)
        self.file.write(f"{os.getpid()}\n")
        self.file.flush()
        return True

    def owner(self) -> int:
        return int(self.path.read_text() or 0)
