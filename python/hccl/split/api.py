"""set_split_strategy_by_idx and set_split_strategy_by_size: after which gradients a segment ends.

Gradients are numbered in the order in which back-propagation produces them. The first setting of a kind that a group
gets stays; sizes count before indices. Whether the last index is that of the last gradient shows when `hcclsim.run()`
knows the network.
"""

from __future__ import annotations

from typing import List, Union

from hcclsim import settings
from hccl.manage import api as manage

most_segments = 8


def set_split_strategy_by_idx(idxList: List[int], group: str = settings.world_group) -> None:
    """Ends a segment after each of these gradients: [20, 100, 159] cuts 160 gradients into 0-20, 21-100 and 101-159.

    Raises TypeError if idxList is no list of ints or group no str; ValueError if the list is empty, its values do not
    ascend from 0 to 2^32 - 1 at most, or are more than 8; RuntimeError if the group does not exist or this rank is not
    in it.
    """
    _check_list(idxList, "idxList")
    for index in idxList:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"idxList must hold ints, not {index!r}")
        if not 0 <= index < 2**32:
            raise ValueError(f"an index must be from 0 to 4294967295, not {index}")
    if any(later <= earlier for earlier, later in zip(idxList, idxList[1:])):
        raise ValueError(f"indices must ascend: {idxList}")
    manage.require_member(group)
    settings.current.split_by_idx.setdefault(group, list(idxList))


def set_split_strategy_by_size(dataSizeList: List[Union[int, float]], group: str = settings.world_group) -> None:
    """Cuts by percentages of the bytes of all gradients: [60, 20, 20].

    Raises TypeError if dataSizeList is no list of numbers or group no str; ValueError if the list is empty, a value is
    negative, they do not sum to 100, or are more than 8; RuntimeError if the group does not exist or this rank is not in
    it.
    """
    _check_list(dataSizeList, "dataSizeList")
    for size in dataSizeList:
        if isinstance(size, bool) or not isinstance(size, (int, float)):
            raise TypeError(f"dataSizeList must hold ints or floats, not {size!r}")
        if not size >= 0:
            raise ValueError(f"a percentage must not be negative: {size}")
    # As HCCL's library compares them.
    if not abs(sum(dataSizeList) - 100) <= 1e-6:
        raise ValueError(f"percentages must sum to 100, not to {sum(dataSizeList)}: {dataSizeList}")
    manage.require_member(group)
    settings.current.split_by_size.setdefault(group, list(dataSizeList))


def _check_list(values: object, name: str) -> None:
    if not isinstance(values, list):
        raise TypeError(f"{name} must be a list, not {type(values).__name__}")
    if not values:
        raise ValueError(f"{name} must not be empty")
    if len(values) > most_segments:
        raise ValueError(f"{name} has {len(values)} segments; at most {most_segments} are documented")
