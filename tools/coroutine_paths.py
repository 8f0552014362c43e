"""What coroutines keep across their waits: a reading of C++ that knows brackets and statements, but no types.

A name is *kept* when it is a pointer, reference, iterator, view or loop over something that others may change
meanwhile: what a cache looked up, or an entry of a container that does not belong to the coroutine alone. From the
next `co_await` on it is stale, on each path through the function, until it is assigned again. Using a stale name is a
fault, and so is handing a kept one itself to what is awaited.
"""
import pathlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MASKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])\''
                    r'|^[ \t]*#[^\n]*', re.S | re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|&&|[<>=!+\-*/%&|^]=|\d[\w.']*|\S")
NAME = re.compile(r"[A-Za-z_]\w*$")
LEAVES = {"co_return", "return", "throw"}
ITERATORS = {"find", "begin", "end", "lower_bound", "upper_bound", "find_if", "emplace", "try_emplace", "min_element",
             "max_element"}
ENTRIES = {"at", "front", "back"}
HANDLES = {"*", "&", "&&", "iterator", "const_iterator", "string_view", "span", "reference_wrapper"}
NO_TYPES = LEAVES | {"co_await", "co_yield", "delete", "new", "using", "goto", "else", "do", "case"}
METHOD = re.compile(r"^  (?:const )?[\w:<>, *]*[*&]\s*>?\s*(\w+)\([^;{]*\) const"
                    r"(;| \{ return \w+_(?:\.(?:all|entries)\(\))?; \}| \{)", re.M)
LOOP = "the loop"


def masked(text: str) -> str:
    """The text without comments, literals and directives, on the same lines."""
    def blank(match: re.Match) -> str:
        filler = "0" if match.group()[0] in "\"'R" else " "
        return filler + "\n" * match.group().count("\n")
    return MASKED.sub(blank, text)


@dataclass(frozen=True)
class LookUps:
    """Methods of caches that return a pointer or reference: to what a change may erase, and to whole containers."""
    entries: frozenset[str]
    containers: frozenset[str]


def look_ups(headers: list[pathlib.Path]) -> LookUps:
    methods = [match for header in headers for match in METHOD.finditer(masked(header.read_text(encoding="utf-8")))]
    entries = frozenset(match.group(1) for match in methods if "return" not in match.group(2))
    return LookUps(entries, frozenset(match.group(1) for match in methods) - entries)


@dataclass(frozen=True)
class Kept:
    line: int  # where it is declared
    is_stale: bool = False


State = dict[str, Kept]  # a path's kept names; None: no path comes here


@dataclass
class Exits:
    """The states of the paths that left a loop's body early."""
    breaks: list[State | None] = field(default_factory=list)
    continues: list[State | None] = field(default_factory=list)


def merged(*states: State | None) -> State | None:
    paths = [state for state in states if state is not None]
    result: State = {}
    for name, kept in (item for path in paths for item in path.items()):
        is_stale = kept.is_stale or (name in result and result[name].is_stale)
        result[name] = Kept(kept.line, is_stale)
    return result if paths else None


def within(outside: State | None, state: State | None) -> State | None:
    """The state behind a block: names that were declared in it are gone."""
    if state is None or outside is None:
        return state
    return {name: state[name] if name in state and state[name].line == kept.line else kept
            for name, kept in outside.items()}


class Source:
    """A file's tokens, with the partner of each bracket."""

    def __init__(self, text: str):
        text = masked(text)
        self.words: list[str] = []
        self.lines: list[int] = []
        self.partner: dict[int, int] = {}
        line, at, opening = 1, 0, []
        for index, match in enumerate(TOKEN.finditer(text)):
            line += text.count("\n", at, match.start())
            at = match.start()
            self.words.append(match.group())
            self.lines.append(line)
            if match.group() in "([{":
                opening.append(index)
            elif match.group() in ")]}" and opening:
                begin = opening.pop()
                self.partner[begin], self.partner[index] = index, begin
        self.coroutines = [(self.header_of(at), at) for at in self.partner if self.is_coroutine(at)]

    def header_of(self, brace: int) -> int:
        """The first token of what is before a brace."""
        at = brace
        while at > 0 and self.words[at - 1] not in ("{", "}", ";", "("):
            at = self.partner.get(at - 1, at - 1) if self.words[at - 1] in ")]" else at - 1
        return at

    def is_coroutine(self, brace: int) -> bool:
        if self.words[brace] != "{" or "co_await" not in self.words[brace:self.partner[brace]]:
            return False
        header = self.words[self.header_of(brace):brace]
        return "Task" in header and "(" in header and not {"class", "struct", "namespace"} & set(header)

    def skip(self, at: int) -> int:
        """The token behind this one, or behind the brackets that it opens."""
        return self.partner.get(at, at) + 1 if self.words[at] in "([{" else at + 1

    def first(self, word: str, at: int, end: int) -> int:
        """Where the word is outside of brackets; `end`: nowhere."""
        while at < end and self.words[at] != word:
            at = self.skip(at)
        return min(at, end)


class Reading:
    """One coroutine, on all its paths."""

    def __init__(self, source: Source, header: int, body: int, caches: LookUps):
        self.source, self.words, self.partner, self.caches = source, source.words, source.partner, caches
        self.faults: set[tuple[int, str, int]] = set()
        self.loops: list[Exits] = []
        self.own: set[str] = set()  # names of what belongs to the coroutine alone
        end = self.partner[body]
        inner = [brace for _, brace in source.coroutines if body < brace < end]
        self.inner = {at for brace in inner for at in range(brace, self.partner[brace])}
        self.take_parameters(header, body)
        self.block(body + 1, end, {})

    def take_parameters(self, header: int, body: int) -> None:
        opening = next(at for at in range(header, body) if self.words[at] == "(")
        at, end = opening + 1, self.partner[opening]
        while at < end:
            comma = self.source.first(",", at, end)
            part = self.words[at:comma]
            names = [word for word in part if NAME.match(word)]
            if names and not HANDLES & set(part):
                self.own.add(names[-1])
            at = comma + 1

    # Statements. Each returns the state of the paths that go on behind it.

    def block(self, at: int, end: int, state: State | None) -> State | None:
        entry = state
        while at < end:
            if self.words[at] in ("case", "default"):
                at = self.source.first(":", at, end) + 1
                state = merged(entry, state)
            else:
                at, state = self.statement(at, end, state)
        return state

    def statement(self, at: int, end: int, state: State | None) -> tuple[int, State | None]:
        word = self.words[at]
        if word == "{":
            return self.partner[at] + 1, within(state, self.block(at + 1, self.partner[at], state))
        if word == "if":
            return self.branch(at, end, state)
        if word in ("for", "while"):
            return self.loop(at, end, state)
        if word == "do":
            behind, state = self.repeat(at + 1, end, state, lambda entry: entry)
            return self.source.first(";", behind, end) + 1, state
        if word == "switch":
            close = self.partner[at + 1]
            self.loops.append(Exits())
            behind, after = self.statement(close + 1, end, self.expression(at + 2, close, state))
            return behind, merged(state, after, *self.loops.pop().breaks)
        if word == "try":
            return self.attempt(at, end, state)
        close = self.source.first(";", at, end)
        state = self.expression(at, close, state)
        if word in ("break", "continue") and self.loops:
            (self.loops[-1].breaks if word == "break" else self.loops[-1].continues).append(state)
            state = None
        return close + 1, None if word in LEAVES else state

    def branch(self, at: int, end: int, before: State | None) -> tuple[int, State | None]:
        opening = self.source.first("(", at, end)
        close = self.partner[opening]
        state = self.expressions(opening + 1, close, before)
        behind, taken = self.statement(close + 1, end, state)
        if behind < end and self.words[behind] == "else":
            behind, state = self.statement(behind + 1, end, state)
        return behind, within(before, merged(taken, state))

    def attempt(self, at: int, end: int, state: State | None) -> tuple[int, State | None]:
        behind, after = self.statement(at + 1, end, state)
        caught_from = merged(state, after)
        while behind < end and self.words[behind] == "catch":
            behind, caught = self.statement(self.partner[behind + 1] + 1, end, caught_from)
            after = merged(after, caught)
        return behind, after

    def loop(self, at: int, end: int, before: State | None) -> tuple[int, State | None]:
        opening, close = at + 1, self.partner[at + 1]
        first = self.source.first(";", opening + 1, close)
        colon = self.source.first(":", opening + 1, close) if first == close else close
        state = before
        if self.words[at] == "for" and colon < close:
            state, head = self.range(opening + 1, colon, close, state)
        elif self.words[at] == "for":
            state = self.expression(opening + 1, first, state)

            def head(entry: State | None) -> State | None:
                return self.expressions(first + 1, close, entry)
        else:
            def head(entry: State | None) -> State | None:
                return self.expressions(opening + 1, close, entry)
        behind, after = self.repeat(close + 1, end, state, head)
        return behind, within(before, after)

    def range(self, at: int, colon: int, end: int,
              state: State | None) -> tuple[State | None, Callable[[State | None], State | None]]:
        state = self.expression(colon + 1, end, state)
        line = self.source.lines[at]
        left = self.words[at:colon]
        names = [word for word in (left[left.index("["):] if "[" in left else left[-1:]) if NAME.match(word)]
        is_kept = state is not None and self.is_shared(colon + 1, end, state, is_loop=True)
        is_handle = bool(HANDLES & set(left))
        if state is not None:
            state = {name: kept for name, kept in state.items() if name not in names}
        if is_kept and state is not None:
            state[LOOP] = Kept(line)
        for name in names:
            if not is_kept and (not is_handle or self.words[colon + 1] in self.own):
                self.own.add(name)
            else:
                self.own.discard(name)

        def head(entry: State | None) -> State | None:
            if entry is None or not is_kept:
                return entry
            self.use(LOOP, at, entry)
            return {**entry, **{name: Kept(line) for name in names if is_handle}}
        return state, head

    def repeat(self, body: int, end: int, state: State | None,
               head: Callable[[State | None], State | None]) -> tuple[int, State | None]:
        """A loop's body twice, so that its end meets its beginning."""
        breaks: list[State | None] = []
        behind = body
        for _ in range(2):
            entry = head(state)
            self.loops.append(Exits())
            behind, after = self.statement(body, end, entry)
            exits = self.loops.pop()
            breaks += exits.breaks
            state = merged(state, after, *exits.continues)
        return behind, merged(head(state), *breaks)

    # Expressions.

    def expressions(self, at: int, end: int, state: State | None) -> State | None:
        while at < end:
            stop = self.source.first(";", at, end)
            state = self.expression(at, stop, state)
            at = stop + 1
        return state

    def use(self, name: str, at: int, state: State) -> None:
        if state[name].is_stale:
            self.faults.add((self.source.lines[at], name, state[name].line))

    def expression(self, at: int, end: int, state: State | None) -> State | None:
        if state is None or at >= end:
            return state
        waits = [i for i in range(at, end) if self.words[i] == "co_await" and i not in self.inner]
        equals = self.source.first("=", at, end)
        declared = self.declared(at, equals, end)
        target = self.words[at] if equals == at + 1 and equals < end else None
        after = {name: Kept(kept.line, kept.is_stale or bool(waits)) for name, kept in state.items()}
        for i in range(at, end):
            name = self.words[i]
            if name not in state or self.words[i - 1] in (".", "->", "::") or (i < equals < end and (declared or target)):
                continue
            is_after = (waits and waits[0] > equals > i) or (waits and i > waits[0] and self.is_handed(i, at))
            self.use(name, i, after if is_after else state)
        if declared:
            self.declare(at, equals, end, declared, after, bool(waits))
        elif target in after:
            after[target] = Kept(after[target].line)
        return after

    def is_handed(self, i: int, begin: int) -> bool:
        """Whether it is an argument as a whole."""
        before = self.words[i - 2] if i - 2 >= begin and self.words[i - 1] == "*" else self.words[i - 1]
        return before in ("(", ",") and self.words[i + 1] in (",", ")")

    def declared(self, at: int, equals: int, end: int) -> list[str]:
        """The names that `TYPE NAME...` declares."""
        stop = min(equals, self.source.first("(", at, end), self.source.first("{", at, end))
        left = self.words[at:stop]
        if len(left) < 2 or not NAME.match(left[0]) or {".", "->", "+", "-", "?"} & set(left) or left[0] in NO_TYPES:
            return []
        if left[-1] == "]":
            return [word for word in left[left.index("["):] if NAME.match(word)] if "auto" in left else []
        return left[-1:] if NAME.match(left[-1]) and left[-2] != "::" else []

    def declare(self, at: int, equals: int, end: int, names: list[str], state: State, waits: bool) -> None:
        left = set(self.words[at:equals])
        is_handle = bool(HANDLES & left)
        is_kept = not waits and equals < end and (
            self.is_shared(equals + 1, end, state) if is_handle
            else "auto" in left and self.is_iterator(equals + 1, end, state))
        is_own = not is_handle or (equals < end and self.words[equals + 1] in self.own)
        for name in names:
            state.pop(name, None)
            self.own.discard(name)
            if is_kept:
                state[name] = Kept(self.source.lines[at])
            elif is_own:
                self.own.add(name)

    def root(self, at: int, begin: int) -> str:
        """The first name of the chain of members that ends with this token."""
        while at > begin and self.words[at - 1] in (".", "->"):
            at -= 2
            while at > begin and self.words[at] in ")]":
                at = self.partner[at] - 1
        return self.words[at]

    def is_look_up(self, i: int, begin: int, methods: frozenset[str]) -> bool:
        is_call = self.words[i + 1] == "(" and self.words[i - 1] in (".", "->")
        return is_call and self.words[i] in methods and self.root(i, begin) not in self.own

    def is_entry(self, i: int, begin: int, methods: set[str]) -> bool:
        """An iterator or entry of a container that is not the coroutine's own."""
        if self.words[i] == "[" and i > begin and NAME.match(self.words[i - 1]):
            return "[" in methods and self.root(i - 1, begin) not in self.own
        if self.words[i] not in methods or self.words[i + 1] != "(":
            return False
        if self.words[i - 1] == "::":
            return self.words[i + 2] not in self.own
        return self.words[i - 1] in (".", "->") and self.root(i, begin) not in self.own

    def flat(self, at: int, end: int) -> Iterator[int]:
        """The tokens outside of parentheses and braces."""
        while at < end:
            yield at
            at = at + 1 if self.words[at] == "[" else self.source.skip(at)

    def is_shared(self, at: int, end: int, state: State, is_loop: bool = False) -> bool:
        for i in self.flat(at, end):
            if self.words[i] in state and self.words[i - 1] not in (".", "->", "::"):
                return True
            if self.is_look_up(i, at, self.caches.entries) or self.is_entry(i, at, ITERATORS):
                return True
            if self.words[at] != "*" and self.is_entry(i, at, ENTRIES | {"["}):  # else what an entry points to
                return True
            if is_loop and self.is_look_up(i, at, self.caches.containers):
                return True
        return is_loop and self.words[end - 1].endswith("_") and self.root(end - 1, at) not in self.own

    def is_iterator(self, at: int, end: int, state: State) -> bool:
        if end - at == 1:
            return self.words[at] in state
        calls = [i for i in self.flat(at, end) if i + 1 < end and self.words[i + 1] == "("]
        if not calls or self.partner[calls[-1] + 1] + 1 != end:
            return False
        return self.is_look_up(calls[-1], at, self.caches.entries) or self.is_entry(calls[-1], at, ITERATORS)


def stale_uses(text: str, caches: LookUps) -> list[tuple[int, str, int]]:
    """(line, name, line of its declaration) of every use of a stale name."""
    source = Source(text)
    faults: set[tuple[int, str, int]] = set()
    for header, body in source.coroutines:
        faults |= Reading(source, header, body, caches).faults
    return sorted(faults)
