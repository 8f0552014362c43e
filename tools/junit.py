"""Reads the JUnit files of test programs."""
import fnmatch
import pathlib
import xml.etree.ElementTree as ElementTree


def read_allowed(path: pathlib.Path) -> list[str]:
    """The patterns of tests/allowed-skips.txt; each must have a reason."""
    patterns = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" ")
        if not reason.strip():
            raise ValueError(f"{path}: '{pattern}' has no reason")
        patterns.append(pattern)
    return patterns


def totals(files, allowed=()) -> tuple[int, int, list[str]]:
    """(passed, failed, skipped): an allowed skip counts as neither; any other counts as failed and is listed."""
    passed = failed = 0
    skipped = []
    for file in files:
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif skip is None and case.get("status") != "notrun":
                passed += 1
            elif not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed):
                failed += 1
                skipped.append(f"{name}: {skip.get('message') if skip is not None else 'it is disabled'}")
    return passed, failed, skipped
