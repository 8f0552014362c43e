"""The benchmarks that bench/run knows, as a table."""
import dataclasses
import pathlib
from collections.abc import Callable

from runner.figure import Kind, Rule, read_google, read_lines

BENCH = pathlib.Path(__file__).resolve().parent.parent

# In a command: the folder of the benchmarks' own programs, that of the measured ones, the file for the figures.
OWN, MEASURED, FILE = "{own}", "{measured}", "{file}"


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A column of a table."""
    name: str
    column: str
    words: tuple[str, ...]
    small: tuple[str, ...] = ()  # added for --small; a later option replaces an earlier one
    read: Callable = read_lines


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    title: str
    rules: tuple[Rule, ...]
    benchmarks: tuple[Benchmark, ...]
    is_long: bool = False  # run only when it is named


def load(name: str, column: str, *words: str) -> Benchmark:
    command = (f"{OWN}/load_bench", "--programs", MEASURED, "--figures", FILE, *words)
    return Benchmark(name, column, command, ("--requests", "20"))


def micro(program: str) -> Benchmark:
    """Of code that is linked into the benchmark."""
    command = (f"{MEASURED}/{program}", f"--benchmark_out={FILE}", "--benchmark_out_format=json")
    return Benchmark(program.replace("_", "-"), "CPU", command, ("--benchmark_min_time=0.01",), read_google)


def script(name: str, *small: str) -> Benchmark:
    """A script; it finds the measured programs by NODEPOOL_BIN."""
    return Benchmark(name.replace("_", "-"), "", (str(BENCH / f"{name}.py"), "--figures", FILE), small)


LOAD_RULES = (
    Rule("failed requests", "", Kind.COUNT),
    Rule("created to fulfilled, *", "ms", Kind.LOW),
    Rule("created to the server's answer, *", "ms", Kind.LOW),
    Rule("requests per second", "", Kind.HIGH),
    Rule("ZooKeeper transactions per request, *", "", Kind.COUNT, within=0.05),
    Rule("launcher CPU per request*", "ms", Kind.LOW),
    Rule("launcher CPU when idle", "% of a core", Kind.LOW),
    Rule("launcher peak memory*", "MB", Kind.LOW),
)
MICRO_RULES = tuple(Rule("*", unit, Kind.LOW) for unit in ("ns", "µs", "ms"))
SERVER_RULES = (
    Rule("*", "per second", Kind.HIGH),
    Rule("*", "ms", Kind.LOW),
    Rule("*", "µs", Kind.LOW),
    Rule("*", "MB", Kind.LOW),
)
SCRIPT_RULES = tuple(Rule("*", unit, Kind.LOW) for unit in ("s", "ms", "µs", "KiB", "MiB", "MB", "%")) + (
    Rule("*", "per second", Kind.SHOWN), Rule("*", "", Kind.COUNT))


MODES = ("launch", "reuse", "sets", "held", "quota")  # of load_bench


def crowd(mode: str, requests: int, *words: str) -> Benchmark:
    return load(f"{mode}-{requests}" + "".join(words).replace("--", "-"), f"{requests:,}" if words else mode,
                "--mode", mode, "--requests", str(requests), *words)


def beside(nodes: int) -> Benchmark:
    small = ("--requests", "20", "--warm-up", "5", "--nodes", "10", "--waiting", "2")
    words = load(f"beside-{nodes}", f"{nodes:,}, {nodes // 5:,}", "--requests", "500", "--rate", "100", "--nodes", str(nodes),
                 "--waiting", str(nodes // 5))
    return dataclasses.replace(words, small=small)


TABLES = (
    Table("launcher", "The launcher under load", LOAD_RULES, (
        load("at-once", "1,000 at once", "--requests", "1000"),
        load("steady", "5,000 at 150 per second", "--requests", "5000", "--rate", "150"),
        load("embedded", "1,000 at once, `nodepool standalone`", "--requests", "1000", "--server", "embedded"))),
    *(Table(f"crowds-{requests}", f"{requests:,} at once, by mode", LOAD_RULES, tuple(crowd(mode, requests) for mode in MODES))
      for requests in (1000, 20_000)),
    Table("tls", "All at once, with TLS", LOAD_RULES, (crowd("launch", 1000, "--tls"), crowd("launch", 20_000, "--tls"))),
    Table("breaker", "With and without a breaker", LOAD_RULES, (
        load("breaker", "with", "--requests", "2000", "--rate", "150"),
        load("no-breaker", "without", "--requests", "2000", "--rate", "150", "--no-breaker"))),
    Table("beside", "Beside idle nodes and waiting requests", LOAD_RULES, tuple(beside(nodes) for nodes in (100, 1000, 10_000))),
    Table("idle", "Idle, with 10,000 nodes and 2,000 waiting requests", LOAD_RULES, (
        dataclasses.replace(load("idle-10000", "", "--requests", "0", "--idle-seconds", "10", "--nodes", "10000", "--waiting", "2000"),
                            small=("--idle-seconds", "1", "--nodes", "10", "--waiting", "2")),)),
    Table("decisions", "Decisions of the scheduler", MICRO_RULES, (micro("sched_bench"),)),
    Table("records", "Records", MICRO_RULES, (micro("record_bench"),)),
    Table("memory", "A node in memory", (Rule("*", "bytes", Kind.LOW),), (
        Benchmark("memory-bench", "", (f"{MEASURED}/memory_bench", "--figures", FILE), ("--nodes", "100")),)),
    Table("codec", "The ZooKeeper protocol", MICRO_RULES, (micro("codec_bench"),)),
    Table("configuration", "Configuration", MICRO_RULES, (micro("config_bench"),)),
    Table("zk-client", "The ZooKeeper client", SERVER_RULES, (
        Benchmark("zk-client-bench", "", (f"{MEASURED}/zk_client_bench", "--figures", FILE), ("--count", "200", "--rounds", "1")),)),
    Table("zk-server", "The ZooKeeper servers", SERVER_RULES, (
        Benchmark("zk-server-bench", "", (f"{MEASURED}/zk_server_bench", "--figures", FILE), ("--count", "200", "--znodes", "200")),)),
    Table("lists", "Lists of 10,000 nodes", SCRIPT_RULES, (script("lists_load", "--nodes", "50", "--repetitions", "1"),)),
    Table("http-requests", "A request over HTTP and by ZooKeeper", SCRIPT_RULES, (script("http_requests", "--requests", "5"),)),
    Table("drivers", "Many static hosts, many slots", SCRIPT_RULES, (script("drivers_load", "--count", "20"),)),
    Table("scale", "100,000 nodes, 20,000 waiting requests, 200 pools", SCRIPT_RULES, (
        dataclasses.replace(script("scale", "--nodes", "100", "--requests", "20", "--pools", "20", "--launchers", "2", "--seconds", "2",
                                   "--repetitions", "1"), name="scale-100000"),), is_long=True),
)


def find(names: list[str]) -> list[tuple[Table, Benchmark]]:
    """The benchmarks of these names, or of the tables of these names, in the order of the tables."""
    known = {name for table in TABLES for name in (table.name, *(benchmark.name for benchmark in table.benchmarks))}
    unknown = [name for name in names if name not in known | {"all"}]
    if unknown:
        raise ValueError(f"there is no benchmark {unknown[0]}; there is {', '.join(sorted(known))}")
    return [(table, benchmark) for table in TABLES for benchmark in table.benchmarks
            if {table.name, benchmark.name} & set(names) or ("all" in names and not table.is_long)]
