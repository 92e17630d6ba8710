"""Chromium without a window, for the tests of this folder.

Debian's chromium, chromium-driver and python3-selenium. Where one is missing the tests say so and end with SKIPPED; with
HCCLSIM_CI=1 that is a failure.
"""

import base64
import json
import os
import shutil
import sys

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("HCCLSIM_CI") == "1" else SKIPPED)


try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    skip("Debian's python3-selenium is not installed")


class Browser:
    """A page in Chromium. Every request that is no file:, and every message of an error, is remembered."""

    def __init__(self):
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            skip("Debian's chromium or chromium-driver is not installed")
        options = Options()
        options.binary_location = chromium
        # No sandbox: Chromium has none as root, and the pages are our own.
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                         "--force-device-scale-factor=1", "--window-size=1280,900"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(driver), options=options)

    def close(self):
        self.driver.quit()

    def open(self, path):
        self.driver.get(path.as_uri())
        self.settle()

    def settle(self):
        """Until what has been asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));")

    def run(self, script, *arguments):
        """The value of a script's return."""
        return self.driver.execute_script(script, *arguments)

    def media(self, scheme="light", paper=False):
        """What the page is shown on: a light or dark system, paper."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": "print" if paper else "",
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.settle()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def click(self, x, y, clicks=1):
        self.mouse("mousePressed", x, y, button="left", clickCount=clicks)
        self.mouse("mouseReleased", x, y, button="left", clickCount=clicks)
        self.settle()

    def errors(self):
        """Messages of the console since the last call, without hints on how fast the tests' own reading is."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["source"] != "rendering"]

    def requests(self):
        """Addresses of all requests since the last call that were not for files or data of the page."""
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return [url for url in urls if not url.startswith(("file:", "data:"))]

    def screenshot(self, path):
        """The whole page as PNG."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
            "format": "png", "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
        path.write_bytes(base64.b64decode(picture["data"]))
