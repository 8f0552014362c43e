"""What ./run does with an installation: it stays, or shows a whole round of a request."""
import time

from quickstart.installation import Installation
from quickstart.job import requested


def stay(installation: Installation):
    installation.start(lambda text: print(f"{text[0].upper()}{text[1:]}", flush=True))
    installation.wait_until_full()
    installation.show_nodes()
    print(f"\nThe launcher runs until Ctrl-C; its log is {installation.log}\nIn another terminal:\n")
    print("".join(f"  {command}\n" for command in installation.typed()), flush=True)
    while installation.launcher.is_running():
        time.sleep(0.5)
    raise RuntimeError(f"The launcher {installation.launcher.how_it_ended()}; see {installation.log}")


def demo(installation: Installation):
    begin = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begin:7.2f} s  {text}", flush=True)

    installation.start(say)
    installation.wait_until_full()
    say(f"ready: {installation.fullness}")
    installation.show_nodes()

    labels = installation.labels
    say(f"request: nodepool request {' '.join(labels)} --wait")
    with requested(installation.tool, labels) as answer:
        ids = [node["id"] for node in answer["nodes"]]
        say(f"fulfilled: request {answer['request']} got the nodes {', '.join(ids)}")
        installation.wait_for_nodes(
            lambda nodes: all(node["state"] == "in-use" for node in nodes if node["id"] in ids), "nodes in use")
        say("in use:")
        installation.show_nodes()
        installation.use(answer["nodes"], say)
    say("released")
    installation.wait_for_nodes(lambda nodes: not any(node["id"] in ids for node in nodes), "used nodes deleted")
    say("deleted: the used nodes are gone")
    installation.wait_until_full()
    say("ready again: the pool is as full as before")
    installation.show_nodes()
