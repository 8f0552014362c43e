"""What the tests do with a counterpart of Google Cloud, by its control port, and Nodepool with a provider in it."""
import json
import pathlib
import re
import urllib.request

from counterpart import Counterpart, CounterpartSite

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFake zuul"


class Project(Counterpart):
    """A project of Google Cloud whose faults can be chosen; the control port is that of the counterpart."""

    name = "gce"
    control_variable = "GCE_CONTROL"
    own = re.compile(r"GCE_|GOOGLE_|CLOUDSDK_|STORAGE_|no_proxy$|NO_PROXY$")

    def resources(self, kind: str) -> list[dict]:
        return self.control(f"/resources?kind={kind}")

    def instances(self, *states: str) -> list[dict]:
        """Those in one of the states; by default all that exist."""
        return [one for one in self.resources("instances") if not states or one["status"] in states]

    def names(self) -> set[str]:
        return {one["name"] for one in self.instances()}

    def images(self) -> list[dict]:
        """Those that were uploaded."""
        return [one for one in self.resources("images") if "nodepool_upload_id" in one.get("labels", {})]

    def credentials(self, name: str) -> pathlib.Path:
        return self.state / "credentials" / name

    def insert(self, name: str, zone="us-central1-a", **metadata: str):
        """Makes an instance as somebody else does."""
        body = {
            "name": name, "machineType": f"zones/{zone}/machineTypes/e2-medium",
            "disks": [{"boot": True, "autoDelete": True, "initializeParams": {
                "sourceImage": "projects/debian-cloud/global/images/debian-12-bookworm-v20240617"}}],
            "networkInterfaces": [{"network": "global/networks/default"}],
            "metadata": {"items": [{"key": key, "value": value} for key, value in metadata.items()]},
        }
        self.api("POST", f"zones/{zone}/instances", body)

    def api(self, method: str, path: str, body=None):
        """A call of the API with a token of the metadata server."""
        token = urllib.request.Request(
            f"http://{self.variables['GCE_METADATA_HOST']}/computeMetadata/v1/instance/service-accounts/default/token",
            headers={"Metadata-Flavor": "Google"})
        with urllib.request.urlopen(token, timeout=30) as answer:
            bearer = json.loads(answer.read())["access_token"]
        request = urllib.request.Request(
            f"{self.variables['GCE_ENDPOINT']}/compute/v1/projects/gcloud-project/{path}",
            None if body is None else json.dumps(body).encode(), method=method,
            headers={"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())


class GceSite(CounterpartSite):
    """Nodepool with one provider in the project."""

    def __init__(self, folder: pathlib.Path, hosts: str, project: Project):
        self.project = project
        super().__init__(folder, hosts, project)

    def provider(self, label: dict | None = None, pool: dict | None = None, image: dict | None = None,
                 labels: list | None = None, **settings) -> dict:
        usual = {"name": "debian", "image-project": "debian-cloud", "image-family": "debian-12", "username": "zuul",
                 "key": KEY, "connection-port": self.project.ssh_port}
        made = {"name": "small", "cloud-image": "debian", "instance-type": "e2-medium", **(label or {})}
        return {
            "name": "gce", "driver": "gce", "project": "gcloud-project", "region": "us-central1", "zone": "us-central1-a",
            "rate": 50, "boot-timeout": 60, "launch-timeout": 120,
            "cloud-images": [{**usual, **(image or {})}],
            "pools": [{"name": "main", **(pool or {}),
                       "labels": labels or [{key: value for key, value in made.items() if value is not None}]}],
            **settings,
        }

    def validated(self, provider: dict) -> dict:
        provider["rate-limit"] = provider.pop("rate")  # which the validator refuses
        return provider
