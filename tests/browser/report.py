"""Reports in a real browser, for the tests of this folder: one file for each kind of page.

usage: NAME_test.py HCCLSIM [--screenshots FOLDER]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from browser import Browser
from selenium.webdriver.common.by import By

SOURCES = Path(__file__).resolve().parents[2]


class Settings:
    """Of the command line."""

    hcclsim = ""
    screenshots = None


def hcclsim(*arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HCCL_", "RANK_TABLE_"))}
    return subprocess.run([Settings.hcclsim, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env=environment).stdout


class ReportTest(unittest.TestCase):
    """Reports are made once and opened by the tests that look at them."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.folder = tempfile.TemporaryDirectory()
        cls.reports = {}

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.media("light")
        self.browser.resize(1280, 900)

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    @classmethod
    def make_report(cls, name, *arguments):
        path = Path(cls.folder.name) / f"{name}.html"
        hcclsim("report", *arguments, "--output", path)
        cls.reports[name] = path

    def report(self, name, *arguments):
        """Makes the report unless another test has, opens it, and returns its data."""
        if name not in self.reports:
            self.make_report(name, *arguments)
        self.browser.open(self.reports[name])
        return json.loads(self.browser.run("return document.getElementById('data').textContent"))

    def run_report(self):
        return self.report("run", "run", "--hcom-parallel", "on", "--split-by-size", "80,15,5")

    def find(self, selector):
        return self.browser.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).text

    def picture(self, name):
        if Settings.screenshots is not None:
            self.browser.screenshot(Settings.screenshots / f"{name}.png")

    def rows(self, selector):
        """The rows of the body of a table, or of all tables of a section."""
        return self.browser.driver.find_elements(By.CSS_SELECTOR, f"{selector} tbody tr")

    def press(self, path):
        """Clicks a button after bringing it out from under the bar."""
        button = self.browser.driver.find_element(By.XPATH, path)
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()

    def chart(self, label):
        """Data sets of a chart by its description: {name: [[x, y] …]}."""
        return self.browser.run(
            "const c = document.querySelector(`canvas[aria-label='${arguments[0]}']`); const out = {};"
            "for (const set of Chart.getChart(c).data.datasets)"
            "  out[set.label] = set.data.map((p) => (p && p.x !== undefined ? [p.x, p.y] : p));"
            "return out;", label)

    def choose(self, label, value):
        """Chooses in a list by its label."""
        self.browser.run(
            "const s = [...document.querySelectorAll('select')].find((e) => e.getAttribute('aria-label') === arguments[0]);"
            "s.value = arguments[1]; s.dispatchEvent(new Event('change'));", label, value)
        self.browser.settle()

    def contrast(self):
        """Least contrast of text against the surface it stands on, and the text."""
        return self.browser.run(
            "const light = (rgb) => { const [r, g, b] = rgb.match(/[\\d.]+/g).map((v) => { v /= 255;"
            "  return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });"
            "  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };"
            "const worst = []; for (const e of document.querySelectorAll('h1, h2, p, td, th, a, summary, .label, .note')) {"
            "  if (!e.textContent.trim() || !e.offsetParent) continue; let under = e;"
            "  while (under && /rgba\\(0, 0, 0, 0\\)/.test(getComputedStyle(under).backgroundColor)) under = under.parentElement;"
            "  if (!under) continue;"
            "  const a = light(getComputedStyle(e).color), b = light(getComputedStyle(under).backgroundColor);"
            "  worst.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML]); }"
            "return worst.sort((a, b) => a[0] - b[0])[0];")


def main():
    """Runs the tests of the file that is executed."""
    Settings.hcclsim = sys.argv.pop(1)
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        Settings.screenshots = Path(sys.argv[at + 1])
        Settings.screenshots.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    unittest.main()
