#!/usr/bin/env python3
"""The page of a job."""

from pathlib import Path

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

    def test_lost_runs_and_deleted_pods(self):
        source = (SOURCES / "examples/msjob/data_parallel.yaml").read_text(encoding="utf-8")
        path = Path(self.folder.name) / "recovers.yaml"
        path.write_text(source.replace("restartPolicy: Never", "restartPolicy: ExitCode")
                        .replace("- name: GLOG_v", "- name: MS_ENABLE_RECOVERY"), encoding="utf-8")
        result = self.report("recovers", "job", path, "--model", "lenet", "--batch", 4, "--steps", 8, "--step-time", "1s",
                             "--checkpoint-every", 4, "--fail", "worker-1 exit 137 at 48500ms", "--numerics")["result"]
        lines = self.chart("Loss over simulated time")
        self.assertEqual(list(lines), ["all workers", "all workers, run 2"])
        self.assertEqual([len(line) for line in lines.values()], [len(run["numbers"]) for run in result["training"]])
        deleted = [pod for pod in result["pods"] if pod["deleted_s"] is not None]
        self.assertGreater(len(deleted), 0)
        rows = "\n".join(row.text for row in self.rows("#pods"))
        for pod in deleted:
            self.assertIn(f"deleted at {pod['deleted_s']:.3f} s (was {pod['status']})", rows)

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
