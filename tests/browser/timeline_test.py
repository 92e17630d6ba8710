#!/usr/bin/env python3
"""The timeline of a training step: people can move in it."""

from report import ReportTest, main
from selenium.webdriver.common.keys import Keys


class TimelineTest(ReportTest):
    # The view of the timeline in nanoseconds, and the middle of a bar in the window.
    def view(self):
        return self.browser.run("const c = document.querySelector('.timeline canvas').dataset; return [+c.from, +c.to]")

    def place(self, x, y):
        """Where a point of the canvas is in the window, after it was brought there."""
        return self.browser.run(
            "const c = document.querySelector('.timeline canvas'); c.scrollIntoView({block: 'center'});"
            "const b = c.getBoundingClientRect(); return [b.left + arguments[0], b.top + arguments[1]];", x, y)

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


if __name__ == "__main__":
    main()
