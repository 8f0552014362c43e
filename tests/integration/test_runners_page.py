"""docs/runners.md: its configurations are accepted as they are."""
import re
import textwrap

import pytest
import yaml

from nodepool_helpers import ROOT

PAGE = (ROOT / "docs/runners.md").read_text()
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"(?:^ {4,}[^\n]*\n|^\n)+", PAGE, re.M)]
MAIN = [block for block in BLOCKS if block.lstrip().startswith("runners:")]
SECURE = [block for block in BLOCKS if block.lstrip().startswith("runner-services:")]


def test_there_are_the_ones_that_the_page_explains():
    assert [yaml.safe_load(block)["runners"][0].get("mode") or yaml.safe_load(block)["runners"][0].get("service") for block in MAIN] == [
        None, "webhook", "forgejo"]
    assert len(SECURE) == 2


# RUN-70
@pytest.mark.parametrize("number", range(len(MAIN)))
def test_configurations_are_accepted(site, number):
    runners = yaml.safe_load(MAIN[number])["runners"]
    secure = site.folder / "secure.yaml"
    secrets = SECURE[number] if number < len(SECURE) else "runner-services: [{name: forge, token: x}]"
    key = site.folder / "key.pem"
    secure.write_text(secrets.replace("/etc/nodepool/octo.pem", str(key)).replace("a-long-random-text", "a-long-random-text-1"))
    done = site.tool("-s", secure, "config-validate", config=site.config("page", runners=runners))
    assert done.returncode == 0, done.stdout + done.stderr
