"""The notebook, executed from its first to its last cell."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "python" / "notebooks"


class Notebooks(unittest.TestCase):
    def test_all_cells_run(self):
        for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
            with self.subTest(notebook=notebook.name), tempfile.TemporaryDirectory() as folder:
                words = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", folder, notebook]
                home = {**os.environ, "HOME": folder, "JUPYTER_PLATFORM_DIRS": "1"}
                done = subprocess.run(words, env=home, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                cells = json.loads(Path(folder, notebook.name).read_text(encoding="utf-8"))["cells"]
                printed = [cell for cell in cells if cell["cell_type"] == "code" and cell["outputs"]]
                self.assertGreaterEqual(len(printed), 5)

    def test_stored_without_outputs(self):
        for notebook in NOTEBOOKS.glob("*.ipynb"):
            for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
                self.assertFalse(cell.get("outputs"), notebook.name)


if __name__ == "__main__":
    unittest.main()
