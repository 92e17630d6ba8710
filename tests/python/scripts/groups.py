from hccl.manage.api import create_group
from hccl.split.api import set_split_strategy_by_idx

ranks = list(range(8))
create_group("group", 8, ranks)
set_split_strategy_by_idx([20, 100, 159], "group")
