"""Classes of errors: there before one is raised, of kind and status, and typed."""

import ast
import pickle
import tempfile
import unittest
from pathlib import Path

import hcclsim
from hcclsim import errors

KINDS = Path(__file__).parents[2] / "docs" / "error_kinds.txt"


def documented_kinds():
    lines = KINDS.read_text(encoding="utf-8").splitlines()
    return [line.partition(":")[0] for line in lines if line and not line.startswith("#")]


class Classes(unittest.TestCase):
    def test_every_documented_kind_has_one(self):
        kinds = documented_kinds()
        self.assertIn("deadlock", kinds)
        for kind in kinds:
            with self.subTest(kind=kind):
                raised = errors.of_kind(kind, 2, "text")
                self.assertEqual((raised.kind, raised.status, str(raised)), (kind, 2, "text"))
                if not kind.endswith("-error") and kind != "internal":
                    self.assertIsInstance(raised, getattr(errors, errors.class_name(kind)))

    def test_an_error_is_of_its_kind_and_of_its_status(self):
        for status, of_status in ((1, hcclsim.CheckFailed), (2, hcclsim.BadInput), (3, hcclsim.SimulatedFailure), (4, hcclsim.InternalError)):
            with self.subTest(status=status):
                raised = errors.of_kind("collective", status, "text")
                self.assertIsInstance(raised, errors.CollectiveError)
                self.assertIsInstance(raised, of_status)
                self.assertIs(type(raised), type(errors.of_kind("collective", status, "other")))
                again = pickle.loads(pickle.dumps(raised))
                self.assertEqual((type(again), again.kind, again.status, str(again)), (type(raised), "collective", status, "text"))

    def test_a_kind_that_is_not_known_has_the_class_of_its_status(self):
        self.assertIs(errors.class_of("of-tomorrow", 3), hcclsim.SimulatedFailure)
        with self.assertRaises(AttributeError):
            errors.OfTomorrowError

    def test_they_are_caught_by_name(self):
        with self.assertRaises(errors.ModelError):
            hcclsim.run(model="no such network")
        with self.assertRaises(errors.TimeoutError) as caught:
            hcclsim.run(model="lenet", fault=["link[hccs-0-1*].bandwidth=0 at 0us"])
        self.assertIsInstance(caught.exception, hcclsim.SimulatedFailure)

    def test_stubs_have_them(self):
        stub = Path(errors.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
        names = {node.name for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)}
        self.assertLessEqual({"Error", "BadInput", "DeadlockError", "HbmError", "PlatformError", "ContextKeyError"}, names)


class Words(unittest.TestCase):
    def test_they_are_keywords(self):
        with self.assertRaises(hcclsim.BadInput) as raised:
            hcclsim.run(chunks=2)
        self.assertEqual(str(raised.exception), "chunks is of a pipeline: it needs stages of 2 or more")
        with self.assertRaisesRegex(TypeError, "did you mean global_batch"):
            hcclsim.search(batch=4)
        with self.assertRaisesRegex(TypeError, "did you mean model"):
            hcclsim.run(modle="lenet")
        with self.assertRaisesRegex(TypeError, "^pp and stages are the same; give one of them$"):
            hcclsim.run(pp=2, stages=1)
        with self.assertRaisesRegex(hcclsim.BadInput, r"from 1 to 65536\nSee help\(hcclsim.run\)\.$"):
            hcclsim.run(batch=-3)
        with self.assertRaisesRegex(hcclsim.BadInput, r"\nSee help\(hcclsim.schedule.execute\)\.$"):
            hcclsim.schedule.execute("x", seed=-3)
        with tempfile.TemporaryDirectory() as folder:
            hcclsim.sweep.run(Path(folder, "s.db"), "run", {"model": "lenet"})
            with self.assertRaisesRegex(hcclsim.BadInput, r"^by: 'x' is no figure[^-]*See help\(hcclsim.sweep.best\)\.$"):
                hcclsim.sweep.best(Path(folder, "s.db"), by="x")
        with self.assertRaisesRegex(hcclsim.CheckFailed, "; hcclsim search --format csv says why$"):
            hcclsim.search(model="gpt3-175b", npus=2)

    def test_texts_of_the_user_stay_as_they_are(self):
        for model in ("--stages", "a --stages b"):
            with self.subTest(model=model), self.assertRaisesRegex(hcclsim.BadInput, f"'{model}'"):
                hcclsim.run(model=model)


if __name__ == "__main__":
    unittest.main()
