"""The generated pages of docs/reference are up to date."""
import pathlib
import subprocess

from nodepool_helpers import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_configuration_reference_is_current():
    page = ROOT / "docs/reference/configuration.md"
    generated = subprocess.run([BIN / "config_reference"], capture_output=True, text=True, check=True, timeout=60)
    assert page.read_text() == generated.stdout, f"write it anew: {BIN}/config_reference > {page}"
