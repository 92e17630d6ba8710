#!/usr/bin/env python3
"""The pages of `tune`: the best split, and from which speed of links on compression pays."""

from report import ReportTest, main
from selenium.webdriver.common.keys import Keys


class TunePageTest(ReportTest):
    def test_tune_shows_the_best_split_and_the_others(self):
        data = self.report("tune", "tune")
        best = data["result"]["best"]
        self.assertIn(f"set_split_strategy_by_idx([{','.join(map(str, best['by_idx']))}])", self.text("#best"))
        rows = self.rows("#strategies")
        self.assertEqual(len(rows), len(data["result"]["strategies"]) + len(data["result"]["by_segments"]))
        # Bars are what a strategy misses: steps that differ by 0.1 % would look alike.
        bars = self.chart("Step: how much later than the bound, for every strategy")
        self.assertAlmostEqual(bars["by the cost"][-1], (best["step_s"] - best["bound_s"]) * 1e3)
        self.assertAlmostEqual(bars["simulated"][0], (data["result"]["strategies"][0]["simulated_step_s"] - best["bound_s"]) * 1e3)
        curve = self.chart("Step over the number of segments")
        self.assertEqual([x for x, _ in curve["simulated"]], list(range(1, 9)))
        self.find(".timeline canvas").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
        self.assertRegex(self.text(".selection"), r"AR\d \[\d+,\d+\]")
        self.picture("tune")

    def test_tune_shows_how_far_the_split_stays_the_best(self):
        data = self.report("robust", "tune", "--jitter", "0.03", "--bandwidth-range", "0.5:2")
        rows = self.rows("#robustness")
        self.assertEqual(len(rows), len(data["result"]["bandwidth_range"]["intervals"]))
        self.assertIn(f"{data['result']['jitter']['optimal']} of {data['result']['jitter']['draws']} draws",
                      self.text("#robustness"))

    def test_fusion_index_is_told_in_parameter_order(self):
        for kind, place, text in (("run", "#comparison", "fusion index "), ("tune", "#best", "fusion_config=[")):
            self.report(f"mindspore_{kind}", kind, "--framework", "mindspore", "--fusion-index", "85,160")
            self.assertIn(text, self.browser.run(f"return document.querySelector('{place}').textContent"))

    def test_tune_shows_two_streams(self):
        data = self.report("shared", "tune", "--hcom-parallel", "on", "--streams", "2-shared")
        cuts = data["result"]["shared_link"]["by_idx"]
        self.assertIn("Two streams on one link", self.text("#streams h2"))
        self.assertEqual(len(self.rows("#streams")), len(cuts))
        data = self.report("disjoint", "tune", "--hcom-parallel", "on", "--streams", "2-disjoint")
        self.assertIn(f"{data['result']['two_links']['finish_s'] * 1e3:.3f} ms, exactly", self.text("#streams p"))

    def test_compression_shows_every_speed_of_the_links(self):
        data = self.report("compression", "tune", "--compress", "topk")
        result = data["result"]
        self.assertEqual(len(self.rows("#trials")), len(result["trials"]))
        sets = self.chart("Step over the speed of all links, both logarithmic")
        self.assertEqual(len(sets), 2)
        for points in sets.values():
            self.assertEqual(len(points), len(result["trials"]))
        cards = self.text(".cards")
        self.assertIn(f"{result['plain_step_s'] * 1e3:,.3f}", cards)
        self.assertIn(f"{result['compressed_step_s'] * 1e3:,.3f}", cards)
        self.assertIn("hcclsim report tune --compress topk", self.text("#reproduce pre"))
        self.picture("compression")

    def test_compression_names_the_speed_at_which_it_breaks_even(self):
        data = self.report("compression", "tune", "--compress", "topk")
        rows = [row.text for row in self.rows("#break-even")]
        self.assertEqual(len(rows), len(data["result"]["break_even"]))
        for one, row in zip(data["result"]["break_even"], rows, strict=True):
            self.assertIn(one["links"], row)
            # Where it pays or loses everywhere, that is so within what was tried.
            self.assertEqual("from × 0.01563 to × 64" in row, one["at"] is None, row)

    def test_axes_of_compression_have_labels(self):
        self.report("compression", "tune", "--compress", "topk")
        for axis in ("x", "y"):
            ticks = self.browser.run(
                "const c = document.querySelector('#sweep canvas');"
                "return Chart.getChart(c).scales[arguments[0]].ticks.map((tick) => tick.label);", axis)
            self.assertGreaterEqual(len([label for label in ticks if label]), 3, ticks)


if __name__ == "__main__":
    main()
