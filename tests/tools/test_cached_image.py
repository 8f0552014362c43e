"""tools/cached-image, with a stand-in for disk-image-create."""
import os
import subprocess

import pytest

from nodepool_helpers import ROOT

TOOL = ROOT / "tools/cached-image"
MAKER = """#!/bin/sh
[ "$1" != --version ] || { echo 3; exit; }
echo made >> "$MADE"
while [ "$1" != -o ]; do shift; done
[ -z "${FAIL:-}" ] || exit 7
echo content > "$2.qcow2"; mkdir "$2.d"; echo kernel > "$2.d/vmlinuz"
"""


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


class Cache:
    def __init__(self, folder):
        self.folder = folder
        self.maker = folder / "disk-image-create"
        self.maker.write_text(MAKER)
        self.maker.chmod(0o755)
        self.elements = folder / "elements"
        (self.elements / "one").mkdir(parents=True)
        (self.elements / "one/script").write_text("1")
        self.images = folder / "images"
        self.images.mkdir()

    def make(self, name, *options, **variables):
        environment = {**os.environ, "MADE": str(self.folder / "made"), "ELEMENTS_PATH": str(self.elements),
                       "DIB_IMAGE_NAME": name, **variables}
        return subprocess.run([TOOL, self.folder / "cache", self.maker, *options, "-o", self.images / name, "one"],
                              env=environment, capture_output=True, text=True, timeout=60).returncode

    def times_made(self):
        made = self.folder / "made"
        return len(made.read_text().splitlines()) if made.exists() else 0


def test_the_same_recipe_is_built_once(cache):
    assert cache.make("a-1") == 0 and cache.make("a-2") == 0
    assert cache.times_made() == 1
    assert (cache.images / "a-2.qcow2").read_text() == "content\n"
    assert (cache.images / "a-2.d/vmlinuz").read_text() == "kernel\n"


def test_the_place_of_the_elements_does_not_matter(cache):
    cache.make("a")
    elsewhere = cache.elements.rename(cache.folder / "elsewhere")
    cache.make("b", ELEMENTS_PATH=str(elsewhere))
    assert cache.times_made() == 1


def test_another_recipe_is_built(cache):
    cache.make("a")
    cache.make("b", "-u")
    cache.make("c", DIB_RELEASE="trixie")
    (cache.elements / "one/script").write_text("2")
    cache.make("d")
    (cache.elements / "one/script").chmod(0o755)
    cache.make("e")
    assert cache.times_made() == 5


def test_what_is_old_is_built_anew(cache):
    cache.make("a")
    kept, = (path for path in (cache.folder / "cache").iterdir() if path.is_dir())
    os.utime(kept, (0, 0))
    cache.make("b", "-u")
    assert not kept.exists(), "other recipes' old images are removed"
    cache.make("c")
    cache.make("d")
    assert cache.times_made() == 3


def test_a_failure_is_passed_on_and_not_kept(cache):
    assert cache.make("a", FAIL="1") == 7
    assert cache.make("b") == 0
    assert cache.times_made() == 2


def test_words_without_a_place_for_the_image_are_refused(cache):
    refused = subprocess.run([TOOL, cache.folder], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "disk-image-create" in refused.stderr
