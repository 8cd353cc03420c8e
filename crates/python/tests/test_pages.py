"""Runs the notebook and every Python block of the documentation. CAPTURES names a directory of captures."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import nbclient
import nbformat

DOCS = Path(__file__).parents[3] / "docs"
CAPTURE = Path(os.environ["CAPTURES"]) / "conn-size.pcap.gz"


class Pages(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = directory.name
        shutil.copy(CAPTURE, Path(self.home) / "capture.pcap.gz")

    def test_the_notebook_runs(self) -> None:
        notebook = nbformat.read(DOCS / "python.ipynb", as_version=4)
        client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": self.home}})
        client.execute()

    def test_each_python_block_runs_after_the_ones_before(self) -> None:
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.home)
        for page in (DOCS / "python.md", Path(__file__).parents[1] / "README.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
            self.assertTrue(blocks)
            names: dict[str, object] = {"__name__": "page"}
            for block in blocks:
                exec(compile(block, page.name, "exec"), names)


if __name__ == "__main__":
    unittest.main()
