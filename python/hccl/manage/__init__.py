"""Groups of ranks: hccl.manage.api."""
