#!/usr/bin/python3
"""Draws the samples of perf as a flame graph: an SVG on standard output.

    perf record -F 499 -e cpu-clock --call-graph dwarf,16384 -p PID -o perf.data -- sleep 5
    perf script -i perf.data | bench/flame_graph.py --title "1,000 at once" > graph.svg

A frame's width is its share of the samples; a tooltip names it. Frames of Asio and of the standard library between two of
ours are left out, since they say nothing about who called whom.
"""
import argparse
import html
import re
import sys

WIDTH, ROW, CHARACTER = 1200, 17, 6.6
LEAST = 0.004  # of all samples; narrower frames are not drawn
PLUMBING = re.compile(r"^(boost::asio::|std::|boost_asio_|void std::|void boost::|decltype|__invoke|auto std::|operator\(\)|"
                      r"main$|__libc_start|_start$|\[unknown\])")


def short(symbol: str) -> str:
    """Without arguments and templates, which may contain each other."""
    symbol = re.sub(r"\+0x[0-9a-f]+$", "", symbol).replace("(anonymous namespace)::", "").replace(" (inlined)", "")
    text, depth = "", 0
    for character in symbol:
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            text += character
    return text.replace("nodepool::", "").strip() or symbol[:60]


def stacks(lines):
    """Each sample's frames, outermost first."""
    frames = []
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if frames:
                yield frames[::-1]
            frames = []
        elif line[0] in " \t":
            found = re.match(r"\s+[0-9a-f]+ (.*) \(([^()]*)\)$", line)
            symbol = found.group(1) if found else "[unknown]"
            if found and "kernel" in found.group(2):
                symbol = "kernel"
            if not PLUMBING.match(symbol) and (not frames or frames[-1] != short(symbol)):
                frames.append(short(symbol))
    if frames:
        yield frames[::-1]


def grow(samples):
    root = {"count": 0, "below": {}}
    for frames in samples:
        root["count"] += 1
        place = root
        for name in frames:
            place = place["below"].setdefault(name, {"count": 0, "below": {}})
            place["count"] += 1
    return root


def boxes(tree, total, x=0.0, depth=0):
    for name, entry in sorted(tree["below"].items()):
        width = WIDTH * entry["count"] / total
        if entry["count"] >= LEAST * total:
            yield name, x, depth, width, entry["count"] / total
            yield from boxes(entry, total, x, depth + 1)
        x += width


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--title", default="")
    options = parser.parse_args()
    tree = grow(stacks(sys.stdin))
    if not tree["count"]:
        sys.exit("flame_graph.py: no samples on standard input; it wants the output of `perf script`")
    drawn = list(boxes(tree, tree["count"]))
    height = (max(depth for _, _, depth, _, _ in drawn) + 3) * ROW
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">')
    print(f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>')
    print(f'<text x="4" y="12">{html.escape(options.title)} ({tree["count"]} samples)</text>')
    for name, x, depth, width, share in drawn:
        y = height - (depth + 1) * ROW
        hue = 20 + hash_of(name) % 40
        label = html.escape(name[:int(width / CHARACTER)]) if width > 4 * CHARACTER else ""
        print(f'<g><title>{html.escape(name)}: {100 * share:.1f} %</title>'
              f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}" fill="hsl({hue},85%,68%)"/>'
              f'<text x="{x + 2:.1f}" y="{y + 12}">{label}</text></g>')
    print("</svg>")


def hash_of(name: str) -> int:
    """The same in every run."""
    return sum(ord(character) * (place + 1) for place, character in enumerate(name))


if __name__ == "__main__":
    main()
