#!/usr/bin/env python3
"""All pages: they load nothing, and can be read in the dark, on paper, in a small window, with the keyboard."""

import base64

from report import ReportTest, main
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


class LookTest(ReportTest):
    def test_asks_nothing_of_the_network(self):
        self.browser.requests()
        for name, arguments in {"run": ["run", "--hcom-parallel", "on", "--split-by-size", "80,15,5"],
                                "tune": ["tune"], "collective": ["collective", "allreduce", "-b", "8K", "-e", "16M",
                                                                 "-f", "2"]}.items():
            self.report(name, *arguments)
            self.assertEqual(self.browser.requests(), [])
        self.assertFalse(self.browser.run("return [...document.querySelectorAll('[src], link')].length > 0"))

    def test_everything_is_reached_by_tab_and_has_a_name(self):
        self.run_report()
        unnamed = self.browser.run(
            "return [...document.querySelectorAll('canvas, button, select, input, section')].filter((e) =>"
            "  !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()"
            "    || e.closest('label'))).map((e) => e.outerHTML)")
        self.assertEqual(unnamed, [])
        seen = []
        self.browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
        for _ in range(60):
            self.browser.driver.switch_to.active_element.send_keys(Keys.TAB)
            seen.append(self.browser.run("const e = document.activeElement; return e.tagName + ' ' + e.textContent"))
            if seen[-1].startswith("BODY"):
                break
        order = [next(i for i, one in enumerate(seen) if one.startswith(word))
                 for word in ["A Timeline", "BUTTON Light", "SELECT", "CANVAS", "SUMMARY Trace points", "BUTTON Copy"]]
        self.assertEqual(order, sorted(order))

    def test_every_chart_has_its_figures_as_text(self):
        self.run_report()
        for section in ["timeline", "comparison", "memory", "links"]:
            self.assertTrue(self.browser.driver.find_elements(By.CSS_SELECTOR, f"#{section} table"), section)

    def background(self):
        return self.browser.run("return getComputedStyle(document.body).backgroundColor")

    def pixel(self):
        """Colour of the canvas in the first bar of the timeline."""
        return self.browser.run(
            "const c = document.querySelector('.timeline canvas');"
            "return [...c.getContext('2d').getImageData(300, 52, 1, 1).data].slice(0, 3)")

    def chart_colour(self):
        """The colour in which a bar of a chart is drawn."""
        return self.browser.run(
            "const c = document.querySelector('#comparison canvas');"
            "return Chart.getChart(c).getDatasetMeta(0).data[0].options.backgroundColor")

    def test_light_dark_and_paper(self):
        self.run_report()
        light, light_bar, light_chart = self.background(), self.pixel(), self.chart_colour()
        self.assertGreater(self.contrast(), [4.5])
        self.browser.media("dark")
        dark, dark_bar = self.background(), self.pixel()
        self.assertNotEqual(light, dark)
        self.assertNotEqual(light_bar, dark_bar)  # what is drawn follows too
        self.assertNotEqual(light_chart, self.chart_colour())
        self.assertGreater(self.contrast(), [4.5])
        self.picture("run_dark")
        # Paper is light even where the system is dark, and has no buttons.
        self.browser.media("dark", paper=True)
        self.assertEqual(self.pixel(), light_bar)
        self.assertEqual(self.chart_colour(), light_chart)
        self.assertFalse(self.find(".tools").is_displayed())
        self.assertFalse(self.find(".bar").is_displayed())
        self.picture("run_print")
        self.browser.media("light")
        self.find(".bar button").click()
        self.browser.settle()
        self.assertEqual(self.background(), dark)

    def test_fits_on_paper(self):
        self.run_report()
        self.browser.resize(718, 1000)  # A4 between usual margins
        self.browser.media("light", paper=True)
        wide = self.browser.run("return [...document.querySelectorAll('.scroll, main, canvas')].filter((e) =>"
                                "  e.scrollWidth > e.clientWidth + 1 || e.clientWidth > 718).map((e) => e.outerHTML.slice(0, 200))")
        self.assertEqual(wide, [])
        self.picture("run_paper")

    def test_leaves_no_half_of_a_page_empty(self):
        self.run_report()
        pages = base64.b64decode(self.browser.driver.print_page()).count(b"/Type /Page\n")
        self.assertGreaterEqual(pages, 3)
        self.assertLessEqual(pages, 5)

    def test_fits_a_small_window(self):
        self.run_report()
        self.browser.resize(420, 800)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 420)
        self.picture("run_small")

    def test_every_kind_tells_its_assumptions_and_its_command(self):
        for name, arguments in {"run": ["run", "--hcom-parallel", "on", "--split-by-size", "80,15,5"], "tune": ["tune"],
                                "collective": ["collective", "allreduce", "-b", "8K", "-e", "16M", "-f", "2"]}.items():
            self.report(name, *arguments)
            self.assertIn("HCCS 10 GB/s (10..19.3) HCCL's constant assumed", self.text("#assumptions table"))
            self.assertIn(f"hcclsim report {arguments[0]} ", self.text("#reproduce pre"))


if __name__ == "__main__":
    main()
