"""Somebody who does what a page says, word for word: types each command, in the page's order, and expects to see what the page
shows."""
import re

from pages import Shown
from services import wait_for
from window import Window

# Commands that go on, and what is seen when the reader may go on, too.
GOES_ON = [(r"\./run", "The launcher runs until Ctrl-C"), (r".* request .* --wait", "fulfilled"),
           (r".* standalone --try.*", "The page: "), (r".* standalone.*", "Serving ")]
LEFT_OUT = {"./test": "takes a quarter of an hour, and runs this"}
SECONDS = 1800  # the first build


def awaited_of(command: str) -> str | None:
    """What a command shows that goes on; None: it ends."""
    return next((text for pattern, text in GOES_ON if re.fullmatch(pattern, command)), None)


def as_pattern(line: str) -> re.Pattern:
    """What a line of a page stands for: numbers and columns' widths may differ, and … is anything."""
    words = [re.sub(r"\d+", r"\\d+", re.escape(word)).replace("…", ".*") for word in line.split()]
    return re.compile(r"\s*" + r"\s+".join(re.sub(r"-{3,}", "-+", word.replace(r"\-", "-")) for word in words) + r"\s*")


class Reader:
    """`words` enter the folder of the checkout. Used in a with statement, at whose end all windows are closed."""

    def __init__(self, words):
        self.words = [*map(str, words), "bash", "-c"]
        self.windows: dict[str, Window] = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for window in reversed(self.windows.values()):
            window.close()

    def follow(self, steps):
        """Does everything that a page says (Page.steps)."""
        for step in steps:
            if isinstance(step, Shown):
                self.see(step.lines)
            else:
                self.type(step.line.partition("#")[0].strip())

    def expect_the_end(self):
        """Each command ends, and well."""
        for command, window in self.windows.items():
            assert window.wait(60) == 0, f"{command}\n{window.shown()[-4000:]}"

    def press_ctrl_c(self):
        for window in self.windows.values():
            if window.is_running():
                window.press(b"\x03")

    def type(self, command: str):
        if command in LEFT_OUT:
            return
        window = self.windows[command] = Window([*self.words, command])
        awaited = awaited_of(command)
        if awaited is None:
            assert window.wait(SECONDS) == 0, f"{command}\n{window.shown()[-4000:]}"
        else:
            wait_for(lambda: awaited in window.shown() or not window.is_running(), f"{command} shows {awaited}", SECONDS)
            assert window.is_running(), f"{command}\n{window.shown()[-4000:]}"

    def see(self, lines: list[str]):
        """One of the windows shows these lines."""
        patterns = [as_pattern(line) for line in lines if line.strip()]
        shown = {command: window.shown().splitlines() for command, window in self.windows.items()}
        found = any(all(any(pattern.fullmatch(line) for line in text) for pattern in patterns) for text in shown.values())
        assert found, "\n".join(["the page shows", *lines, "and the last windows", *list(shown.items())[-1][1],
                                 *shown.get("./run", [])])
