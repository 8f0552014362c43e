"""A builder whose images go to a counterpart of AWS."""
import pathlib
import random
import urllib.request

from images import ImageSite
from services import wait_for

from aws_account import AwsSite, Listed

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
        """By id; without the images that the account has at the start."""
        return {entry["id"]: entry for entry in self.account.control(f"/resources?kind={kind}")[kind]
                if kind != "image" or entry["tags"]}

    def objects(self) -> dict[str, dict]:
        return self.account.control("/objects")[BUCKET]

    def uploads_in_parts(self) -> list[str]:
        import botocore.config
        import botocore.session
        session = botocore.session.Session()
        keys = next(line.split("=", 1)[1].strip() for line in self._credentials() if "access_key_id" in line)
        secret = next(line.split("=", 1)[1].strip() for line in self._credentials() if "secret_access_key" in line)
        client = session.create_client("s3", region_name="us-west-2", endpoint_url=self.account.variables["AWS_ENDPOINT_URL"],
                                       aws_access_key_id=keys, aws_secret_access_key=secret)
        return [upload["Key"] for upload in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]

    def _credentials(self) -> list[str]:
        return pathlib.Path(self.account.variables["AWS_SHARED_CREDENTIALS_FILE"]).read_text().splitlines()

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


class ListedImage(Listed):
    def __init__(self, content: str):
        super().__init__(content)
        self.name = self.item.findtext("name")
        self.state = self.item.findtext("imageState")
        self.imds = self.item.findtext("imdsSupport")
        self.architecture = self.item.findtext("architecture")
        ebs = self.item.find("blockDeviceMapping/item/ebs")
        self.snapshot = ebs.findtext("snapshotId")
        self.type = ebs.findtext("volumeType")
        self.size, self.iops, self.throughput = (int(ebs.findtext(name) or 0) for name in ("volumeSize", "iops", "throughput"))
