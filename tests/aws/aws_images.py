"""A builder whose images go to a counterpart of AWS."""
import configparser
import pathlib
import random
import urllib.request

from images import ImageSite
from services import wait_for

from aws_account import AwsSite

COPY = pathlib.Path(__file__).resolve().parent.parent / "data" / "copy-image"
PROVIDER = "ec2"
BUCKET = "nodepool"
MEBIBYTE = 1 << 20


def make_file(path: pathlib.Path, size: int, data: dict[int, int]) -> pathlib.Path:
    """A sparse file with so many random bytes at each place."""
    source = random.Random(1)
    with open(path, "wb") as file:
        file.truncate(size)
        for place, length in data.items():
            file.seek(place)
            file.write(source.randbytes(length))
    return path


class AwsImages(ImageSite):
    """Builds of the diskimage `debian`, which are copies of one file, and a provider that takes them."""

    def __init__(self, site: AwsSite, file: pathlib.Path, image: dict | None = None, **settings):
        super().__init__(site)
        self.account = site.account
        self.file = file
        self.before = {entry["id"] for kind in ("image", "snapshot")
                       for entry in self.account.control(f"/resources?kind={kind}")[kind]}
        self.settings = {"object-storage": {"bucket-name": BUCKET}, "image-import-timeout": 60,
                         "diskimages": [{"name": "debian", **(image or {})}], **settings}

    def config(self, images: bool = True, **more):
        entry = {"name": "debian", "dib-cmd": str(COPY), "elements": ["any"], "env-vars": {"IMAGE": str(self.file)}}
        settings = {**self.settings} if images else {**self.settings, "diskimages": []}
        return super().config([entry] if images else [], [self.installation.provider(**settings)], **more)

    def builder(self, config=None, *options, wait=True):
        return super().builder(config or self.config(), *options, wait=wait, env=self.account.environment())

    def launcher(self, config):
        return self.installation.launcher(config)

    def ready(self, seconds: float = 120) -> tuple[str, dict]:
        """The image of an upload that is ready, and its record."""
        build, number = self.wait_upload(provider=PROVIDER, seconds=seconds)
        record = self.uploads(provider=PROVIDER)[(build, number)]
        return record["external_id"], record

    # --- What is in AWS -----------------------------------------------------------------

    def owned(self, kind: str) -> dict[str, dict]:
        """By id; without what the account has at the start."""
        return {entry["id"]: entry for entry in self.account.control(f"/resources?kind={kind}")[kind]
                if entry["id"] not in self.before}

    def objects(self) -> dict[str, dict]:
        return self.account.control("/objects")[BUCKET]

    @property
    def s3(self):
        """Somebody else's client, which signs with the account's key."""
        import botocore.session  # which aws-up installs

        if not hasattr(self, "_s3"):
            keys = configparser.ConfigParser()
            keys.read(self.account.variables["AWS_SHARED_CREDENTIALS_FILE"])
            self._s3 = botocore.session.Session().create_client(
                "s3", region_name="us-west-2", endpoint_url=self.account.variables["AWS_ENDPOINT_URL"],
                aws_access_key_id=keys["default"]["aws_access_key_id"],
                aws_secret_access_key=keys["default"]["aws_secret_access_key"])
        return self._s3

    def uploads_in_parts(self) -> list[str]:
        """The keys of uploads that are neither completed nor aborted; the control port does not show them."""
        return [upload["Key"] for upload in self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]

    def left(self) -> dict[str, list]:
        """Everything that uploads make and that still exists."""
        return {"image": sorted(self.owned("image")), "snapshot": sorted(self.owned("snapshot")),
                "object": sorted(self.objects()), "parts": self.uploads_in_parts()}

    def image(self, image_id: str) -> "ListedImage":
        found, = self.account.call("DescribeImages", ImageIds=[image_id])["Images"]
        return ListedImage(found)

    def data_of(self, snapshot: str, place: int, length: int) -> bytes:
        url = f"{self.account.variables['AWS_CONTROL']}/snapshot-data/{snapshot}?offset={place}&length={length}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()

    def assert_equal(self, snapshot: str):
        """The snapshot begins with the file, and goes on with zeros."""
        with open(self.file, "rb") as file:
            for place in range(0, self.file.stat().st_size, 16 * MEBIBYTE):
                expected = file.read(16 * MEBIBYTE)
                assert self.data_of(snapshot, place, len(expected)) == expected, f"from {place} on"
        assert not any(self.data_of(snapshot, self.file.stat().st_size, 4096))

    def await_left(self, expected, seconds: float = 60):
        """Ends when left() is what `expected` returns."""
        try:
            wait_for(lambda: self.left() == expected(), "what uploads have left is removed", seconds)
        except AssertionError:
            assert self.left() == expected()
            raise

    def await_only(self, image_id: str, seconds: float = 60):
        """Ends when AWS has the image and its snapshot, and nothing else of uploads."""
        self.await_left(lambda: {"image": [image_id], "snapshot": [self.image(image_id).snapshot], "object": [], "parts": []},
                        seconds)

    def await_nothing(self, seconds: float = 60):
        self.await_left(lambda: {"image": [], "snapshot": [], "object": [], "parts": []}, seconds)


class ListedImage:
    """An image as EC2 describes it."""

    def __init__(self, content: dict):
        self.name, self.state, self.architecture = (content[key] for key in ("Name", "State", "Architecture"))
        self.imds = content.get("ImdsSupport")
        self.tags = {tag["Key"]: tag["Value"] for tag in content.get("Tags") or []}
        ebs = content["BlockDeviceMappings"][0]["Ebs"]
        self.snapshot, self.type, self.size = ebs["SnapshotId"], ebs["VolumeType"], ebs["VolumeSize"]
        self.iops, self.throughput = ebs.get("Iops"), ebs.get("Throughput")
