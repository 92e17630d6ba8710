#!/usr/bin/env python3
"""The page of a collective."""

from report import ReportTest, main


class CollectivePageTest(ReportTest):
    def test_collective_shows_time_and_bandwidth_over_size(self):
        data = self.report("collective", "collective", "allreduce", "-b", "8K", "-e", "16M", "-f", "2")
        rows = data["result"]["rows"]
        times = self.chart("Time over size, both logarithmic")["simulated"]
        self.assertEqual(times, [[row["bytes"], row["time_s"]] for row in rows])
        speeds = self.chart("Bandwidth over size")["busbw"]
        self.assertAlmostEqual(speeds[-1][1], rows[-1]["busbw_Bps"] / 1e9)
        self.assertEqual(len(self.rows("#sizes")), len(rows))
        self.picture("collective")

    def test_collective_lists_its_busiest_links(self):
        data = self.report("links", "collective", "allreduce", "--size", "16M", "--links", "5")
        links = data["result"]["links"]
        rows = self.rows("#links")
        self.assertEqual(len(rows), 5)
        for link, row in zip(links, rows, strict=True):
            self.assertIn(link["name"], row.text)
            self.assertIn("allreduce 100.0 %", row.text)


if __name__ == "__main__":
    main()
