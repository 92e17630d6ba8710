"""The Python modules of HCCL as training scripts import them: hccl.manage.api, hccl.split.api.

They set what `hcclsim.run()` then simulates; nothing is sent.
"""
