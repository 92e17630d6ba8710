#!/usr/bin/env python3
"""The page of a sweep: any figure over what was varied."""

from pathlib import Path

from report import ReportTest, hcclsim, main
from selenium.webdriver.common.by import By


class SweepPageTest(ReportTest):
    def test_sweep_shows_any_figure_over_what_was_varied(self):
        database = Path(self.folder.name) / "points.db"
        hcclsim("sweep", "run", database, "run", "--hcom-parallel", "on", "--batch", "16,32", "--split-by-size", "60:90:10",
                "--set", "link[hccs*].bandwidth=14GBps,28GBps")
        data = self.report("sweep", "sweep", database)
        self.assertEqual([len(axis["values"]) for axis in data["axes"]], [2, 4, 2])
        curves = self.chart("step time over split-by-size")
        self.assertEqual(len(curves), 2)
        for points in curves.values():
            self.assertEqual([x for x, _ in points], [60, 70, 80, 90])
        # Paper, where there is no choice, says what was chosen.
        self.assertRegex(self.text("#explore .shown"), r"step time over split-by-size, for each batch; link\[hccs\*\]\.bandwidth \d+GBps")
        # The map has the figures of the curves, the best of each batch framed.
        cells = self.browser.driver.find_elements(By.CSS_SELECTOR, "table.heat tbody td")
        self.assertEqual(len(cells), 8)
        framed = [cell.text for cell in self.browser.driver.find_elements(By.CSS_SELECTOR, "table.heat td.best")]
        least = [min(y for _, y in points) for points in curves.values()]
        for text, seconds in zip(framed, least, strict=True):
            self.assertAlmostEqual(float(text.split()[0]), seconds * 1e3, delta=0.01)
        # Another figure, another axis, another value of what is held.
        self.choose("Figure", "images_per_s")
        before = self.chart("samples/s over split-by-size")
        self.choose("Over", "batch")
        self.assertEqual(len(self.chart("samples/s over batch")), 4)  # the two have changed places
        self.choose("Over", "split-by-size")
        self.assertEqual(self.chart("samples/s over split-by-size"), before)
        self.choose("For each", "link[hccs*].bandwidth")
        held = self.chart("samples/s over split-by-size")
        self.assertEqual(len(held), 2)
        self.choose("batch", "32")
        self.assertNotEqual(self.chart("samples/s over split-by-size"), held)
        self.browser.media("dark")
        self.assertGreater(self.contrast(), [4.5])
        self.picture("sweep")
        best = min((point for point in data["points"]), key=lambda point: point[2][0])
        self.assertIn(f"{best[2][0] * 1e3:.4g}", self.text("#best tbody tr.best"))
        self.assertIn(data["best"][0]["command"], self.text("#best pre"))
        # Printers leave out backgrounds, but a map is nothing without its colours.
        self.browser.media("light", paper=True)
        self.assertEqual(self.browser.run(
            "return getComputedStyle(document.querySelector('table.heat td')).printColorAdjust"), "exact")
        self.browser.media("light")
        self.browser.resize(420, 800)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 420)


if __name__ == "__main__":
    main()
