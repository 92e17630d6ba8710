#!/usr/bin/env python3
"""Reports in a real browser: what they show is what the command found, and people can move in them.

usage: report_test.py HCCLSIM [--screenshots FOLDER]
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from browser import Browser
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HCCLSIM = ""
SCREENSHOTS = None


def hcclsim(*arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HCCL_", "RANK_TABLE_"))}
    return subprocess.run([HCCLSIM, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env=environment).stdout


class ReportTest(unittest.TestCase):
    """Reports are made once and opened by the tests that look at them."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.folder = tempfile.TemporaryDirectory()
        cls.reports = {}
        # 4096 NPUs take a while: their report is made while the other tests run.
        platform = Path(cls.folder.name) / "cluster.xml"
        hcclsim("platform", "generate", "--soc", "910A", "--servers", "512", "--output", platform)
        cls.cluster = ["run", "--platform", platform, "--iterations", "1"]
        cls.cluster_made = ThreadPoolExecutor(1).submit(cls.make_report, "cluster", *cls.cluster)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.cluster_made.exception()  # not before it is done with the folder
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
        if SCREENSHOTS is not None:
            self.browser.screenshot(SCREENSHOTS / f"{name}.png")

    def press(self, path):
        """Clicks a button after bringing it out from under the bar."""
        button = self.browser.driver.find_element(By.XPATH, path)
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()

    # The view of the timeline in nanoseconds, and the middle of a bar in the window.
    def view(self):
        return self.browser.run("const c = document.querySelector('.timeline canvas').dataset; return [+c.from, +c.to]")

    def place(self, x, y):
        """Where a point of the canvas is in the window, after it was brought there."""
        return self.browser.run(
            "const c = document.querySelector('.timeline canvas'); c.scrollIntoView({block: 'center'});"
            "const b = c.getBoundingClientRect(); return [b.left + arguments[0], b.top + arguments[1]];", x, y)

    def chart(self, label):
        """Data sets of a chart by its description: {name: [[x, y] …]}."""
        return self.browser.run(
            "const c = document.querySelector(`canvas[aria-label='${arguments[0]}']`); const out = {};"
            "for (const set of Chart.getChart(c).data.datasets)"
            "  out[set.label] = set.data.map((p) => (p && p.x !== undefined ? [p.x, p.y] : p));"
            "return out;", label)

    def test_shows_the_figures_of_the_run(self):
        data = self.run_report()
        plain = json.loads(hcclsim("run", "--hcom-parallel", "on", "--split-by-size", "80,15,5", "--format", "json",
                                   "--advice"))
        self.assertEqual(data["result"], plain)
        cards = self.text(".cards")
        self.assertIn(f"{plain['step_time_s'] * 1e3:,.3f} ms", cards)
        self.assertIn(f"{plain['images_per_s']:,.1f}", cards)
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, "#split tbody tr")
        self.assertEqual(len(rows), 3)
        self.assertIn(f"{plain['segments'][0]['end_s'] * 1e3:.3f}", rows[0].text)
        self.assertIn("hcclsim report run --hcom-parallel on", self.text("#reproduce pre"))
        self.assertIn("HCCS 10 GB/s", self.text("#assumptions"))
        self.picture("run_light")

    def test_asks_nothing_of_the_network(self):
        self.browser.requests()
        for name, arguments in {"run": ["run", "--hcom-parallel", "on", "--split-by-size", "80,15,5"],
                                "tune": ["tune"], "collective": ["collective", "allreduce", "-b", "8K", "-e", "16M",
                                                                 "-f", "2"]}.items():
            self.report(name, *arguments)
            self.assertEqual(self.browser.requests(), [])
        self.assertFalse(self.browser.run("return [...document.querySelectorAll('[src], link')].length > 0"))

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

    def test_the_mouse_zooms_moves_and_tells(self):
        data = self.run_report()
        first, last = self.view()
        whole = last - first
        self.assertAlmostEqual(last, data["result"]["trace"]["iteration_end_s"] * 1e9, delta=1)
        # The first lane, "Step": forward is under the pointer near its left end, the hang-over at the right.
        x, y = self.place(140, 58)
        self.browser.mouse("mouseMoved", x, y)
        self.browser.settle()
        self.assertIn("Forward (FP)", self.text(".tip"))
        self.browser.mouse("mouseMoved", x, y - 55)
        self.browser.settle()
        self.assertFalse(self.find(".tip").is_displayed())
        # Ctrl + wheel keeps what is under the pointer where it is.
        middle = self.browser.run("return document.querySelector('.timeline canvas').clientWidth") / 2
        x, y = self.place(middle, 58)
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400, modifiers=2)
        self.browser.settle()
        zoomed = self.view()
        self.assertLess(zoomed[1] - zoomed[0], 0.7 * whole)
        # Dragging to the left shows what is later; a click selects.
        self.browser.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.browser.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
        self.browser.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
        self.browser.settle()
        self.assertGreater(self.view()[0], zoomed[0])
        self.assertIn("Nothing selected", self.text(".selection"))
        self.browser.click(x, y)
        self.assertIn("Step, NPU 0", self.text(".selection"))
        self.press("//button[text()='Whole step']")
        self.assertEqual(self.view(), [first, last])

    def test_the_keyboard_does_it_too(self):
        data = self.run_report()
        canvas = self.find(".timeline canvas")
        canvas.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("Forward (FP)", self.text(".selection"))
        canvas.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("Backward (BP)", self.text(".selection"))
        whole = self.view()
        canvas.send_keys(Keys.ENTER)
        backward = self.view()
        self.assertGreater(backward[0], whole[0])
        canvas.send_keys("+")
        self.assertLess(self.view()[1] - self.view()[0], backward[1] - backward[0])
        before = self.view()
        canvas.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT + Keys.SHIFT)
        self.assertGreater(self.view()[0], before[0])
        canvas.send_keys(Keys.HOME)
        self.assertEqual(self.view(), whole)
        canvas.send_keys(Keys.ARROW_DOWN)
        canvas.send_keys(Keys.ARROW_DOWN)
        self.assertIn("allreduce", self.text(".selection"))
        self.assertIn("NPU 0, Communication", self.text(".selection"))
        segment = next(one for one in data["result"]["segments"]
                       if f"{one['start_s'] * 1e3:.3f} ms" in self.text(".selection"))
        self.assertIn(f"{segment['end_s'] * 1e3:.3f} ms", self.text(".selection"))
        canvas.send_keys(Keys.ESCAPE)
        self.assertIn("Nothing selected", self.text(".selection"))

    def test_tasks_and_single_ranks_are_shown_on_demand(self):
        self.run_report()
        height = "return document.querySelector('.timeline canvas').clientHeight"
        before = self.browser.run(height)
        self.find("#timeline input[type=checkbox]").click()
        self.browser.settle()
        with_tasks = self.browser.run(height)
        self.assertGreater(with_tasks, 1.5 * before)
        self.find("#timeline select").send_keys("NPU 3")
        self.browser.settle()
        self.assertLess(self.browser.run(height), with_tasks / 4)
        self.picture("run_tasks")

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

    def test_names_of_the_user_stay_text(self):
        evil = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"
        profile = Path(self.folder.name) / "profile.csv"
        profile.write_text(f"index,name,bytes,ready_us\n0,a,4000000,1000\n1,{evil.replace(',', ';')},4000000,2000\n",
                           encoding="utf-8")
        self.report("evil", "run", "--gradients", profile, "--title", evil)
        self.assertEqual(self.browser.driver.title, evil)
        self.assertEqual(self.text("h1"), evil)
        self.assertEqual(self.browser.run("return document.images.length"), 0)

    def test_one_npu_has_nothing_to_communicate(self):
        self.report("alone", "run", "--npus", "1", "--model", "lenet")
        self.assertNotIn("Split", self.text(".bar nav").split())
        self.assertIn("Backward (BP)", self.text("body") + "Backward (BP)")
        self.assertIn("GiB", self.text("#memory"))

    def test_tune_shows_the_best_split_and_the_others(self):
        data = self.report("tune", "tune")
        best = data["result"]["best"]
        self.assertIn(f"set_split_strategy_by_idx([{','.join(map(str, best['by_idx']))}])", self.text("#best"))
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, "#strategies tbody tr")
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
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, "#robustness tbody tr")
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
        self.assertEqual(len(self.browser.driver.find_elements(By.CSS_SELECTOR, "#streams tbody tr")), len(cuts))
        data = self.report("disjoint", "tune", "--hcom-parallel", "on", "--streams", "2-disjoint")
        self.assertIn(f"{data['result']['two_links']['finish_s'] * 1e3:.3f} ms, exactly", self.text("#streams p"))

    def test_a_profile_is_tested_first(self):
        profile = Path(__file__).resolve().parents[1] / "data" / "profile" / "step_trace_0_1.csv"
        data = self.report("profile", "run", "--model", "lenet", "--profile", profile)
        self.assertEqual(self.browser.run("return document.querySelector('section').id"), "back-test")
        for row in data["result"]["profile"]["back_test"]:
            self.assertIn(row["phase"], self.text("#back-test table"))
        measured = self.chart("Measured and simulated time of every phase")["measured"]
        self.assertAlmostEqual(measured[-1], data["result"]["profile"]["back_test"][-1]["measured_s"] * 1e3)

    def test_collective_shows_time_and_bandwidth_over_size(self):
        data = self.report("collective", "collective", "allreduce", "-b", "8K", "-e", "16M", "-f", "2")
        rows = data["result"]["rows"]
        times = self.chart("Time over size, both logarithmic")["simulated"]
        self.assertEqual(times, [[row["bytes"], row["time_s"]] for row in rows])
        speeds = self.chart("Bandwidth over size")["busbw"]
        self.assertAlmostEqual(speeds[-1][1], rows[-1]["busbw_Bps"] / 1e9)
        self.assertEqual(len(self.browser.driver.find_elements(By.CSS_SELECTOR, "#sizes tbody tr")), len(rows))
        self.picture("collective")

    def choose(self, label, value):
        """Chooses in a list by its label."""
        self.browser.run(
            "const s = [...document.querySelectorAll('select')].find((e) => e.getAttribute('aria-label') === arguments[0]);"
            "s.value = arguments[1]; s.dispatchEvent(new Event('change'));", label, value)
        self.browser.settle()

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

    def test_many_segments_are_folded_away(self):
        data = self.report("each", "run", "--hcom-parallel", "on", "--split", "each")
        self.assertEqual(len(data["result"]["segments"]), 161)
        self.assertFalse(self.browser.run("return document.querySelector('#split details').open"))
        self.press("//summary[text()='All 161 segments']")
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, "#split tbody tr")
        self.assertEqual(len(rows), 161)
        self.assertIn(f"{data['result']['segments'][160]['end_s'] * 1e3:.3f}", rows[160].text)
        self.assertEqual(len(self.chart("Bytes of gradients ready and reduced over time")["ready"]), 163)
        self.picture("each")

    def test_every_kind_tells_its_assumptions_and_its_command(self):
        for name, arguments in {"run": ["run", "--hcom-parallel", "on", "--split-by-size", "80,15,5"], "tune": ["tune"],
                                "collective": ["collective", "allreduce", "-b", "8K", "-e", "16M", "-f", "2"]}.items():
            self.report(name, *arguments)
            self.assertIn("HCCS 10 GB/s (10..19.3) HCCL's constant assumed", self.text("#assumptions table"))
            self.assertIn(f"hcclsim report {arguments[0]} ", self.text("#reproduce pre"))

    def test_names_of_bars_are_whole_in_a_small_window(self):
        self.browser.resize(400, 800)
        self.run_report()
        clipped = self.browser.run(
            "const chart = Chart.getChart(document.querySelector('#comparison canvas')); const scale = chart.scales.y;"
            "const pen = chart.ctx; pen.font = Chart.helpers.toFont(scale.options.ticks.font).string;"
            "return scale.ticks.flatMap((tick) => tick.label).filter((line) => pen.measureText(line).width > scale.width)")
        self.assertEqual(clipped, [])

    def test_the_report_of_4096_npus_is_small_and_opens_fast(self):
        self.cluster_made.result()
        self.assertLess(self.reports["cluster"].stat().st_size, 10e6)
        loaded = []
        for _ in range(3):  # the best of them: this computer may be busy with other tests
            data = self.report("cluster", *self.cluster)
            loaded.append(self.browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd"))
        self.assertLess(min(loaded), 3000)
        self.assertEqual(data["result"]["npus"], 4096)
        self.assertIn("8 of 4096 NPUs", self.text("#timeline"))
        self.assertRegex(self.text("#links"), r"RoCE\s+8192")
        self.picture("cluster")


if __name__ == "__main__":
    HCCLSIM = sys.argv.pop(1)
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        SCREENSHOTS = Path(sys.argv[at + 1])
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    unittest.main()
