"""The pages that the target `docs` makes (docs/reference/README.md)."""
import re
import subprocess

from nodepool_helpers import BIN, ROOT

PAGES = ROOT / "docs/reference/README.md"


def test_every_page_of_reference_is_made(tmp_path):
    subprocess.run([BIN / "reference_pages", tmp_path], check=True, timeout=60)
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    named = set(re.findall(r"`([\w-]+/[\w-]+\.md)`", PAGES.read_text()))
    assert named == made | {"driver-guide/reference.md"}, "the last is made by tools/driver-reference"
    for page in made:
        assert f"{page}\n" in (ROOT / "cmake/Install.cmake").read_text().replace(" ", "\n"), f"{page} is not installed"


def test_the_program_of_the_pages_says_what_it_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run([BIN / "reference_pages", tmp_path / "file"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and str(tmp_path / "file") in done.stderr
