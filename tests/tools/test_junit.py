"""How ./test counts what was skipped."""
import pytest

import junit
from nodepool_helpers import ROOT

FILE = """<testsuites><testsuite name="Suite" tests="5" failures="1" skipped="2" disabled="1">
<testcase name="Good" classname="Suite" status="run" result="completed"/>
<testcase name="Bad" classname="Suite" status="run" result="completed"><failure message="no"/></testcase>
<testcase name="Rare" classname="Suite" status="run" result="skipped"><skipped message="no loop device"/></testcase>
<testcase name="Real" classname="Suite" status="run" result="skipped"><skipped message="wants a cloud"/></testcase>
<testcase name="Off" classname="Suite" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""


def test_a_skip_that_is_not_allowed_fails(tmp_path):
    path = tmp_path / "results.xml"
    path.write_text(FILE)
    assert junit.totals([path], ["Suite.Re*"]) == (1, 3, ["Suite.Rare: no loop device", "Suite.Off: it is disabled"])
    assert junit.totals([path], ["Suite.R*", "Suite.Off"]) == (1, 1, [])


def test_every_allowed_skip_says_why(tmp_path):
    assert junit.read_allowed(ROOT / "tests/allowed-skips.txt")
    path = tmp_path / "allowed"
    path.write_text("# a comment\n\na.* because\n")
    assert junit.read_allowed(path) == ["a.*"]
    path.write_text("a.*\n")
    with pytest.raises(ValueError, match="has no reason"):
        junit.read_allowed(path)
