"""What `cmake --install` leaves: the command works from its new place, a program finds the library, shells complete.

install_test.py BUILD-FOLDER
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop()).resolve()
HERE = Path(__file__).parent


def output_of(*words, **keywords):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="hcclsim-install-")
        cls.prefix = Path(cls.folder.name, "usr")
        output_of("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.command = cls.prefix / "bin" / "hcclsim"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def step_time(self):
        words = ["run", "--model=lenet", "--batch=8", "--platform=atlas800t-a2", "--uncertainty=off", "--format=json"]
        return json.loads(output_of(self.command, *words))["step_time_s"]

    def test_the_doctor(self):
        parts = {part["name"]: part for part in json.loads(output_of(self.command, "doctor", "--format=json"))["parts"]}
        self.assertTrue(all(part["works"] for part in parts.values() if part["needed"]))
        self.assertTrue(parts["clients"]["works"])
        library = next(self.prefix.glob("lib*/**/libhccl.so"))
        away = library.with_suffix(".away")
        library.rename(away)
        self.addCleanup(away.rename, library)
        parts = {part["name"]: part for part in json.loads(output_of(self.command, "doctor", "--format=json"))["parts"]}
        self.assertFalse(parts["clients"]["works"])
        self.assertIn("libhccl.so is neither where", parts["clients"]["remedy"])

    def test_scripts_are_read(self):
        self.assertTrue(Path(self.prefix, "share/hcclsim/script_reader/__main__.py").is_file())
        script = Path(self.folder.name, "train.py")
        script.write_text("cut = [80, 20]\nset_split_strategy_by_size(cut)\n", encoding="utf-8")
        told = output_of(self.command, "script", script, "--model=lenet", "--npus=2")
        self.assertIn("hcclsim run --split-by-size=80,20 --model=lenet --npus=2", told)

    def test_a_program_finds_the_library(self):
        build = Path(self.folder.name, "consumer")
        configure = ["-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug"]
        output_of("cmake", "-G", "Ninja", *configure)
        output_of("cmake", "--build", build)
        self.assertAlmostEqual(float(output_of(build / "step_time")), self.step_time(), delta=1e-9)

    def test_pkg_config_builds_a_program(self):
        (file,) = self.prefix.glob("lib*/**/hcclsim.pc")
        flags = output_of("pkg-config", "--cflags", "--libs", "--static", "hcclsim", env={**os.environ, "PKG_CONFIG_PATH": file.parent})
        program = Path(self.folder.name, "by_pkg_config")
        output_of("g++", "-O0", "-o", program, HERE / "consumer" / "step_time.cpp", *flags.split())
        self.assertAlmostEqual(float(output_of(program)), self.step_time(), delta=1e-9)

    def test_pkg_config_names_what_is_there(self):
        (file,) = self.prefix.glob("lib*/**/hcclsim.pc")
        text = file.read_text(encoding="utf-8")
        for word in text.split("Libs:")[1].split():
            if word.startswith("-lhcclsim"):
                self.assertTrue(list(self.prefix.glob(f"lib*/**/lib{word[2:]}.a")), word)

    def test_programs_for_hccl(self):
        """Their headers and libraries are the installed ones, by the command and by pkg-config."""
        (folder,) = (file.parent for file in self.prefix.glob("lib*/**/hcclsim-clients.pc"))
        settings = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
        example = HERE.parents[1] / "examples/clients/1_allreduce"
        asked = ([self.command, "exec", "--flags"], ["pkg-config", "--cflags", "--libs", "hcclsim-clients"])
        for words in asked if shutil.which("pkg-config") else asked[:1]:
            flags = output_of(*words, env=settings).split()
            for word in flags:
                if word.startswith(("-I", "-L")):
                    self.assertTrue(Path(word[2:]).resolve().is_relative_to(self.prefix.resolve()), word)
            program = Path(self.folder.name, "allreduce")
            output_of("g++", "-o", program, f"{example}.cpp", *flags)
            said = output_of(self.command, "exec", "--platform", "atlas800t-a2", "--", program)
            self.assertEqual(said, Path(f"{example}.txt").read_text(encoding="utf-8"))

    def test_a_program_for_hccl_by_cmake(self):
        build = Path(self.folder.name, "client")
        prefix = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        output_of("cmake", "-G", "Ninja", "-S", HERE / "client", "-B", build, prefix)
        output_of("cmake", "--build", build)
        said = output_of(self.command, "exec", "--platform", "atlas800t-a2", "--", build / "allreduce")
        self.assertEqual(said, Path(HERE.parents[1], "examples/clients/1_allreduce.txt").read_text(encoding="utf-8"))

    def test_manuals(self):
        pages = {page.name for page in self.prefix.glob("share/man/man1/*.1")}
        self.assertLessEqual({"hcclsim.1", "hcclsim-run.1", "hcclsim-schedule-check.1"}, pages)
        text = Path(self.prefix, "share/man/man1/hcclsim-run.1").read_text(encoding="utf-8")
        self.assertIn("\\fB\\-\\-hcom\\-parallel\\fR", text)
        if shutil.which("man"):
            for page in self.prefix.glob("share/man/man1/*.1"):
                shown = subprocess.run(
                    ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True, check=True
                )
                self.assertEqual(shown.stderr, "", page)
        self.assertRegex(text, r"(?s)\.SH EXAMPLES\n\.nf\nhcclsim run .*\.fi\n\.SH EXIT STATUS")

    def completed(self, line):
        script = Path(self.prefix, "share/bash-completion/completions/hcclsim")
        program = (
            f"source {script}; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _hcclsim; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        path = {**os.environ, "PATH": f"{self.command.parent}:{os.environ['PATH']}"}
        return output_of("bash", "-c", program, env=path).split()

    def test_bash_completes(self):
        self.assertEqual(self.completed("hcclsim ru"), ["run"])
        self.assertIn("check", self.completed("hcclsim schedule ''"))
        self.assertEqual(self.completed("hcclsim run --hcom-p"), ["--hcom-parallel"])
        self.assertEqual(self.completed("hcclsim run --hcom-parallel ''"), ["off", "on"])
        self.assertEqual(self.completed("hcclsim run --model resnet5"), ["resnet50"])
        self.assertIn("atlas800t-a2", self.completed("hcclsim run --batch 8 --platform atlas800t"))
        self.assertEqual(self.completed("hcclsim completion z"), ["zsh"])
        self.assertEqual(self.completed("hcclsim run --no-such"), [])
        self.assertEqual(self.completed("hcclsim models show resnet5"), ["resnet50"])
        self.assertEqual(self.completed("hcclsim collective allr"), ["allreduce"])
        self.assertEqual(self.completed("hcclsim schedule generate broad"), ["broadcast"])
        self.assertEqual(self.completed("hcclsim sweep run points.db col"), ["collective"])
        self.assertEqual(self.completed("hcclsim sweep run points.db run --model resnet5"), ["resnet50"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
