"""What pages of the documentation tell their reader to type or to write, so that tests do it word for word."""
import re

from services import ROOT


class Page:
    """A page in Markdown, or a section of one."""

    def __init__(self, text: str):
        self.text = text

    @classmethod
    def read(cls, name: str) -> "Page":
        """The page at a path from the root of the source tree."""
        return cls((ROOT / name).read_text())

    def section(self, heading: str) -> "Page":
        """What is below a heading, with the sections in it."""
        level, begin = next((len(found[1]), found.end()) for found in re.finditer(r"^(#+) (.*)\n", self.text, re.M)
                            if found[2] == heading)
        end = re.search(rf"^#{{1,{level}}} ", self.text[begin:], re.M)
        return Page(self.text[begin:begin + end.start()] if end else self.text[begin:])

    def commands(self) -> list[str]:
        """The indented lines, but for those of tables, which are output."""
        blocks = re.findall(r"(?<=\n\n)(?:    .*\n)+", "\n\n" + self.text)
        return [line.strip() for block in blocks if not block.startswith("    +") for line in block.splitlines()]

    def blocks(self, language: str) -> list[str]:
        """The fenced blocks of a language."""
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.M | re.S)

    def code(self, beginning: str) -> str:
        """The one piece of code within the text that begins so."""
        (found,) = re.findall(rf"`({re.escape(beginning)}[^`]*)`", self.text)
        return " ".join(found.split())
