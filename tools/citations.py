"""How code, tests and documents cite the specification: sections of its pages and ids of behaviours."""
import re

NUMBER = r"\d{1,2}(?:\.\d{1,2}){0,2}(?![\w%]|\.\d)"
# launcher.md 10.4; continued: launcher.md 10, 11.2 to 11.4
SECTION = re.compile(r"(?<![\w./-])(?P<page>[a-z][a-z-]*\.md)`?,?\s+(?:sections?\s+)?"
                     rf"(?P<numbers>{NUMBER}(?:(?:,\s+(?:and\s+)?|\s+and\s+|\s+to\s+|-|\.\.){NUMBER})*)")

DOCUMENT = r"(?:coordination|configuration|launcher|drivers|operations|builder)"
# LA-12, BB-03..05, S-waiting, coordination.17.5, 17.39
ID = re.compile(rf"(?<![\w.-])(?P<numbered>(?:LA|NS|CC|OT|BB|D|AWS|K8S|LV|EXEC|PAGE|REQ|ACT|CONS|OPENAPI|TLS|HTTP|TRY|WHY)-\d+)(?:\.\.(?P<last>\d+))?(?![\w-])"
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
