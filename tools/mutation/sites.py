"""Finds the places of a C++ source that a mutant can change, and writes the changed source.

It relies on the layout of clang-format: binary operators are between blanks, and a
statement begins a line or follows `if (...)`. The caller discards mutants that do not compile.
"""
import dataclasses
import re

ON = "nodepool::mutants::On({number})"
COMPARISONS = {"<": ("less", "less_equal"), "<=": ("less_equal", "less"), ">": ("greater", "greater_equal"),
               ">=": ("greater_equal", "greater"), "==": ("equal_to", "not_equal_to"),
               "!=": ("not_equal_to", "equal_to")}

UNSEEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
# Lines that are not executed, or that GCC 12 cannot compile when changed.
NO_EXPRESSIONS = re.compile(r"^\s*#|\b(constexpr|static_assert|template|requires|operator|case|co_await|asm)\b|<=>")
LOGGING = re.compile(r"\b[Ll]ogger_?\b|\bLog\(\)|\bfmt::print|\.(Debug|Info|Warning|Error)\(")
BRANCH = re.compile(r"\b(?:if|while) \(")
GUARD = re.compile(r"(?:else )?(?:if|for|while) \(")
ANSWER = re.compile(r"\b(?:co_)?return (true|false)(?=;)")
RETURN = re.compile(r"\b(?:co_)?return ")
WRITE = re.compile(r"\b(?:store::)?Change::kWrite\b(?=;)")
COMPARISON = re.compile(r" (<=|>=|==|!=|<|>) ")
NUMBER = re.compile(r"(?<=[-+=<>] )\d+(?=[;,) ])")
STATEMENT = re.compile(r"(?:co_await )?(?:\+\+|--|\*|\()?[A-Za-z_]")
PATH = re.compile(r"(?:[\w:]|\.|->|\*|<[\w:, ]+>)+")


@dataclasses.dataclass(frozen=True)
class Site:
    file: str
    line: int
    start: int  # of the changed code, in characters of the file
    end: int
    kind: str
    code: str  # the changed code, in one line
    changed: str  # the replacement, with {number} for the mutant's

    @property
    def last_line(self):
        return self.line + self.code.count("\n")


def masked(text):
    """The text with blanks in place of comments and literals, so that searches find only code."""
    return UNSEEN.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def closing(code, opening):
    """The position where the bracket at `opening` closes, or None."""
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at
    return None


def parts(code, start, end):
    """The places of `&&` and `||` outside of brackets."""
    depth, found = 0, []
    for at in range(start, end):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0 and code[at:at + 4] in (" && ", " || "):
            found.append((at, code[at + 1:at + 3]))
    return found


def end_of_statement(code, start):
    """The position of the `;` of the statement at `start`, or None if there is no statement."""
    depth = 0
    for at in range(start, min(len(code), start + 800)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth < 0:
            return None
        if depth == 0 and code[at] == ";":
            return at
    return None


class Source:
    def __init__(self, file, text):
        self.file, self.text, self.code = file, text, masked(text)

    def site(self, start, end, kind, changed):
        return Site(self.file, self.text.count("\n", 0, start) + 1, start, end, kind, self.text[start:end], changed)

    def line_at(self, at):
        return self.code[self.code.rfind("\n", 0, at) + 1:self.code.find("\n", at)]

    def is_expression(self, at):
        return not NO_EXPRESSIONS.search(self.line_at(at))

    def escaped(self, start, end):
        return self.text[start:end].replace("{", "{{").replace("}", "}}")

    def conditions(self):
        """(start, end) of the conditions in `if (...)` and `while (...)`, without declarations."""
        for found in BRANCH.finditer(self.code):
            end = closing(self.code, found.end() - 1)
            start = found.end()
            if end is None or not self.is_expression(start) or "co_await" in self.code[start:end]:
                continue
            first = self.code.rfind(";", start, end)
            start = first + 2 if first >= 0 else start
            if " = " not in self.code[start:end]:
                yield start, end

    def negated_conditions(self):
        for start, end in self.conditions():
            yield self.site(start, end, "condition negated",
                            f"{ON} != static_cast<bool>({self.escaped(start, end)})")

    def ignored_parts(self):
        places = list(self.conditions())
        for found in RETURN.finditer(self.code):
            end = end_of_statement(self.code, found.end())
            if end is not None and "co_await" not in self.code[found.start():end]:
                places.append((found.end(), end))
        for start, end in places:
            operators = parts(self.code, start, end)
            if not operators or len({word for _, word in operators}) > 1 or " ? " in self.code[start:end]:
                continue
            before = "{on} || " if operators[0][1] == "&&" else "!{on} && "
            begins = [start] + [at + 4 for at, _ in operators]
            ends = [at for at, _ in operators] + [end]
            for first, last in zip(begins, ends):
                yield self.site(first, last, "part of a condition ignored",
                                f"({before.format(on=ON)}({self.escaped(first, last)}))")

    def comparisons(self):
        for found in COMPARISON.finditer(self.code):
            if self.is_expression(found.start()):
                original, changed = (f"std::{name}<>" for name in COMPARISONS[found.group(1)])
                tag = f"^nodepool::mutants::Comparison<{{number}}, {original}, {changed}>{{{{}}}}^"
                yield self.site(found.start(1), found.end(1), "comparison changed", tag)

    def numbers(self):
        for found in NUMBER.finditer(self.code):
            if self.is_expression(found.start()):
                yield self.site(found.start(), found.end(), "off by one", f"({found.group()} + {ON})")

    def answers(self):
        for found in ANSWER.finditer(self.code):
            yield self.site(found.start(1), found.end(1), "answer reversed", f"{ON} != {found.group(1)}")

    def writes(self):
        for found in WRITE.finditer(self.code):
            name = self.text[found.start():found.end()]
            yield self.site(found.start(), found.end(), "write dropped",
                            f"{ON} ? {name.replace('kWrite', 'kSkip')} : {name}")

    def statement_starts(self):
        for line in re.finditer(r"^ +(?=\S)", self.code, re.MULTILINE):
            before = self.code[:line.start()].rstrip()
            if before[-1:] not in ("{", "}", ";", ":", ")") and not before.endswith("else"):
                continue
            at = line.end()
            while guard := GUARD.match(self.code, at):
                end = closing(self.code, guard.end() - 1)
                if end is None or self.code[end + 1:end + 2] != " ":
                    break
                at = end + 2
            yield at

    def kind_of_statement(self, start, end):
        """The kind of mutant that drops the statement, or None if it must not be dropped."""
        code = self.code[start:end]
        if not STATEMENT.match(code) or LOGGING.search(code):
            return None
        if code.startswith("co_await "):
            return "await dropped"
        if re.match(r"(\+\+|--)[\w.>-]+$", code):
            return "step dropped"
        path = PATH.match(code)
        if path is None:
            return None
        rest = code[path.end():]
        if re.match(r"(\[[^]]*\])? [-+|&]?= ", rest):
            return "assignment dropped"
        return "call dropped" if rest.startswith("(") and code.endswith(")") else None

    def statements(self):
        for start in self.statement_starts():
            end = end_of_statement(self.code, start)
            kind = self.kind_of_statement(start, end) if end is not None else None
            if kind is not None:
                yield self.site(start, end + 1, kind, f"{{{{ if (!{ON}) {self.escaped(start, end + 1)} }}}}")

    def sites(self):
        finders = (self.negated_conditions, self.ignored_parts, self.comparisons, self.numbers, self.answers,
                   self.writes, self.statements)
        return sorted({site for find in finders for site in find()}, key=lambda site: (site.start, site.end, site.kind))


def find_sites(file, text):
    return Source(file, text).sites()


def overlaps(site, others):
    return any(site.file == other.file and site.start < other.end and other.start < site.end for other in others)


def instrumented(text, mutants):
    """The source with every (number, site) of `mutants` in it, with unchanged line numbers."""
    for number, site in sorted(mutants, key=lambda mutant: mutant[1].start, reverse=True):
        text = text[:site.start] + site.changed.format(number=number) + text[site.end:]
    return '#include "mutants.h"\n#line 1\n' + text
