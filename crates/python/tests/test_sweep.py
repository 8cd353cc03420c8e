"""Sweeps of a scenario on this machine and on Ray. HEADEND names the command."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import headend
from headend import sweep

HEADEND = os.environ["HEADEND"]
HAS_RAY = importlib.util.find_spec("ray") is not None

SCENARIO = """
run_s = 20
stop_when_quiet_s = 2
[topology]
kind = "random"
routers = 12
[links]
delay_ms = 20
[[event]]
kind = "announce"
at_s = 1
router = "random:stub"
"""

VALUES: Any = {"links.delay_ms": [10, 80], "routers.ipv6": [False, True]}


class Base(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = Path(directory.name)
        self.scenario = self.home / "small.toml"
        self.scenario.write_text(SCENARIO)


class OnThisMachine(Base):
    def test_a_row_has_what_the_command_prints(self) -> None:
        table = headend.emulate(self.scenario, range(3, 5), VALUES, program=HEADEND)
        rows = table.to_pylist()
        given = [(row["links.delay_ms"], row["routers.ipv6"], row["seed"]) for row in rows]
        expected = [(delay, v6, seed) for delay in (10, 80) for v6 in (False, True) for seed in (3, 4)]
        self.assertEqual(given, expected)
        # The last one by hand.
        by_hand = self.home / "by-hand.toml"
        text = SCENARIO.replace("delay_ms = 20", "delay_ms = 80\n[routers]\nipv6 = true")
        by_hand.write_text("seed = 4" + text)
        alone = headend.emulate(by_hand, [4], program=HEADEND)
        self.assertEqual(alone.to_pylist()[0], {name: rows[-1][name] for name in alone.column_names})

    def test_the_number_of_workers_changes_nothing(self) -> None:
        one = headend.emulate(self.scenario, range(4), VALUES, program=HEADEND, workers=1)
        three = headend.emulate(self.scenario, range(4), VALUES, program=HEADEND, workers=3)
        self.assertTrue(one.equals(three))

    def test_files_are_kept(self) -> None:
        keep = self.home / "kept"
        headend.emulate(self.scenario, [7], {"links.delay_ms": [5]}, program=HEADEND, keep=keep)
        self.assertTrue((keep / "seed=7,links.delay_ms=5" / "results.json").is_file())

    def test_a_run_that_a_signal_ended_is_repeated(self) -> None:
        once = self.home / "once"
        program = self.home / "headend"
        program.write_text(f'#!/bin/sh\n[ -e {once} ] && exec {HEADEND} "$@"\ntouch {once}\nkill -9 $$\n')
        program.chmod(0o755)
        made = headend.emulate(self.scenario, [1], program=program, workers=1)
        self.assertTrue(made.equals(headend.emulate(self.scenario, [1], program=HEADEND)))

    def test_values_become_toml(self) -> None:
        given: list[sweep.Value] = [True, 3, 2.5, 'a "b"\n', [1, "x"]]
        found = [sweep.toml(value) for value in given]
        self.assertEqual(found, ["true", "3", "2.5", '"a \\"b\\"\\n"', '[1, "x"]'])

    def test_wrong_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "seeds: there is none"):
            headend.emulate(self.scenario, [])
        with self.assertRaisesRegex(ValueError, "links.delay_ms has no value"):
            headend.emulate(self.scenario, [1], {"links.delay_ms": []})
        with self.assertRaisesRegex(FileNotFoundError, "missing.toml is no file"):
            headend.emulate(self.home / "missing.toml")
        with self.assertRaisesRegex(FileNotFoundError, "no-headend is not found"):
            headend.emulate(self.scenario, program="no-headend")
        with self.assertRaisesRegex(RuntimeError, "links.delay: unknown key"):
            headend.emulate(self.scenario, [1], {"links.delay": [1]}, program=HEADEND)


@unittest.skipUnless(HAS_RAY, "Ray is not installed")
class OnRay(Base):
    def test_a_cluster_gives_what_this_machine_gives(self) -> None:
        from headend import ray

        driver: Any = ray
        cluster = driver.Cluster(num_cpus=2, log_to_driver=False, logging_level="ERROR")
        self.addCleanup(driver.ray.shutdown)
        made = driver.emulate(self.scenario, range(3), VALUES, program=HEADEND, cluster=cluster)
        self.assertTrue(made.equals(headend.emulate(self.scenario, range(3), VALUES, program=HEADEND)))


if __name__ == "__main__":
    unittest.main()
