"""A running launcher takes changes from its files (launcher.md 4)."""
import signal

from images import ImageSite, image
from nodepool_helpers import fake_provider
from services import free_port, wait_for
from web_client import first_answer


def supported_labels(tree):
    return sorted(label for pool in tree.components("pool").values() for label in pool["supported_labels"])


def labels(*names):
    return [{"name": name} for name in names]


def test_a_changed_file_takes_effect(site):
    """LA-77"""
    site.launcher(site.config())
    tree = site.tree()
    wait_for(lambda: supported_labels(tree) == ["small"], "the pool is announced")
    request = tree.add_request(["large"], provider="fake-cloud")
    tree.wait_request(request, "failed")
    site.config(labels=labels("small", "large"), providers=[fake_provider(labels=("small", "large"))])
    wait_for(lambda: supported_labels(tree) == ["large", "small"], "the new label is announced")
    request = tree.add_request(["large"])
    # The pool worker that declined the label goes on, and it declined another request.
    tree.wait_request(request, "fulfilled")


def test_a_broken_file_changes_nothing_and_the_mended_one_does(site):
    """BB-24"""
    launcher = site.launcher(site.config())
    tree = site.tree()
    wait_for(lambda: supported_labels(tree) == ["small"], "the pool is announced")
    before = tree.components("pool")
    good = (site.folder / "nodepool.yaml").read_text()
    (site.folder / "nodepool.yaml").write_text(good + "\nlabels: [{nam: broken}]\n")
    wait_for(lambda: "stays in force" in launcher.output(), "the fault is logged")
    assert "nodepool.yaml:" in next(line for line in launcher.output().splitlines() if "stays in force" in line)
    request = tree.add_request(["small"])
    tree.wait_request(request, "fulfilled")
    assert tree.components("pool") == before
    site.config(labels=labels("small", "large"), providers=[fake_provider(labels=("small", "large"))])
    wait_for(lambda: supported_labels(tree) == ["large", "small"], "the mended file is in force")


def test_sighup_reads_the_files_again(site):
    launcher = site.launcher(site.config())
    tree = site.tree()
    wait_for(lambda: supported_labels(tree) == ["small"], "the pool is announced")
    launcher.send(signal.SIGHUP)
    wait_for(lambda: "was read again" in launcher.output(), "the files are read again")
    assert launcher.is_running()


def test_a_removed_provider_is_drained_and_its_pool_vanishes(site):
    """LA-72, D-31"""
    first = fake_provider("fake-first", simulation={"create-latency": 2.0})
    second = fake_provider("fake-second", labels=("large",))
    launcher = site.launcher(site.config(labels=labels("small", "large"), providers=[first, second]))
    tree = site.tree()
    wait_for(lambda: supported_labels(tree) == ["large", "small"], "both pools are announced")
    request = tree.add_request(["small"])
    tree.wait_request(request, "pending")
    site.config(labels=labels("small", "large"), providers=[second])
    wait_for(lambda: supported_labels(tree) == ["large"], "the pool is gone")
    record = tree.wait_request(request, "fulfilled")
    assert tree.node(record["nodes"][0])["provider"] == "fake-first", "the running launch was finished"
    wait_for(lambda: "not configured any more: stopping it" in launcher.output(), "the provider is stopped")


# configuration.17.4
def test_variables_of_the_environment_stand_in_the_file(site, monkeypatch):
    config = site.config()
    config.write_text(config.read_text().replace("port: 0\n", "port: %(NODEPOOL_TEST_PORT)\n"))
    assert "%(NODEPOOL_TEST_PORT)" in config.read_text()
    launcher = site.launcher(config, wait=False)
    wait_for(lambda: not launcher.is_running(), "the launcher ends")
    assert launcher.child.returncode == 1 and "nodepool.yaml" in launcher.output()
    invalid = site.tool("config-validate", config=config)
    assert invalid.returncode == 1 and "nodepool.yaml" in invalid.stderr
    port = free_port()
    monkeypatch.setenv("NODEPOOL_TEST_PORT", str(port))
    site.tool("config-validate", config=config, check=True)
    site.launcher(config, wait=False)
    assert first_answer(port, "/ready")[0] in (200, 503)


def test_a_provider_that_is_taken_out_can_be_erased_right_after(site):
    """Neither launcher nor builder makes anew what it was told to forget."""
    images = ImageSite(site)
    stays, gone = images.provider("fake-stays"), images.provider("fake-gone", label="gone")
    config = images.config([image()], [stays, gone],
                           labels=[{"name": "small", "min-ready": 1}, {"name": "gone", "min-ready": 1}])
    images.builder(config)
    site.launcher(config)
    images.wait_upload(provider="fake-gone")
    tree = site.tree()

    def providers(state):
        return {node["provider"] for node in tree.nodes().values() if node["state"] == state}

    wait_for(lambda: providers("ready") == {"fake-stays", "fake-gone"}, "both have a node", 60)
    images.config([image()], [stays], labels=[{"name": "small", "min-ready": 1}])
    site.tool("erase", "fake-gone", "--force", config=config, check=True)
    # Whoever wanted it back has had occasion for it when this is done.
    build = images.wait_build()
    site.tool("image-build", "debian", config=config, check=True)
    images.wait_upload(provider="fake-stays", build=images.wait_build(known=[build]))
    tree.wait_request(tree.add_request(["small"], reuse=False), "fulfilled", 60)
    assert {node["provider"] for node in tree.nodes().values()} == {"fake-stays"}
    for build in images.builds():
        assert tree.children(f"/nodepool/images/debian/builds/{build}/providers") == ["fake-stays"]


def test_another_server_list_is_followed_in_the_same_session(private_site):
    """D-32"""
    launcher = private_site.launcher(private_site.config())
    tree = private_site.tree()
    wait_for(lambda: supported_labels(tree) == ["small"], "the pool is announced")
    components = tree.components("pool")
    host, port = private_site.hosts.rsplit(":", 1)
    servers = [{"host": host, "port": int(port)}, {"host": "localhost", "port": int(port)}]
    private_site.config(zookeeper_servers=servers)
    wait_for(lambda: "ZooKeeper servers are now" in launcher.output(), "the list is taken")
    assert tree.components("pool") == components
    private_site.zookeeper.restart()
    wait_for(lambda: tree.zk.connected, "our client is back")
    tree.wait_request(tree.add_request(["small"]), "fulfilled", 60)


def test_labels_keep_their_needs_and_faults_over_reloads_that_change_other_things(site):
    """A reload makes every label anew, at the address of any other."""
    provider = fake_provider(labels=("small", "huge", "broken"), **{"max-cores": 4}, simulation={
        "flavors": [{"name": "One Core", "vcpus": 1, "ram": 512}, {"name": "Eight Cores", "vcpus": 8, "ram": 512}]})
    for label, flavor in zip(provider["pools"][0]["labels"], ("One Core", "Eight Cores", "No Such Flavor")):
        label["flavor-name"] = flavor
    settings = {"labels": labels("small", "huge", "broken"), "providers": [provider]}
    launcher = site.launcher(site.config(**settings))
    tree = site.tree()
    wait_for(lambda: supported_labels(tree) == ["broken", "huge", "small"], "the pool is announced")

    def answers():
        requests = {label: tree.add_request([label]) for label in ("small", "huge", "broken")}

        def states():
            return {label: tree.request(request)["state"] for label, request in requests.items()}

        wait_for(lambda: set(states().values()) <= {"fulfilled", "failed"}, "all are decided")
        decided = states()
        for label, request in requests.items():
            if decided[label] == "fulfilled":
                tree.give_back(tree.use(request))
        return decided

    right = {"small": "fulfilled", "huge": "failed", "broken": "failed"}
    assert answers() == right
    for reload in range(1, 13):
        site.config(max_hold_age=1000 + reload, **settings)
        wait_for(lambda: launcher.output().count("was read again") == reload, "the file is read again")
        assert answers() == right, f"after reload {reload}"
