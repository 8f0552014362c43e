"""GitHub's program `actions-runner`: where it comes from."""
import hashlib
import json
import pathlib
import platform
import ssl
import tarfile
import urllib.error
import urllib.request

from quickstart.real import cache_folder

SECONDS = 60
ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}


class NoRunner(RuntimeError):
    """Why there is no archive, and what to do about it."""


class RunnerProgram:
    """An archive with run.sh in it, and its digest."""

    def __init__(self, archive: pathlib.Path):
        self.archive = archive
        self.digest = hashlib.sha256(archive.read_bytes()).hexdigest()

    def unpack(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.archive) as archive:
            archive.extractall(folder, filter="tar") if hasattr(tarfile, "tar_filter") else archive.extractall(folder)
        if not (folder / "run.sh").exists():
            raise NoRunner(f"{self.archive} has no run.sh: it is not GitHub's archive of actions-runner")


def api_of(site: str) -> str:
    """Of the address of a GitHub, as docs/spec/runners.md 2.1 says."""
    host = site.removeprefix("https://").rstrip("/")
    return f"https://api.{host}" if host == "github.com" or host.endswith(".ghe.com") else f"{site.rstrip('/')}/api/v3"


def newest(site: str, repository: str, token: str, ca: str | None) -> RunnerProgram:
    """The one that GitHub offers today; it is downloaded unless it is here. NoRunner: GitHub offers none."""
    address = f"{api_of(site)}/repos/{repository}/actions/runners/downloads"
    context = ssl.create_default_context(cafile=ca)
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS, context=context) as answer:
            offers = json.load(answer)
    except (OSError, ValueError) as fault:
        raise NoRunner(f"GitHub does not say where its runner is ({address}: {fault}); for a repository the token needs the right "
                       "\"Administration: read and write\". --runner names an archive that is here") from None
    wanted = ("linux", ARCHITECTURES.get(platform.machine()))
    offer = next((each for each in offers if (each.get("os"), each.get("architecture")) == wanted), None)
    if offer is None:
        raise NoRunner(f"GitHub offers no runner for {platform.machine()}")
    place = cache_folder() / "runners" / pathlib.PurePath(offer["filename"]).name
    if not place.exists():
        _download(offer["download_url"], place)
    program = RunnerProgram(place)
    expected = offer.get("sha256_checksum")
    if expected and program.digest != expected:
        place.unlink()
        raise NoRunner(f"the digest of {offer['download_url']} is {program.digest}, not {expected}")
    return program


def _download(address: str, place: pathlib.Path):
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(".partial")
    with urllib.request.urlopen(address, timeout=SECONDS) as answer, partial.open("wb") as file:
        while data := answer.read(1 << 20):
            file.write(data)
    partial.rename(place)
