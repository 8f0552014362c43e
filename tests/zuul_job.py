"""In the part of Zuul: requests the nodes of a job, in the ZooKeeper of its configuration.

    zuul_job.py /etc/zuul/zuul.conf .zuul.yaml
"""
import configparser
import pathlib
import sys

import yaml

from nodepool_helpers import Tree


def run_job(zuul_conf: str, zuul_yaml: str, hosts: str | None = None) -> list[str]:
    """Gets the nodes of the only job in `zuul_yaml` and gives them back; their addresses. The arguments are the texts of
    the two files, and the servers in place of those that the former names."""
    parser = configparser.ConfigParser()
    parser.read_string(zuul_conf)
    zookeeper = parser["zookeeper"]
    tree = Tree(hosts or zookeeper["hosts"], use_ssl=True, certfile=zookeeper["tls_cert"], keyfile=zookeeper["tls_key"],
                ca=zookeeper["tls_ca"])
    try:
        (entry,) = yaml.safe_load(zuul_yaml)
        held = tree.use(tree.add_request([node["label"] for node in entry["job"]["nodeset"]["nodes"]]))
        addresses = [tree.node(node_id)["interface_ip"] for node_id, _ in held]
        tree.give_back(held)
        return addresses
    finally:
        tree.close()


if __name__ == "__main__":
    print(*run_job(*(pathlib.Path(name).read_text() for name in sys.argv[1:])))
