"""Contexts of MindSpore and hooks of PyTorch: exceptions, defaults, and what runs make of them."""

import pickle
import unittest

import hcclsim


class Forgetting(unittest.TestCase):
    def setUp(self):
        hcclsim.reset()
        self.addCleanup(hcclsim.reset)


class AutoParallel(Forgetting):
    def test_defaults(self):
        for key, value in (
            ("parallel_mode", "stand_alone"),
            ("device_num", 1),
            ("gradients_mean", False),
            ("pipeline_stages", 1),
            ("search_mode", "recursive_programming"),
            ("dataset_strategy", "data_parallel"),
        ):
            self.assertEqual(hcclsim.get_auto_parallel_context(key), value, key)

    def test_set_get_reset(self):
        hcclsim.set_auto_parallel_context(
            parallel_mode=hcclsim.ParallelMode.SEMI_AUTO_PARALLEL, dataset_strategy=((1, 8), (1, 8)), device_num=8
        )
        self.assertEqual(hcclsim.get_auto_parallel_context("dataset_strategy"), ((1, 8), (1, 8)))
        hcclsim.reset_auto_parallel_context()
        self.assertEqual(hcclsim.get_auto_parallel_context("parallel_mode"), "stand_alone")

    def test_exceptions(self):
        for options, error in (
            ({"no_such": 1}, ValueError),
            ({"device_num": 0}, ValueError),
            ({"device_num": 4097}, ValueError),
            ({"device_num": 10**30}, ValueError),
            ({"device_num": "8"}, TypeError),
            ({"device_num": object()}, TypeError),
            ({"parallel_mode": "parallel"}, ValueError),
            ({"gradients_mean": 1}, TypeError),
            ({"pipeline_stages": True}, TypeError),
            ({"pipeline_stages": 0}, ValueError),
            ({"comm_fusion": {"allreduce": {"mode": "size"}}}, KeyError),
            ({"comm_fusion": {"alltoall": {"mode": "auto", "config": None}}}, KeyError),
            ({"all_reduce_fusion_config": (1, 2)}, TypeError),
        ):
            with self.subTest(options=options), self.assertRaises(error) as raised:
                hcclsim.set_auto_parallel_context(**options)
            self.assertIsInstance(raised.exception, hcclsim.BadInput)
        with self.assertRaises(ValueError):
            hcclsim.get_auto_parallel_context("no_such")

    def test_what_comes_before_the_wrong_one_stays(self):
        with self.assertRaises(ValueError):
            hcclsim.set_auto_parallel_context(device_num=8, global_rank=-1)
        self.assertEqual(hcclsim.get_auto_parallel_context("device_num"), 8)

    def test_runs_use_it(self):
        hcclsim.set_auto_parallel_context(parallel_mode="data_parallel", device_num=4, gradients_mean=True)
        result = hcclsim.run(model="lenet")
        self.assertEqual((result.npus, result.framework), (4, "mindspore"))
        hcclsim.set_auto_parallel_context(comm_fusion={"allreduce": {"mode": "index", "config": [3, 9]}})
        self.assertEqual(len(hcclsim.run(model="lenet").segments), 2)
        self.assertEqual(len(hcclsim.run(model="lenet", use_settings=False, npus=4).segments), 2)

    def test_every_option_can_be_run(self):
        for options, keywords in (
            (
                {"enable_parallel_optimizer": True, "parallel_optimizer_config": {"parallel_optimizer_threshold": 24}},
                {"optimizer_parallel": "on:threshold=24"},
            ),
            (
                {"enable_parallel_optimizer": True, "parallel_optimizer_config": {"optimizer_weight_shard_size": 4}},
                {"optimizer_parallel": "on:shard=4"},
            ),
        ):
            with self.subTest(options=options):
                hcclsim.reset()
                hcclsim.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **options)
                result = hcclsim.run(model="lenet", uncertainty=False)
                hcclsim.reset()
                hcclsim.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
                self.assertEqual(result.step_time_s, hcclsim.run(model="lenet", uncertainty=False, **keywords).step_time_s)

    def test_keywords_count_before_the_context(self):
        hcclsim.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", device_num=8, global_rank=3, pipeline_stages=2, gradients_mean=True
        )
        for keywords, found in (
            ({}, (8, 3, 2)),
            ({"npus": 4}, (4, 3, 2)),
            ({"device_num": 4}, (4, 3, 2)),
            ({"rank": 1}, (8, 1, 2)),
            ({"stages": 4}, (8, 3, 4)),
            ({"pipeline_stages": 4}, (8, 3, 4)),
            ({"gradients_mean": False}, (8, 3, 2)),
        ):
            with self.subTest(keywords=keywords):
                result = hcclsim.run(model="resnet18", micro_batches=4, uncertainty=False, **keywords)
                self.assertEqual((result.npus, result.rank, len(result.stages)), found)
        with self.assertRaisesRegex(hcclsim.BadInput, "context.py"):
            hcclsim.run(model="resnet18", context="context.py")  # a file of its own

    def test_names_of_the_wrong_type(self):
        for call in (lambda: hcclsim.get_auto_parallel_context(3), lambda: hcclsim.set_context(device_target=3)):
            with self.assertRaisesRegex(TypeError, "must be str, not int"):
                call()

    def test_set_context(self):
        with self.assertWarnsRegex(UserWarning, "device_id has no effect"):
            hcclsim.set_context(mode=hcclsim.PYNATIVE_MODE, device_target="GPU", device_id=3)
        hcclsim.set_context(mode=hcclsim.GRAPH_MODE)
        self.assertEqual(hcclsim.settings.current.context.device_target, "GPU")  # what is not given stays

    def test_a_pipeline(self):
        hcclsim.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2, device_num=8)
        result = hcclsim.run(model="gpt2-small", layers=4, sequence=64, batch=4, micro_batches=4)
        self.assertEqual((result.parallel.stages, result.parallel.data), (2, 4))


class ParameterServers(Forgetting):
    def test_defaults_and_exceptions(self):
        self.assertEqual(hcclsim.get_ps_context("enable_ps"), False)
        self.assertEqual(hcclsim.get_ps_context("scheduler_manage_port"), 11202)
        for options, error in (
            ({"enable": True}, ValueError),
            ({"enable_ps": 1}, TypeError),
            ({"scheduler_manage_port": 0}, ValueError),
            ({"server_num": -1}, ValueError),
            ({"scheduler_port": 1023}, ValueError),
            ({"ms_role": "MS_BOSS"}, ValueError),
        ):
            with self.subTest(options=options), self.assertRaises(error):
                hcclsim.set_ps_context(**options)
        with self.assertRaises(ValueError):
            hcclsim.get_ps_context("enable")
        with self.assertRaises(TypeError):
            hcclsim.set_param_ps([3])

    def test_runs_use_it(self):
        hcclsim.set_ps_context(enable_ps=True, server_num=2)
        hcclsim.set_param_ps("fc*")
        result = hcclsim.run(model="lenet", npus=4)
        self.assertEqual(result.servers, 2)
        hcclsim.set_param_ps("fc*", init_in_server=True)
        with self.assertRaisesRegex(hcclsim.BadInput, "no table of embeddings"):
            hcclsim.run(model="lenet", npus=4)
        hcclsim.reset_ps_context()
        self.assertEqual(hcclsim.run(model="lenet", npus=4).npus, 4)


class Hooks(Forgetting):
    def test_defaults(self):
        state = hcclsim.PowerSGDState(process_group=None)
        self.assertEqual(
            (state.matrix_approximation_rank, state.start_powerSGD_iter, state.min_compression_rate, state.random_seed),
            (1, 1000, 2, 0),
        )
        self.assertTrue(state.use_error_feedback and state.warm_start)
        self.assertEqual(state.compression_stats_logging_frequency, 10000)

    def test_the_constructor_refuses_an_early_start(self):
        for start in (0, 1):
            with self.assertRaises(ValueError):
                hcclsim.PowerSGDState(None, start_powerSGD_iter=start)
        hcclsim.PowerSGDState(None, start_powerSGD_iter=0, use_error_feedback=False, warm_start=False)

    def test_pickled_states_have_no_group(self):
        with self.assertLogs("hcclsim.powerSGD_hook", "WARNING"):
            state = pickle.loads(pickle.dumps(hcclsim.PowerSGDState("group", matrix_approximation_rank=4)))
        self.assertIsNone(state.process_group)
        self.assertEqual(state.matrix_approximation_rank, 4)

    def test_runs_use_it(self):
        state = hcclsim.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
        hcclsim.register_comm_hook(state, hcclsim.batched_powerSGD_hook)
        self.assertIn("batched-powersgd", hcclsim.registered_comm_hook())
        plain = hcclsim.run(model="resnet50", iterations=4, use_settings=False, uncertainty=False)
        compressed = hcclsim.run(model="resnet50", iterations=4, uncertainty=False)
        self.assertNotEqual(plain.step_time_s, compressed.step_time_s)
        with self.assertRaises(RuntimeError):
            hcclsim.register_comm_hook(state, hcclsim.powerSGD_hook)

    def test_a_model_of_its_own(self):
        ddp_model = hcclsim.Training(model="lenet", iterations=4)
        state = hcclsim.PowerSGDState(process_group=None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        ddp_model.register_comm_hook(state, hcclsim.batched_powerSGD_hook)
        self.assertIn("batched-powersgd", ddp_model.run().settings["compress"])
        self.assertIsNone(hcclsim.registered_comm_hook())

    def test_states_have_the_statistics_of_the_run(self):
        # fc2 of LeNet, 120 x 84, with rank 1: 204 elements; convolutions of 6 x 25 and 16 x 150, fc1 of 400 x 120, fc3 of
        # 84 x 10, where (a + b) 2 < a b; biases of 236 elements go as they are.
        before = 150 + 2400 + 48000 + 10080 + 840 + 236
        after = (6 + 25) + (16 + 150) + (400 + 120) + (120 + 84) + (84 + 10) + 236
        state = hcclsim.PowerSGDState(None, start_powerSGD_iter=3)
        self.assertEqual((state.iter, state.compression_stats()), (0, (0, 0, 0)))
        hcclsim.register_comm_hook(state, hcclsim.powerSGD_hook)
        hcclsim.run(model="lenet", iterations=2, uncertainty=False)
        self.assertEqual((state.iter, state.compression_stats()), (2, (0, 0, 0)))
        for keywords in ({}, {"numerics": True, "batch": 2}):
            result = hcclsim.run(model="lenet", iterations=5, uncertainty=False, **keywords)
            self.assertEqual((state.iter, state.compression_stats()), (5, (before / after, 2 * before, 2 * after)))
            self.assertEqual(result.compression.compressed_iterations, 2)
        hcclsim.run(model="lenet", iterations=9, compress=False)  # without the hook
        self.assertEqual(state.iter, 5)
        model = hcclsim.Training(model="lenet", iterations=4)
        own = hcclsim.PowerSGDState(None, start_powerSGD_iter=2)
        model.register_comm_hook(own, hcclsim.powerSGD_hook)
        model.run()
        self.assertEqual((own.iter, own.compression_stats()[1:], state.iter), (4, (2 * before, 2 * after), 5))

    def test_what_is_refused(self):
        with self.assertRaises(TypeError):
            hcclsim.register_comm_hook(None, print)
        with self.assertRaises(TypeError):
            hcclsim.register_comm_hook(None, hcclsim.powerSGD_hook)
        for name, value in (("matrix_approximation_rank", "2"), ("start_powerSGD_iter", 2.5), ("min_compression_rate", None)):
            with self.assertRaisesRegex(TypeError, f"{name} must be int"):
                hcclsim.PowerSGDState(None, **{name: value})
        for name, value in (("min_compression_rate", -1), ("orthogonalization_epsilon", -1e-8), ("random_seed", -1)):
            with self.subTest(name=name), self.assertRaises(ValueError):
                hcclsim.register_comm_hook(hcclsim.PowerSGDState(None, **{name: value}), hcclsim.powerSGD_hook)
        with self.assertRaises(ValueError):
            hcclsim.register_comm_hook(
                hcclsim.PowerSGDState(None, matrix_approximation_rank=0), hcclsim.powerSGD_hook
            )


if __name__ == "__main__":
    unittest.main()
