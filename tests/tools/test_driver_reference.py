"""tools/driver-reference: the page of the driver API, and what it refuses."""
import re
import shutil
import subprocess

from services import ROOT

TOOL = ROOT / "tools/driver-reference"


def test_the_page_has_every_name_with_its_comment():
    done = subprocess.run([TOOL], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    page = (ROOT / "build/docs/driver-guide/reference.md").read_text()
    assert len(re.findall(r"^## \w+/", page, re.M)) > 40
    for name in ("CloudAdapter", "ApiClient", "Schema", "Error", "TaskGroup"):
        assert re.search(rf"^### {name}\n\n\S", page, re.M), name


def test_a_public_name_without_a_comment_is_refused(tmp_path):
    for folder in ("tools", "docs/driver-guide", "docs/spec", "src"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    header = tmp_path / "src/driver/driver.h"
    header.write_text(header.read_text() + "\nnamespace nodepool::driver {\n\nint Undescribed(int value);\n\n}\n")
    done = subprocess.run([tmp_path / "tools/driver-reference", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "src/driver/driver.h: this has no comment: int Undescribed(int value);" in done.stdout
