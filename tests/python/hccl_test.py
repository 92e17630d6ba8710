"""The package hccl: what its functions accept, refuse and set, and that runs use it."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy

import hcclsim
from hccl.manage import api as manage
from hccl.split.api import set_split_strategy_by_idx, set_split_strategy_by_size


class Forgetting(unittest.TestCase):
    def setUp(self):
        hcclsim.reset()
        self.addCleanup(hcclsim.reset)


class Splits(Forgetting):
    def test_segments_of_160_gradients(self):
        set_split_strategy_by_idx([20, 100, 159])
        result = hcclsim.run(model="resnet50", fc_bias=False, uncertainty=False)
        self.assertEqual([(segment.first, segment.last) for segment in result.segments], [(0, 20), (21, 100), (101, 159)])

    def test_161_gradients_are_refused(self):
        set_split_strategy_by_idx([20, 100, 159])
        with self.assertRaises(hcclsim.BadInput) as raised:
            hcclsim.run(model="resnet50")
        self.assertEqual(raised.exception.kind, "split")
        self.assertIn("last index must be 160 (161 gradients), got 159", str(raised.exception))

    def test_in_a_group(self):
        with self.assertRaisesRegex(RuntimeError, "'group' does not exist"):
            set_split_strategy_by_idx([20, 100, 159], "group")
        manage.create_group("group", 8, list(range(8)))
        set_split_strategy_by_idx([20, 100, 159], "group")
        result = hcclsim.run(model="resnet50", fc_bias=False, uncertainty=False)
        self.assertEqual(len(result.segments), 3)

    def test_the_caller_must_be_in_the_group(self):
        manage.create_group("others", 4, [4, 5, 6, 7])
        with self.assertRaisesRegex(RuntimeError, "rank 0 is not in the group 'others'"):
            set_split_strategy_by_size([60, 20, 20], "others")
        hcclsim.init(rank=5)
        set_split_strategy_by_size([60, 20, 20], "others")

    def test_sizes_count_before_indices_and_the_first_setting_stays(self):
        set_split_strategy_by_idx([80, 160])
        set_split_strategy_by_size([60, 20, 20])
        set_split_strategy_by_size([50, 50])
        result = hcclsim.run(model="resnet50", uncertainty=False)
        self.assertEqual(len(result.segments), 3)
        plain = hcclsim.run(model="resnet50", uncertainty=False, split_by_size=[60, 20, 20], use_settings=False)
        self.assertEqual(result.step_time_s, plain.step_time_s)

    def test_any_split_of_a_run_counts_before_settings(self):
        set_split_strategy_by_size([60, 20, 20])
        set_split_strategy_by_idx([20, 160])
        for keywords, segments in (
            ({"split": "none"}, 1),
            ({"split_by_idx": [1, 2, 3, 160]}, 4),
            ({"split_by_size": [50, 50]}, 2),
        ):
            with self.subTest(keywords=keywords):
                result = hcclsim.run(model="resnet50", uncertainty=False, **keywords)
                self.assertEqual((len(result.segments), result.notes), (segments, []))

    def test_keywords_count_before_settings(self):
        set_split_strategy_by_size([60, 20, 20])
        self.assertEqual(len(hcclsim.run(model="lenet", split_by_size=[50, 50]).segments), 2)

    def test_what_is_refused(self):
        for values, error in (
            ((1, 2), TypeError),
            ("1,2", TypeError),
            ([], ValueError),
            ([1, 1], ValueError),
            ([2, 1], ValueError),
            ([-1, 4], ValueError),
            ([2**32], ValueError),
            ([1.0], TypeError),
            ([True], TypeError),
            (list(range(9)), ValueError),
        ):
            with self.subTest(values=values), self.assertRaises(error):
                set_split_strategy_by_idx(values)
        for values, error in (
            ({60, 40}, TypeError),
            ([], ValueError),
            (["60", "40"], TypeError),
            ([60, 50], ValueError),
            ([-10, 110], ValueError),
            ([float("nan"), 100], ValueError),
            ([12.5] * 9, ValueError),
        ):
            with self.subTest(values=values), self.assertRaises(error):
                set_split_strategy_by_size(values)
        for group, error in ((5, TypeError), ("", ValueError), ("g" * 128, ValueError), ("none", RuntimeError)):
            with self.subTest(group=group), self.assertRaises(error):
                set_split_strategy_by_idx([160], group)


class Groups(Forgetting):
    def test_ranks_and_places(self):
        hcclsim.init(platform="atlas800t-a2-x2", rank=9)
        manage.create_group("mixed", 4, [9, 1, 8, 15])
        self.assertEqual(manage.get_rank_size(), 16)
        self.assertEqual(manage.get_rank_size("mixed"), 4)
        self.assertEqual(manage.get_rank_id(), 9)
        self.assertEqual(manage.get_rank_id("mixed"), 0)
        self.assertEqual(manage.get_local_rank_size(), 8)
        self.assertEqual(manage.get_local_rank_size("mixed"), 3)
        self.assertEqual(manage.get_local_rank_id(), 1)
        self.assertEqual(manage.get_local_rank_id("mixed"), 0)
        self.assertEqual(manage.get_world_rank_from_group_rank("mixed", 3), 15)
        self.assertEqual(manage.get_group_rank_from_world_rank(8, "mixed"), 2)
        manage.destroy_group("mixed")
        with self.assertRaises(RuntimeError):
            manage.get_rank_size("mixed")

    def test_the_environment_says_how_many(self):
        with mock.patch.dict(os.environ, {"RANK_SIZE": "4", "RANK_ID": "3"}):
            self.assertEqual((manage.get_rank_size(), manage.get_rank_id()), (4, 3))

    def test_a_world_that_is_none(self):
        hcclsim.init(platform="atlas800t-a2", npus=4, rank=2)
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder, "table.json")
            wrong.write_text('{"server_list": [{"device": [{"rank_id": "x"}]}]}', encoding="utf-8")
            for arguments, error in (
                ({"npus": "4"}, TypeError),
                ({"npus": True}, TypeError),
                ({"npus": 2.0}, TypeError),
                ({"rank": "0"}, TypeError),
                ({"npus": 0}, ValueError),
                ({"npus": 9}, ValueError),
                ({"rank": -1}, ValueError),
                ({"platform": "nowhere"}, hcclsim.BadInput),
                ({"rank_table": Path(folder, "none.json")}, hcclsim.BadInput),
                ({"rank_table": wrong}, hcclsim.BadInput),
            ):
                with self.subTest(arguments=arguments), self.assertRaises(error):
                    hcclsim.init(**arguments)
                self.assertEqual((manage.get_rank_size(), manage.get_rank_id()), (4, 2))  # as before
        self.assertEqual(hcclsim.init(npus=numpy.int64(2)).size, 2)
        with mock.patch.dict(os.environ, {"RANK_ID": "x"}), self.assertRaisesRegex(ValueError, "RANK_ID in the environment"):
            manage.get_rank_id()

    def test_what_is_refused(self):
        for arguments, error in (
            ((3, 1, [0]), TypeError),
            (("", 1, [0]), ValueError),
            (("g" * 128, 1, [0]), ValueError),
            (("hccl_world_group", 8, list(range(8))), ValueError),
            (("g", "1", [0]), TypeError),
            (("g", 1, (0,)), TypeError),
            (("g", 1, [0.0]), TypeError),
            (("g", 2, [0]), ValueError),
            (("g", 0, []), ValueError),
            (("g", 2, [0, 0]), ValueError),
            (("g", 1, [8]), ValueError),
            (("g", 1, [-1]), ValueError),
            (("g", 3, [0, 1, 2]), RuntimeError),  # 910A: 1, 2, 4 or 8 of a server
            (("g", 2, [3, 4]), RuntimeError),  # of both halves
        ):
            with self.subTest(arguments=arguments), self.assertRaises(error):
                manage.create_group(*arguments)
        manage.create_group("g" * 127, 1, [0])
        with self.assertRaises(RuntimeError):
            manage.create_group("g" * 127, 1, [0])

    def test_other_chips_form_any_group(self):
        hcclsim.init(platform="atlas800t-a2")
        manage.create_group("three", 3, [0, 4, 6])

    def test_servers_of_910a_have_the_same_places(self):
        hcclsim.init(platform="atlas800-9000-x4")
        manage.create_group("same", 4, [0, 1, 8, 9])
        with self.assertRaisesRegex(RuntimeError, "other places"):
            manage.create_group("other", 4, [0, 1, 10, 11])


if __name__ == "__main__":
    unittest.main()
