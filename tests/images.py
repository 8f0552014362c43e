"""What the tests of the builder do with images, written once."""
import json
import os
import pathlib
import stat
import uuid

from nodepool_helpers import BIN, Installation
from services import Process, wait_for

FAKE_COMMAND = pathlib.Path(__file__).resolve().parent / "data" / "fake-image-create"


def image(name="debian", env=None, **settings):
    """An entry of `diskimages` that is made by the stand-in for disk-image-create."""
    return {"name": name, "dib-cmd": str(FAKE_COMMAND), "elements": ["debian-minimal", "vm"], "release": "bookworm",
            "env-vars": {key: str(value) for key, value in (env or {}).items()},
            **{key.replace("_", "-"): value for key, value in settings.items()}}


def is_alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


class ImageSite:
    """Builders of an installation, each with directories of its own, and the fake cloud they upload to."""

    def __init__(self, installation: Installation):
        self.installation = installation
        self.folder = installation.folder
        self.clouds = self.folder / "clouds"

    def provider(self, name="fake-cloud", images=("debian",), simulation=None, label="small", **settings):
        """A provider whose nodes boot the first of `images`."""
        entries = [entry if isinstance(entry, dict) else {"name": entry} for entry in images]
        pools = [{"name": "main", "labels": [{"name": label, "diskimage": entries[0]["name"],
                                              "flavor-name": "Fake Flavor"}]}] if entries else []
        return {"name": name, "driver": "fake", "cloud": "simulated", "diskimages": entries, "pools": pools,
                "simulation": {"directory": str(self.clouds / name), "create-latency": 0.01, **(simulation or {})},
                **{key.replace("_", "-"): value for key, value in settings.items()}}

    def images_dir(self, builder="one") -> pathlib.Path:
        path = self.folder / f"images-{builder}"
        path.mkdir(exist_ok=True)
        return path

    def log_dir(self, builder="one") -> pathlib.Path:
        return self.folder / f"logs-{builder}"

    def config(self, images, providers, builder="one", **settings) -> pathlib.Path:
        settings = {"images_dir": str(self.images_dir(builder)), "build_log_dir": str(self.log_dir(builder)),
                    "diskimages": list(images), "providers": list(providers), **settings}
        return self.installation.config(f"nodepool-{builder}", **settings)

    def builder(self, config: pathlib.Path, *options, wait=True, env=None) -> Process:
        self.installation.observer()
        process = Process([BIN / "nodepool-builder", "-d", "--cleanup-interval", "1", "-c", config, *options],
                          self.folder / f"builder-{len(self.installation.started)}.log", env)
        self.installation.started.append(process)
        if wait:
            wait_for(lambda: "Managing" in process.output() or not process.is_running(), "the builder runs")
            assert process.is_running(), process.output()[-4000:]
        return process

    def start_paused(self, *options) -> tuple:
        """A builder whose command waits: configuration, builder, file to remove, process id of the command."""
        pause = self.folder / "pause"
        pause.touch()
        config = self.config([image(env={"PAUSE_FILE": pause})], [self.provider()])
        builder = self.builder(config, *options)
        told = self.folder / "pause.pid"
        pid = int(wait_for(lambda: told.exists() and told.read_text().strip(), "the command runs"))
        return config, builder, pause, pid

    # --- Looking on -------------------------------------------------------------------

    @property
    def tree(self):
        return self.installation.observer()

    def builds(self, name="debian") -> dict[str, dict]:
        path = f"/nodepool/images/{name}/builds"
        found = {build: self.tree.record(f"{path}/{build}") for build in self.tree.children(path) if build != "lock"}
        return {build: record for build, record in found.items() if record}

    def uploads(self, name="debian", provider="fake-cloud") -> dict[tuple[str, str], dict]:
        found = {}
        for build in self.builds(name):
            path = f"/nodepool/images/{name}/builds/{build}/providers/{provider}/images"
            for number in self.tree.children(path):
                record = self.tree.record(f"{path}/{number}") if number != "lock" else None
                if record:
                    found[(build, number)] = record
        return found

    def wait_build(self, name="debian", state="ready", known=(), seconds=30) -> str:
        """The id of a build in the state, none of `known`."""
        def look():
            return next((build for build, record in self.builds(name).items()
                         if record["state"] == state and build not in known), None)
        return wait_for(look, f"a {state} build of {name}", seconds)

    def wait_upload(self, name="debian", provider="fake-cloud", build=None, state="ready", seconds=30) -> tuple:
        def look():
            return next((key for key, record in self.uploads(name, provider).items()
                         if record["state"] == state and build in (None, key[0])), None)
        return wait_for(look, f"a {state} upload of {name} in {provider}", seconds)

    def cloud_images(self, provider="fake-cloud") -> dict[str, dict]:
        """What the cloud has, by id."""
        folder = self.clouds / provider
        found = {}
        for path in folder.iterdir() if folder.exists() else []:
            try:
                record = json.loads(path.read_text())
            except (ValueError, FileNotFoundError):
                continue
            if record["kind"] == "image" and not path.name.startswith("part-"):
                found[path.name] = record
        return found

    def files(self, builder="one") -> set[str]:
        return {path.name for path in self.images_dir(builder).iterdir()} - {"builder_id.txt"}
