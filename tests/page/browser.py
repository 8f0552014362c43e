"""Chromium without a screen, driven by Selenium."""
import json
import pathlib
import subprocess

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from services import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXE = ROOT / "build/axe/node_modules/axe-core/axe.min.js"


def axe_source() -> str:
    """The accessibility checker, from npm."""
    if not AXE.exists():
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", ROOT / "build/axe",
                        "axe-core@4"], check=True, timeout=300)
    return AXE.read_text()


class Browser:
    def __init__(self, folder: pathlib.Path):
        options = webdriver.ChromeOptions()
        for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                       "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(120)

    def close(self):
        self.driver.quit()

    def open(self, url: str):
        self.driver.get(url)

    def size(self, width: int, height: int):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def colours(self, scheme: str):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def script(self, text: str, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector: str) -> int:
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)

    def text(self, selector: str = "main") -> str:
        return self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def texts(self, selector: str) -> list[str]:
        return self.script("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)",
                           selector)

    def wait_text(self, text: str, selector: str = "main", seconds: float = 30):
        wait_for(lambda: text in self.text(selector), f"{selector} shows {text!r}", seconds)

    def press(self, *keys: str, selector: str | None = None):
        """Keys by their names ("ARROW_DOWN", "a"), to the focused element or another one."""
        element = self.find(selector) if selector else self.driver.switch_to.active_element
        for key in keys:
            element.send_keys(getattr(Keys, key, key))

    def faults(self) -> list[str]:
        """What the browser complains about since the last call, without lost connections."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "net::ERR_" not in entry["message"]
                and "the server responded with a status of 503" not in entry["message"]]

    def accessibility_faults(self) -> list[str]:
        """Serious and critical findings of axe-core."""
        self.driver.execute_script(axe_source())
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations))")
        return [json.dumps({"rule": rule["id"], "help": rule["help"], "at": [node["target"] for node in rule["nodes"]][:3]})
                for rule in found if rule["impact"] in ("serious", "critical")]

    def picture(self, folder: pathlib.Path, name: str):
        self.driver.save_screenshot(str(folder / f"{name}.png"))
