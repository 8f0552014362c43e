"""A builder whose images go to a real libvirt."""
import pathlib

from images import ImageSite
from services import wait_for

from libvirt_host import DRIVERS

COPY = pathlib.Path(__file__).resolve().parent.parent / "data" / "copy-image"
PROVIDER = "here"


class LibvirtImages(ImageSite):
    """Builds of the diskimage `debian`, copies of one file, and nodes that boot from it; `validate` as in its section."""

    def __init__(self, site, image: pathlib.Path, validate=None, **provider):
        super().__init__(site)
        self.host = site.host
        label = {"cloud-image": None, "diskimage": "debian", "disk": 4, "memory": 512}
        settings = site.provider(label, diskimages=[{"name": "debian"}], **provider)
        offer, = settings["pools"][0]["labels"]
        del offer["cloud-image"]
        entry = {"name": "debian", "dib-cmd": str(COPY), "elements": ["any"], "env-vars": {"IMAGE": str(image)}}
        if validate is not None:
            entry["validate"] = validate
        self.path = self.config([entry], [settings])

    def builder(self):
        self.process = super().builder(self.path, "--drivers-dir", DRIVERS)
        return self.process

    def output(self) -> str:
        return self.process.output()

    def tool(self, *words):
        return self.installation.tool("--drivers-dir", DRIVERS, *words, config=self.path, check=True, timeout=120).stdout

    def build_again(self) -> str:
        """The id of a new build, whose upload is ready."""
        known = set(self.builds())
        self.tool("image-build", "debian")
        build = self.wait_build(known=known, seconds=120)
        return self.wait_upload(provider=PROVIDER, build=build, seconds=300)[0]

    def volumes_by_build(self) -> dict[str, str]:
        """The volumes that records of ready uploads name."""
        return {build: record["external_id"] for (build, _), record in self.uploads(provider=PROVIDER).items()
                if record["state"] == "ready"}

    def is_settled(self) -> bool:
        """Whether nothing is under way, and there is nothing that no record names."""
        states = {record["state"] for record in [*self.builds().values(), *self.uploads(provider=PROVIDER).values()]}
        if states != {"ready"} or "request-build" in self.tree.children("/nodepool/images/debian"):
            return False
        files = {name.split(".")[0].removeprefix("debian-") for name in self.files()}
        return (files == set(self.builds()) == set(self.volumes_by_build())
                and set(self.host.volumes()) == set(self.volumes_by_build().values()))

    def wait_settled(self, seconds: float = 180):
        wait_for(self.is_settled, "records, files and volumes agree", seconds)
