"""What the pages of docs/spec define, as tools/behaviours and tools/check-references read it."""
import sys

from nodepool_helpers import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from citations import Specification  # noqa: E402

PAGE = """# Launcher

## 3. Quota

| id | behaviour |
|---|---|
| LA-01, LA-02 | waits *Partly tested: without a cloud.* |
| BB-03 | cites D-20 |
| limit (D-20) | no id of its own |

## 17. Black-box checks

1. a first one *Not tested: needs two hosts.*
2. a second
"""


def read(tmp_path):
    (tmp_path / "docs/spec").mkdir(parents=True)
    (tmp_path / "docs/spec/launcher.md").write_text(PAGE)
    (tmp_path / "docs/spec/decisions.md").write_text("| D-20 | a point | a decision |\n")
    return Specification(tmp_path)


def test_rows_and_numbered_checks_are_behaviours(tmp_path):
    found = {row.id: (row.text, row.how, row.reason) for row in read(tmp_path).behaviours}
    assert found == {"D-20": ("a point | a decision", "", ""),
                     "LA-01": ("waits", "Partly", "without a cloud"), "LA-02": ("waits", "Partly", "without a cloud"),
                     "BB-03": ("cites D-20", "", ""),
                     "launcher.17.1": ("a first one", "Not", "needs two hosts"), "launcher.17.2": ("a second", "", "")}


def test_sections_items_and_ids_can_be_cited(tmp_path):
    pages = read(tmp_path)
    assert [pages.has_id(name) for name in ("LA-01", "LA-03", "launcher.17.2", "launcher.17.3")] == [True, False, True, False]
    assert pages.has_section("launcher.md", "3") and not pages.has_section("launcher.md", "4")
