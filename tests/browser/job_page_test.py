#!/usr/bin/env python3
"""The page of a job."""

from report import SOURCES, ReportTest, main


class JobPageTest(ReportTest):
    def job(self):
        return self.report("job", "job", SOURCES / "examples/msjob/data_parallel.yaml")

    def test_shows_every_pod_and_every_event(self):
        result = self.job()["result"]
        self.assertEqual(len(self.rows("#pods")), len(result["pods"]))
        self.assertEqual(len(self.rows("#events")), len(result["events"]))
        for pod, row in zip(result["pods"], self.rows("#pods"), strict=True):
            self.assertIn(pod["name"], row.text)
        self.picture("job")

    def test_tells_its_command_and_fits_paper_and_a_small_window(self):
        self.job()
        self.assertIn("hcclsim report job ", self.text("#reproduce pre"))
        self.browser.resize(420, 800)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 420)
        self.browser.resize(718, 1000)
        self.browser.media("light", paper=True)
        wide = self.browser.run("return [...document.querySelectorAll('main, canvas')].filter((e) =>"
                                "  e.clientWidth > 718).map((e) => e.outerHTML.slice(0, 200))")
        self.assertEqual(wide, [])
        self.browser.media("dark")
        self.assertGreater(self.contrast(), [4.5])


if __name__ == "__main__":
    main()
