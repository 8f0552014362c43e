"""The system's clock of a process, moved while it runs; its steady clock is left alone."""
import pathlib
import struct
import subprocess

SOURCE = pathlib.Path(__file__).parent / "data/moved_clock.c"


class MovedClock:
    """For all programs that are started with `env`."""

    def __init__(self, folder: pathlib.Path):
        library = folder / "moved_clock.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", SOURCE, "-o", library], check=True)
        self.file = folder / "clock"
        self.file.write_bytes(struct.pack("q", 0))
        self.env = {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(self.file)}

    def move(self, seconds: float):
        """Sets the clock so many seconds off the true time."""
        with open(self.file, "r+b") as file:  # in place, as the programs have it mapped
            file.write(struct.pack("q", int(seconds * 1e9)))
