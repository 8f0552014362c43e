"""The ids of the specification's behaviours, and how code, tests and documents cite them and its sections."""
import dataclasses
import functools
import pathlib
import re

NUMBER = r"\d{1,2}(?:\.\d{1,2}){0,2}(?![\w%]|\.\d)"
# launcher.md 10.4; continued: launcher.md 10, 11.2 to 11.4
SECTION = re.compile(r"(?<![\w./-])(?P<page>[a-z][a-z-]*\.md)`?,?\s+(?:sections?\s+)?"
                     rf"(?P<numbers>{NUMBER}(?:(?:,\s+(?:and\s+)?|\s+and\s+|\s+to\s+|-|\.\.){NUMBER})*)")

DOCUMENT = r"(?:coordination|configuration|launcher|drivers|operations|builder)"
# LA-12, BB-03..05, S-waiting, coordination.17.5, 17.39
ID = re.compile(rf"(?<![\w.-])(?P<numbered>(?:LA|NS|CC|OT|BB|D|AWS|GCE|K8S|LV|EXEC|PAGE|REQ|ACT|CONS|OPENAPI|TLS|HTTP|TRY|WHY|RUN|BRK|VAL|RATE|TAKE)-\d+)(?:\.\.(?P<last>\d+))?(?![\w-])"
                rf"|(?<![\w.-])(?P<named>[SFMDOB]-(?!nn?\b)[a-z][a-z0-9-]*)(?![\w-])"
                rf"|(?<![\w.-])(?P<section>{DOCUMENT}\.\d+\.\d+)(?P<more>(?:, \d+\.\d+)*)(?![\w.]\d)")


def ids_of(match: re.Match) -> list[str]:
    """The ids of one match of ID, with ranges and continued lists expanded."""
    if match["numbered"]:
        kind, first = match["numbered"].rsplit("-", 1)
        return [f"{kind}-{number:0{len(first)}}" for number in range(int(first), int(match["last"] or first) + 1)]
    if match["named"]:
        return [match["named"]]
    document = match["section"].split(".")[0]
    return [match["section"], *(f"{document}.{more}" for more in re.findall(r"\d+\.\d+", match["more"]))]


def ids_in(text: str) -> list[str]:
    """Every id that `text` names."""
    return [found for match in ID.finditer(text) for found in ids_of(match)]


HEADING = re.compile(r"^#+ (?P<number>\d+(?:\.\d+)*)\.? (?P<title>.*)")
ROW = re.compile(r"^\| *(?P<first>[^|]*?) *\|(?P<rest>.*?)\|? *$")
ITEM = re.compile(r"^(?P<number>\d+)\. (?P<text>.*)")
# The last words of a row: what a test does not prove.
MARK = re.compile(r" \*(?P<how>Partly|Not) tested: (?P<reason>[^*]+)\.\*$")


@dataclasses.dataclass
class Behaviour:
    """A row of a page that has an id."""
    id: str
    page: str
    section: str   # its title
    text: str
    how: str = ""  # Partly, Not: tested; empty: wholly
    reason: str = ""
    tests: list = dataclasses.field(default_factory=list)  # (file, test name)


def behaviours_in(page: pathlib.Path):
    """The behaviours of a page of docs/spec: rows whose first cell has ids, and in a section of that name the numbered
    rows and items, whose ids are made of page, section and number."""
    number, title = "", ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            number, title = heading["number"], heading["title"]
            continue
        row, item = ROW.match(line), ITEM.match(line)
        first, text = (row["first"], row["rest"].strip()) if row else (item["number"], item["text"]) if item else ("", "")
        ids = ids_in(first) if row else []
        if page.name != "decisions.md":
            ids = [found for found in ids if not re.fullmatch(r"D-\d+", found)]  # a decision that the row cites
        if not ids and first.isdigit() and title.startswith("Black-box"):
            ids = [f"{page.stem}.{number}.{first}"]
        mark = MARK.search(text)
        for found in ids:
            yield Behaviour(found, page.name, title, MARK.sub("", text), mark["how"] if mark else "", mark["reason"] if mark else "")


FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def blank(match: re.Match) -> str:
    """As many lines as were matched, without their text."""
    return re.sub(r"[^\n]", " ", match[0])


class Specification:
    """What docs/spec of a checkout defines."""

    def __init__(self, root: pathlib.Path):
        pages = sorted((root / "docs/spec").glob("*.md"))
        self.pages = {page.name: FENCED.sub(blank, page.read_text(encoding="utf-8")) for page in pages}
        self.behaviours = [row for page in pages for row in behaviours_in(page)]
        self._ids = {row.id for row in self.behaviours}

    @functools.cache
    def has_section(self, page: str, number: str) -> bool:
        """Whether the page has a heading of this number, or the section before its last part such an item or row."""
        text = self.pages.get(page, "")
        if re.search(rf"^#+ {re.escape(number)}[. ]", text, re.MULTILINE):
            return True
        section, _, item = number.rpartition(".")
        body = section and re.search(rf"^#+ {re.escape(section)}[. ](.*?)(?=^#+ \d|\Z)", text, re.MULTILINE | re.DOTALL)
        return bool(body and re.search(rf"^ *(?:{item}\.|\| *{item} *\|)", body[1], re.MULTILINE))

    def has_id(self, name: str) -> bool:
        page, _, number = name.partition(".")
        return name in self._ids or (bool(number) and self.has_section(f"{page}.md", number))
