"""The firewall chains that libvirtd leaves when it ends."""
import subprocess

TOOLS = ("iptables", "ip6tables")
# Table, the chain that jumps into libvirt's, libvirt's.
CHAINS = [("filter", "INPUT", "LIBVIRT_INP"), ("filter", "OUTPUT", "LIBVIRT_OUT"), ("filter", "FORWARD", "LIBVIRT_FWI"),
          ("filter", "FORWARD", "LIBVIRT_FWO"), ("filter", "FORWARD", "LIBVIRT_FWX"),
          ("nat", "POSTROUTING", "LIBVIRT_PRT"), ("mangle", "POSTROUTING", "LIBVIRT_PRT")]


def removals(rules: dict[str, str]) -> list[list[str]]:
    """The options that remove libvirt's chains, none while one of them has a rule: another libvirtd needs them.
    `rules` has for each table what `iptables -S` prints."""
    if any(line.startswith("-A LIBVIRT_") for text in rules.values() for line in text.splitlines()):
        return []
    words = []
    for table, parent, chain in CHAINS:
        lines = rules.get(table, "").splitlines()
        if f"-A {parent} -j {chain}" in lines:
            words.append(["-t", table, "-D", parent, "-j", chain])
        if f"-N {chain}" in lines:
            words.append(["-t", table, "-X", chain])
    return words


def remove_unused_chains():
    for tool in TOOLS:
        rules = {table: _run(tool, "-t", table, "-S") for table, _, _ in CHAINS}
        for words in removals(rules):
            _run(tool, *words)


def _run(*words) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
