"""What bench/scale.py measures with: a configuration of many pools, and the records of a large installation."""
import json
import time

from kazoo.client import KazooClient

PROVIDERS, LABELS, TENANTS = 20, 50, 20
LOAD_LABEL = "small"  # every pool offers it
AT_ONCE = 200  # creations in a transaction, below the servers' limit of 1 MB


def label(number: int) -> str:
    return f"label-{number % LABELS}"


def provider(number: int, pools: int) -> dict:
    """A simulated cloud with `pools` pools, each with ten of the labels."""
    def offer(name):
        return {"name": name, "cloud-image": "image", "flavor-name": "Fake Flavor"}

    return {"name": f"cloud-{number}", "driver": "fake", "cloud": "simulated",
            "cloud-images": [{"name": "image", "image-name": "Fake Precise"}],
            "simulation": {"create-latency": 0.0, "limits": {"cores": -1, "instances": -1, "ram": -1}},
            "pools": [{"name": f"pool-{pool}",
                       "labels": [offer(LOAD_LABEL)] + [offer(label(pool * 10 + each)) for each in range(10)]}
                      for pool in range(pools)]}


def configuration(host: str, pools: int, port: int) -> dict:
    server, _, chroot = host.partition("/")
    entries = [{"host": each.split(":")[0], "port": int(each.split(":")[1]), **({"chroot": f"/{chroot}"} if chroot else {})}
               for each in server.split(",")]
    return {"zookeeper-servers": entries, "zookeeper-timeout": 30.0,
            "webapp": {"listen_address": "127.0.0.1", "port": port},
            "labels": [{"name": LOAD_LABEL}] + [{"name": label(number)} for number in range(LABELS)],
            # All tenants have more nodes than they may: their requests wait.
            "tenant-resource-limits": [{"tenant-name": f"tenant-{number}", "max-servers": 1} for number in range(TENANTS)],
            "providers": [provider(number, pools // PROVIDERS) for number in range(PROVIDERS)]}


def node(number: int, pools: int) -> tuple[dict, bool]:
    """A record as launchers and Zuul leave it, some 1.2 kB, and whether it is locked: seven of ten are in use, two ready and
    one held. In-use nodes have a comment, so that the check for missing machines writes none."""
    state = ["in-use"] * 7 + ["ready"] * 2 + ["hold"]
    state = state[number % 10]
    now = time.time() - number / 100
    uuid = f"6f1c0f4e-5a1d-4b60-9d7f-{number:012d}"
    pool = number // 10 % pools
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    # Machines of ready nodes without an id are not looked for in the cloud.
    external_id = None if state == "ready" else uuid
    user_data = {"zuul_system": uuid[:8], "project_name": "example.org/project"} if state == "in-use" else None
    record = {
        "state": state, "state_time": now, "created_time": now - 60, "cloud": "simulated", "provider": f"cloud-{pool % PROVIDERS}",
        "pool": f"pool-{pool // PROVIDERS}", "type": [label(pool // PROVIDERS * 10 + number % 10)],
        "allocated_to": f"200-{number:010d}" if state == "in-use" else None, "az": "az1", "region": "east",
        "public_ipv4": address, "private_ipv4": address, "public_ipv6": None, "interface_ip": address, "host_id": uuid,
        "connection_port": 22, "ssh_port": 22, "connection_type": "ssh", "username": "zuul", "shell_type": None,
        "image_id": "/nodepool/images/deb12/builds/4f0e/providers/east/images/0000000001", "python_path": "auto",
        "launcher": f"np01.example.org-PoolWorker.cloud-{pool % PROVIDERS}-pool-{pool // PROVIDERS}-9d1c",
        "external_id": external_id, "hostname": f"np{number:010d}", "comment": "as measured" if state == "in-use" else None,
        "hold_job": None, "hold_expiration": None, "slot": None, "attributes": {"executor-zone": "east"}, "driver_data": None,
        "host_keys": ["ssh-ed25519 " + "A" * 68, "ecdsa-sha2-nistp256 " + "B" * 68],
        "resources": {"cores": 4, "instances": 1, "ram": 8192}, "tenant_name": f"tenant-{number % TENANTS}",
        "requestor": "zuul", "user_data": user_data}
    return record, state == "in-use"


def request(number: int) -> dict:
    return {"state": "requested", "state_time": time.time(), "created_time": time.time(), "declined_by": [], "nodes": [],
            "node_types": [label(number)], "reuse": True, "provider": None, "relative_priority": number % 4, "event_id": "5b2e",
            "requestor": "zuul", "tenant_name": f"tenant-{number % TENANTS}",
            "requestor_data": {"build_set_uuid": f"{number:032x}", "tenant_name": f"tenant-{number % TENANTS}",
                               "pipeline_name": "check", "job_uuid": f"{number:032x}", "job_name": "unit"}}


def create_all(zk: KazooClient, entries):
    """Creates (path, data, is_ephemeral) in transactions."""
    transaction, count = zk.transaction(), 0
    for path, data, is_ephemeral in entries:
        transaction.create(path, data, ephemeral=is_ephemeral)
        count += 1
        if count % AT_ONCE == 0:
            commit(transaction)
            transaction = zk.transaction()
    commit(transaction)


def commit(transaction):
    if transaction.operations:
        for result in transaction.commit():
            if isinstance(result, Exception):
                raise result


def furnish(zk: KazooClient, nodes: int, requests: int, pools: int):
    """Writes the records. Nodes in use are locked by this session."""
    for path in ("/nodepool/nodes", "/nodepool/requests", "/nodepool/requests-lock"):
        zk.ensure_path(path)

    def records():
        for number in range(nodes):
            record, is_locked = node(number, pools)
            path = f"/nodepool/nodes/{number:010d}"
            yield path, json.dumps(record).encode(), False
            yield f"{path}/lock", b"", False
            if is_locked:
                yield f"{path}/lock/{number:032x}__lock__0000000000", b"", True
        for number in range(requests):
            yield f"/nodepool/requests/{100 + number % 3 * 100}-{number:010d}", json.dumps(request(number)).encode(), False

    create_all(zk, records())
