"""Credentials, and what a provider does without: kubeconfig files, plugins, an API server that is away."""
import json
import os
import pathlib
import subprocess
import time

import pytest
import yaml
from kubernetes_cluster import lines
from services import wait_for


def lives(kubernetes_site, tree):
    kubernetes_site.give_back(tree, tree.use(tree.add_request(["empty"])))


def sign(pki: pathlib.Path, folder: pathlib.Path, name: str, subject: str, extensions: str, days: int = 30):
    """NAME.crt and NAME.key in the folder, of the cluster's authority; in one step each."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)

    request, extra = folder / f"{name}.csr", folder / f"{name}.ext"
    extra.write_text(f"keyUsage=critical,digitalSignature\n{extensions}\n")
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", folder / f"{name}.key.new")
    openssl("req", "-new", "-key", folder / f"{name}.key.new", "-subj", subject, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAcreateserial",
            "-CAserial", folder / "serial", "-days", str(days), "-extfile", extra, "-out", folder / f"{name}.crt.new")
    for part in ("key", "crt"):
        (folder / f"{name}.{part}.new").rename(folder / f"{name}.{part}")


# K8S-91, K8S-92
def test_a_client_certificate_that_is_replaced(kubernetes_site, monkeypatch):
    tree, cluster, folder = kubernetes_site.tree(), kubernetes_site.cluster, kubernetes_site.folder
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["users"] = [{"name": "own", "user": {"client-certificate": "own.crt", "client-key": "own.key"}}]
    content["contexts"] = [{"name": "own", "context": {"cluster": "real", "user": "own"}}]
    (folder / "own.kubeconfig").write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(folder / "own.kubeconfig"))

    def replace(user: str, days: int = 30):
        sign(cluster.state / "pki", folder, "own", f"/CN={user}", "extendedKeyUsage=clientAuth", days)

    replace("nodepool-cert", days=-1)
    launcher = kubernetes_site.start(kubernetes_site.provider(context="own"), wait=False)
    ended = f"Provider cluster cannot be used: the client certificate in {folder}/own.crt ended at"
    wait_for(lambda: launcher.output().count(ended) > 2, "it is tried again", 60)
    assert len(lines(launcher, ended)) == 1
    replace("nodepool-cert")
    lives(kubernetes_site, tree)
    replace("stranger")
    wait_for(lambda: 'User "stranger"' in launcher.output(), "the other certificate is used, without a restart", 90)
    waiting = tree.add_request(["empty"])
    replace("nodepool-cert")
    kubernetes_site.give_back(tree, tree.use(waiting))


# K8S-93
def test_the_servers_certificate_is_replaced(kubernetes_site):
    tree, cluster = kubernetes_site.tree(), kubernetes_site.cluster
    launcher = kubernetes_site.launcher()
    held = tree.use(tree.add_request(["pod-small"]))
    pki = cluster.state / "pki"
    before = {name: (pki / name).read_bytes() for name in ("server.crt", "server.key")}
    cluster.down()
    try:
        sign(pki, pki, "server", "/CN=kube-apiserver",
             "extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,"
             "DNS:kubernetes.default.svc,DNS:openshift.openshift-system.svc")
        assert (pki / "server.crt").read_bytes() != before["server.crt"]
    finally:
        cluster.up()
    assert cluster.namespaces() == [tree.node(held[0][0])["external_id"]]
    kubernetes_site.give_back(tree, held, 120)
    lives(kubernetes_site, tree)
    assert launcher.is_running()


# K8S-37: the launcher sees a pod's files, and no other process does.
def test_the_account_of_a_pod(kubernetes_site):
    tree, cluster = kubernetes_site.tree(), kubernetes_site.cluster
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    real = next(entry["cluster"]["server"] for entry in content["clusters"] if entry["name"] == "real")
    host, port = real.removeprefix("https://").split(":")
    become_a_pod = ("mount -t tmpfs tmpfs /run; cd /run; mkdir -p secrets/kubernetes.io/serviceaccount; "
                    f"cd secrets/kubernetes.io/serviceaccount; cp {cluster.state}/conf/nodepool.token token; "
                    f"cp {cluster.state}/pki/ca.crt ca.crt; cd {kubernetes_site.folder}; exec \"$@\"")
    under = ["unshare", "-m", *([] if os.geteuid() == 0 else ["-r"]), "sh", "-euc", become_a_pod, "sh"]
    env = {**os.environ, "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    provider = kubernetes_site.provider()
    del provider["context"]
    launcher = kubernetes_site.launcher(kubernetes_site.config(providers=[provider]), env=env, under=under)
    assert not pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount").exists()
    held = tree.use(tree.add_request(["pod-small"]))
    node = tree.node(held[0][0])
    assert node["cloud"] is None and node["connection_port"]["host"] == real
    assert kubernetes_site.may(node, "create", "pods/exec")
    kubernetes_site.give_back(tree, held)
    assert (cluster.state / "conf/nodepool.token").read_text().strip() not in launcher.output()



# K8S-29, K8S-34, K8S-41
@pytest.mark.parametrize("context", ["cert", "token-file", "exec", "exec-cert", "insecure"])
def test_kinds_of_credentials(kubernetes_site, context):
    tree = kubernetes_site.tree()
    kubernetes_site.start(kubernetes_site.provider(context=context))
    held = tree.use(tree.add_request(["empty"]))
    port = tree.node(held[0][0])["connection_port"]
    assert port["skiptls"] == (context == "insecure") and ("ca_crt" in port) == (context != "insecure")
    kubernetes_site.give_back(tree, held)


# K8S-35
def test_a_plugin_is_asked_seldom(kubernetes_site):
    tree = kubernetes_site.tree()
    calls = kubernetes_site.cluster.state / "conf/exec-plugin.calls"
    calls.unlink(missing_ok=True)
    kubernetes_site.start(kubernetes_site.provider(context="exec"))
    for _ in range(2):
        lives(kubernetes_site, tree)
    asked = [json.loads(line) for line in calls.read_text().splitlines()]
    assert len(asked) == 1
    assert asked[0]["cwd"] == str(kubernetes_site.cluster.state)
    assert asked[0]["info"] == {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential",
                                "spec": {"interactive": False}}


# K8S-33, K8S-32
def test_several_files(kubernetes_site, monkeypatch):
    tree, folder = kubernetes_site.tree(), kubernetes_site.cluster.state / "conf"
    monkeypatch.setenv("KUBECONFIG", f"{folder}/missing::{folder}/merge-1.kubeconfig:{folder}/merge-2.kubeconfig")
    provider = kubernetes_site.provider()
    del provider["context"]
    by_path = kubernetes_site.provider(name="by-path", context="by-path")
    by_path["pools"] = [{"name": "paths", "labels": [{"name": "project", "type": "namespace"}]}]
    kubernetes_site.start(provider, by_path)
    held = tree.use(tree.add_request(["empty"])) + tree.use(tree.add_request(["project"]))
    assert [tree.node(node_id)["cloud"] for node_id, _ in held] == [None, "by-path"]
    kubernetes_site.give_back(tree, held)


# K8S-36, K8S-38, K8S-39, K8S-40
def test_a_context_that_is_repaired(kubernetes_site, monkeypatch):
    tree = kubernetes_site.tree()
    content = yaml.safe_load(kubernetes_site.cluster.kubeconfig.read_text())
    del content["current-context"]
    contexts = content["contexts"]
    content["contexts"] = [entry for entry in contexts if entry["name"] != "least"]
    path = kubernetes_site.folder / "own.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    broken = kubernetes_site.provider(name="broken", context="least")
    broken["pools"] = [{"name": "broken", "labels": [{"name": "project", "type": "namespace"}]}]
    plugin = kubernetes_site.provider(name="plugin", context="exec-bad")
    plugin["pools"] = [{"name": "plugin", "labels": [{"name": "pod-small", "type": "namespace"}]}]
    launcher = kubernetes_site.start(kubernetes_site.provider(), broken, plugin, wait=False)
    lives(kubernetes_site, tree)
    waiting = tree.add_request(["project"])
    wait_for(lambda: "there is no context least" in launcher.output(), "the fault is reported")
    wait_for(lambda: "exec-plugin" in launcher.output() and "exit status" in launcher.output(), "the other one, too")
    assert tree.request(waiting)["state"] in ("requested", "pending")
    content["contexts"] = contexts
    path.write_text(yaml.safe_dump(content))
    kubernetes_site.give_back(tree, tree.use(waiting))


# K8S-40
def test_a_token_file_that_rotates(kubernetes_site, monkeypatch):
    tree, cluster = kubernetes_site.tree(), kubernetes_site.cluster
    first, second = ((cluster.state / f"conf/{name}.token").read_text() for name in ("nodepool", "nodepool-least"))
    token = kubernetes_site.folder / "token"
    token.write_text(first)
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["users"] = [{"name": "rotating", "user": {"tokenFile": "token"}}]
    content["contexts"] = [{"name": "rotating", "context": {"cluster": "faults", "user": "rotating"}}]
    path = kubernetes_site.folder / "own.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    launcher = kubernetes_site.start(kubernetes_site.provider(context="rotating"))

    def user_of_a_node() -> str:
        lives(kubernetes_site, tree)
        return [request for request in cluster.requests() if request["method"] == "POST"][-1]["user"]

    before = user_of_a_node()
    token.write_text(second)
    wait_for(lambda: user_of_a_node() != before, "the other token is used", 30)
    assert first not in launcher.output() and second not in launcher.output()


# K8S-41
def test_a_server_that_is_not_trusted(kubernetes_site):
    tree = kubernetes_site.tree()
    other = kubernetes_site.provider(name="other", context="wrong-ca")
    other["pools"] = [{"name": "other", "labels": [{"name": "project", "type": "namespace"}]}]
    launcher = kubernetes_site.start(kubernetes_site.provider(), other, wait=False)
    lives(kubernetes_site, tree)
    wait_for(lambda: "certificate" in launcher.output(), "the fault is reported")


# K8S-60, K8S-71
def test_a_server_that_is_away(kubernetes_site):
    tree, cluster = kubernetes_site.tree(), kubernetes_site.cluster
    launcher = kubernetes_site.launcher()
    held = tree.use(tree.add_request(["pod-small"]))
    cluster.down()
    try:
        tree.give_back(held)
        wait_for(lambda: "Failed to connect" in launcher.output(), "the server is missed", 60)
        tree.wait_node(held[0][0], state="deleting")
    finally:
        cluster.up()
    tree.wait_node_gone(held[0][0], 120)
    lives(kubernetes_site, tree)


# K8S-60
def test_a_silent_server_does_not_hold_up_the_stop(kubernetes_site):
    tree, cluster = kubernetes_site.tree(), kubernetes_site.cluster
    launcher = kubernetes_site.start(kubernetes_site.provider(context="kubernetes-faults"))
    cluster.control("POST", "/rules", {"path": ".", "fault": "hang", "seconds": 60}, front=True)
    request = tree.add_request(["pod-small"])
    wait_for(lambda: tree.request(request)["state"] == "pending", "it is accepted")
    begun = time.monotonic()
    launcher.stop()
    assert time.monotonic() - begun < 20
