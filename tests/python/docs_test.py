"""The examples of docs/python.md run, one after another in one session, as a reader would type them."""

import contextlib
import io
import re
import unittest
from pathlib import Path

import hcclsim

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


class Examples(unittest.TestCase):
    def test_all_of_them(self):
        hcclsim.reset()
        self.addCleanup(hcclsim.reset)
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 3)
        session = {}
        for block in blocks:
            with self.subTest(block=block), contextlib.redirect_stdout(io.StringIO()):
                exec(block, session)


if __name__ == "__main__":
    unittest.main()
