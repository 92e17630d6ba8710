#!/usr/bin/env python3
"""The page of a training step: what it shows is what the command found."""

import json
from pathlib import Path

from report import SOURCES, ReportTest, hcclsim, main
from selenium.webdriver.common.keys import Keys


class RunPageTest(ReportTest):
    def test_shows_the_figures_of_the_run(self):
        data = self.run_report()
        plain = json.loads(hcclsim("run", "--hcom-parallel", "on", "--split-by-size", "80,15,5", "--format", "json",
                                   "--advice"))
        self.assertEqual(data["result"], plain)
        cards = self.text(".cards")
        self.assertIn(f"{plain['step_time_s'] * 1e3:,.3f} ms", cards)
        self.assertIn(f"{plain['images_per_s']:,.1f}", cards)
        rows = self.rows("#split")
        self.assertEqual(len(rows), 3)
        self.assertIn(f"{plain['segments'][0]['end_s'] * 1e3:.3f}", rows[0].text)
        self.assertIn("hcclsim report run --hcom-parallel on", self.text("#reproduce pre"))
        self.assertIn("HCCS 10 GB/s", self.text("#assumptions"))
        self.picture("run_light")

    def test_memory_is_highest_at_the_peak(self):
        data = self.run_report()
        sets = self.chart("HBM in use over the step")
        highest = max(y for points in sets.values() for _, y in points)
        self.assertAlmostEqual(highest * 2**30, data["result"]["hbm_peak_bytes"], delta=1)
        self.assertEqual(max(y for _, y in sets["activations"]), highest)

    def test_links_are_busy_during_allreduces_only(self):
        data = self.run_report()
        links = data["links"]
        length = links["interval_s"] * 1e3
        segments = [(one["start_s"] * 1e3, one["end_s"] * 1e3) for one in data["result"]["segments"]]
        curves = self.chart("Utilisation of links over the step")
        self.assertEqual(len(curves), 4)
        for points in curves.values():
            self.assertEqual(points[-1], [data["result"]["trace"]["iteration_end_s"] * 1e3, 0])
            for start, load in points[:-1]:
                self.assertLessEqual(load, 100)
                if not any(begin < start + length and start < end for begin, end in segments):
                    self.assertEqual(load, 0)
        # A link of 14 GB/s that is busy most of the first allreduce has carried what its bytes say.
        busiest = links["links"][0]
        carried = sum(busiest["load"]) * links["interval_s"] * busiest["capacity_Bps"]
        self.assertAlmostEqual(carried / busiest["bytes"], 1, places=3)
        self.choose("Link", busiest["name"])
        self.assertEqual([y for _, y in self.chart("Utilisation of links over the step")[f"{busiest['name']}, HCCS"]][:-1],
                         [load * 100 for load in busiest["load"]])

    def test_one_npu_has_nothing_to_communicate(self):
        self.report("alone", "run", "--npus", "1", "--model", "lenet")
        self.assertNotIn("Split", self.text(".bar nav").split())
        self.assertIn("Backward (BP)", self.text("body") + "Backward (BP)")
        self.assertIn("GiB", self.text("#memory"))

    def test_a_profile_is_tested_first(self):
        profile = SOURCES / "tests" / "data" / "profile" / "step_trace_0_1.csv"
        data = self.report("profile", "run", "--model", "lenet", "--profile", profile)
        self.assertEqual(self.browser.run("return document.querySelector('section').id"), "back-test")
        for row in data["result"]["profile"]["back_test"]:
            self.assertIn(row["phase"], self.text("#back-test table"))
        measured = self.chart("Measured and simulated time of every phase")["measured"]
        self.assertAlmostEqual(measured[-1], data["result"]["profile"]["back_test"][-1]["measured_s"] * 1e3)

    def test_many_segments_are_folded_away(self):
        data = self.report("each", "run", "--hcom-parallel", "on", "--split", "each")
        self.assertEqual(len(data["result"]["segments"]), 161)
        self.assertFalse(self.browser.run("return document.querySelector('#split details').open"))
        self.press("//summary[text()='All 161 segments']")
        rows = self.rows("#split")
        self.assertEqual(len(rows), 161)
        self.assertIn(f"{data['result']['segments'][160]['end_s'] * 1e3:.3f}", rows[160].text)
        self.assertEqual(len(self.chart("Bytes of gradients ready and reduced over time")["ready"]), 163)
        self.picture("each")

    def test_compressed_gradients_are_as_many_as_those_that_are_ready(self):
        data = self.report("compressed", "run", "--model", "lenet", "--compress", "fp16")
        curves = self.chart("Bytes of gradients ready and reduced over time")
        whole = sum(gradient["bytes"] for gradient in data["result"]["gradients"]) / 1e6
        self.assertLess(sum(one["bytes"] for one in data["result"]["segments"]) / 1e6, 0.6 * whole)
        for points in curves.values():
            self.assertAlmostEqual(points[-1][1], whole)

    def test_a_pipeline_has_its_batch_and_passes_that_take_turns(self):
        data = self.report("pipeline", "run", "--model", "gpt2-small", "--layers", "4", "--hidden", "64", "--heads", "2",
                           "--vocabulary", "8192", "--sequence", "32", "--batch", "8", "--stages", "4", "--micro-batches",
                           "4", "--platform", "atlas800t-a2", "--uncertainty", "off", "--rank", "2")
        batch = "8 per replica (16 global) in 4 micro-batches of 2"
        self.assertIn(f"batch {batch}", self.text(".cards"))
        self.assertIn(batch, self.text("#set-up"))
        result = data["result"]
        self.assertIn(f"on NPU {result['hbm_peak_rank']}", self.text(".cards"))
        self.assertIn("HBM of NPU 2", self.text("#memory h2"))
        self.assertLess(result["trace"]["bp_start_s"], result["trace"]["fp_end_s"])
        self.find(".timeline canvas").send_keys(Keys.ARROW_RIGHT)
        self.assertIn("FP and BP of 4 micro-batches", self.text(".selection"))
        self.assertIn(f"{result['trace']['bp_end_s'] * 1e3:.3f} ms", self.text(".selection"))

    def test_names_of_the_user_stay_text(self):
        evil = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"
        profile = Path(self.folder.name) / "profile.csv"
        profile.write_text(f"index,name,bytes,ready_us\n0,a,4000000,1000\n1,{evil.replace(',', ';')},4000000,2000\n",
                           encoding="utf-8")
        self.report("evil", "run", "--gradients", profile, "--title", evil)
        self.assertEqual(self.browser.driver.title, evil)
        self.assertEqual(self.text("h1"), evil)
        self.assertEqual(self.browser.run("return document.images.length"), 0)

    def test_names_of_bars_are_whole_in_a_small_window(self):
        self.browser.resize(400, 800)
        self.run_report()
        clipped = self.browser.run(
            "const chart = Chart.getChart(document.querySelector('#comparison canvas')); const scale = chart.scales.y;"
            "const pen = chart.ctx; pen.font = Chart.helpers.toFont(scale.options.ticks.font).string;"
            "return scale.ticks.flatMap((tick) => tick.label).filter((line) => pen.measureText(line).width > scale.width)")
        self.assertEqual(clipped, [])

    def test_the_busiest_links_are_a_map_over_time(self):
        """Every coloured cell is the mean of four of the 400 intervals; idle ones are not drawn."""
        data = self.run_report()
        links = data["links"]["links"]
        names = self.browser.run("return [...document.querySelectorAll('svg.time-map .name title')].map((e) => e.textContent)")
        self.assertEqual(names, [link["name"] for link in links])
        means = [[sum(link["load"][i : i + 4]) / 4 for i in range(0, 400, 4)] for link in links]
        cells = self.browser.run(
            "return [...document.querySelectorAll('svg.time-map .cell')].map((e) => [e.textContent, e.getAttribute('fill')])")
        self.assertEqual(len(cells), sum(mean > 0 for row in means for mean in row))
        busy = iter(cells)
        for link, row in zip(links, means, strict=True):
            for mean in (mean for mean in row if mean > 0):
                words, fill = next(busy)
                self.assertTrue(words.startswith(link["name"]), words)
                self.assertIn(link["shares"][0]["purpose"], words)
                shown = float(words.split("ms: ")[1].split(" %")[0])
                self.assertAlmostEqual(shown, mean * 100, delta=0.0501)
                self.assertRegex(fill, "^#[0-9a-f]{6}$")
        # Darker where more is carried; other colours in the dark.
        light = {fill for _, fill in cells}
        self.browser.media("dark")
        dark = {fill for fill in self.browser.run(
            "return [...document.querySelectorAll('svg.time-map .cell')].map((e) => e.getAttribute('fill'))")}
        self.assertFalse(light & dark)
        self.picture("links_dark")

    def test_the_busiest_links_tell_what_they_carry(self):
        data = self.report("links", "run", "--hcom-parallel", "on", "--links", "5")
        links = data["result"]["links"]
        self.assertEqual(len(links), 5)
        self.assertEqual([link["name"] for link in links], [link["name"] for link in data["links"]["links"]])
        self.press("//summary[text()='What the busiest links carry, and for whom']")
        rows = self.rows("#links details:last-of-type")
        self.assertEqual(len(rows), 5)
        for link, row in zip(links, rows, strict=True):
            self.assertIn(f"{link['name']} {link['kind']} {link['from']} {link['to']}", row.text)
            for share in link["shares"]:
                self.assertIn(f"{share['purpose']} {share['share'] * 100:.1f} %", row.text)


if __name__ == "__main__":
    main()
