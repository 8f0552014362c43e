"""What pages of the documentation tell their reader to type or to write, so that tests do it word for word."""
import dataclasses
import re

from services import ROOT


@dataclasses.dataclass(frozen=True)
class Typed:
    line: str


@dataclasses.dataclass(frozen=True)
class Shown:
    lines: list[str]


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

    def introduction(self) -> "Page":
        """What is before the first section below its title."""
        return Page(self.text.partition("\n## ")[0] + "\n")

    def steps(self) -> list["Typed | Shown"]:
        """Its commands and what it says that they show, in its order: indented lines are typed, fenced blocks without a
        language are shown."""
        found = re.finditer(r"^```(?P<language>\w*)\n(?P<fenced>(?s:.*?))^```|(?<=\n\n)(?P<indented>(?:    .*\n)+)", "\n\n" + self.text,
                            re.M)
        steps = []
        for block in found:
            if block["indented"]:
                steps += [Typed(line.strip()) for line in block["indented"].splitlines()]
            elif not block["language"]:
                steps.append(Shown(block["fenced"].splitlines()))
        return steps

    def commands(self) -> list[str]:
        """The lines that are typed."""
        return [step.line for step in self.steps() if isinstance(step, Typed)]

    def links(self) -> set[str]:
        """The files that it links to, without the places in them."""
        return {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", self.text) if "://" not in target}

    def blocks(self, language: str) -> list[str]:
        """The fenced blocks of a language."""
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.M | re.S)

    def code(self, beginning: str) -> str:
        """The one piece of code within the text that begins so."""
        (found,) = re.findall(rf"`({re.escape(beginning)}[^`]*)`", self.text)
        return " ".join(found.split())
