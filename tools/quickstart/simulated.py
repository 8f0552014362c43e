"""A simulated cloud, and this computer as a machine that exists."""
import os
import pwd

from quickstart.installation import Installation, ready_labels
from services import Sshd


class SimulatedCloud(Installation):
    example = "quickstart.yaml"
    labels = ("small", "large")
    fullness = "two nodes of label small (min-ready) and the static one"

    hints = ("{tool} request small large --wait", "{tool} exec{identity} this-machine -- uname -a", "{tool} list")

    def start(self, say):
        self.begin_anew()
        sshd = Sshd(self.folder / "sshd")
        self.started.append(sshd)
        sshd.login_key(self.key)
        sshd.start()
        self.values |= {"NODEPOOL_SSH_PORT": sshd.port, "NODEPOOL_SSH_HOST_KEY": sshd.host_key,
                        "NODEPOOL_SSH_USER": pwd.getpwuid(os.getuid()).pw_name}
        self.config.write_text(self.example_text())
        self.start_launcher(say)

    def is_full(self, nodes: list[dict]) -> bool:
        ready = ready_labels(nodes)
        return ready.count("small") >= 2 and "this-machine" in ready
