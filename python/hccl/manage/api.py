"""Groups of ranks and what a rank is: create_group, destroy_group, get_rank_size and others.

The world is that of `hcclsim.init()`, or of RANK_TABLE_FILE or RANK_SIZE in the environment, or the default platform;
this rank is that of `hcclsim.init()` or of RANK_ID.
"""

from __future__ import annotations

from typing import Dict, List, Set

from hcclsim import settings, world

longest_name = 127
most_ranks = 32768


def create_group(group: str, rank_num: int, rank_ids: List[int]) -> None:
    """Creates a group of the ranks with these world ranks, in this order.

    Raises TypeError for wrong types; ValueError if the name is empty, longer than 127 bytes or that of the world group,
    if rank_num is not the number of rank_ids or not from 1 to 32768, or if a rank is named twice or is none of the
    world; RuntimeError if the group exists, or a server of Ascend 910A cannot form it (1, 2, 4 or 8 ranks of each
    server, at the same places; of 2 or 4 all in one half).
    """
    _check_name(group)
    if group == settings.world_group:
        raise ValueError(f"{group} is the group of all ranks")
    _check_int(rank_num, "rank_num")
    if not isinstance(rank_ids, list):
        raise TypeError(f"rank_ids must be a list, not {type(rank_ids).__name__}")
    for rank in rank_ids:
        _check_int(rank, "a rank of rank_ids")
    if not 1 <= rank_num <= most_ranks:
        raise ValueError(f"rank_num must be from 1 to {most_ranks}, not {rank_num}")
    if rank_num != len(rank_ids):
        raise ValueError(f"rank_num is {rank_num}, but rank_ids has {len(rank_ids)}")
    if len(set(rank_ids)) != len(rank_ids):
        raise ValueError(f"rank_ids names a rank twice: {rank_ids}")
    size = world.current().size
    outside = [rank for rank in rank_ids if not 0 <= rank < size]
    if outside:
        raise ValueError(f"rank {outside[0]} is none of the world's 0 to {size - 1}")
    if group in settings.current.groups:
        raise RuntimeError(f"the group {group!r} exists")
    _check_places(group, rank_ids)
    settings.current.groups[group] = list(rank_ids)


def destroy_group(group: str) -> None:
    """Forgets a group and what was set for it. Raises RuntimeError if there is none of this name, ValueError for the
    world group."""
    _check_name(group)
    if group == settings.world_group:
        raise ValueError(f"{group} cannot be destroyed")
    _ranks_of(group)
    del settings.current.groups[group]
    settings.current.split_by_idx.pop(group, None)
    settings.current.split_by_size.pop(group, None)


def get_rank_size(group: str = settings.world_group) -> int:
    """Number of ranks of a group."""
    return len(_ranks_of(group))


def get_local_rank_size(group: str = settings.world_group) -> int:
    """Number of ranks of a group that are on this rank's server."""
    here = world.current()
    return sum(here.server_of(rank) == here.server_of(here.rank) for rank in _ranks_of(group))


def get_rank_id(group: str = settings.world_group) -> int:
    """This rank's number in a group. Raises RuntimeError if it is not in it."""
    require_member(group)
    return _ranks_of(group).index(world.current().rank)


def get_local_rank_id(group: str = settings.world_group) -> int:
    """This rank's number among those of a group on its server. Raises RuntimeError if it is not in the group."""
    require_member(group)
    here = world.current()
    return [rank for rank in _ranks_of(group) if here.server_of(rank) == here.server_of(here.rank)].index(here.rank)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The world rank of a rank of a group. Raises ValueError if the group has no such rank."""
    ranks = _ranks_of(group)
    _check_int(group_rank_id, "group_rank_id")
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(f"{group} has ranks 0 to {len(ranks) - 1}, not {group_rank_id}")
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a world rank. Raises ValueError if it is not in the group."""
    ranks = _ranks_of(group)
    _check_int(world_rank_id, "world_rank_id")
    if world_rank_id not in ranks:
        raise ValueError(f"rank {world_rank_id} is not in {group}")
    return ranks.index(world_rank_id)


def require_member(group: str) -> None:
    """Raises TypeError or ValueError for what is no name of a group, RuntimeError if the group does not exist or this
    rank is not in it."""
    here = world.current()
    if here.rank not in _ranks_of(group):
        raise RuntimeError(f"rank {here.rank} is not in the group {group!r}")


def _ranks_of(group: str) -> List[int]:
    _check_name(group)
    if group == settings.world_group:
        return list(range(world.current().size))
    if group not in settings.current.groups:
        raise RuntimeError(f"the group {group!r} does not exist; create it first: hccl.manage.api.create_group")
    return settings.current.groups[group]


def _check_name(group: str) -> None:
    if not isinstance(group, str):
        raise TypeError(f"group must be str, not {type(group).__name__}")
    if not group:
        raise ValueError("the name of a group must not be empty")
    if len(group.encode()) > longest_name:
        raise ValueError(f"the name of a group has at most {longest_name} bytes, this one {len(group.encode())}")


def _check_int(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")


def _check_places(group: str, rank_ids: List[int]) -> None:
    """The servers of Ascend 910A have two halves of four NPUs: HCCL forms groups of 1, 2, 4 or 8 there."""
    here = world.current()
    if not here.is_910a:
        return
    places: Dict[int, Set[int]] = {}
    for rank in rank_ids:
        places.setdefault(here.server_of(rank), set()).add(here.place_of(rank))
    first = next(iter(places.values()))
    if any(one != first for one in places.values()):
        raise RuntimeError(f"the group {group!r} has other places on one server than on another")
    if len(first) not in (1, 2, 4, 8):
        raise RuntimeError(f"the group {group!r} has {len(first)} ranks of a server; 910A forms groups of 1, 2, 4 or 8")
    if len(first) in (2, 4) and len({place // 4 for place in first}) > 1:
        raise RuntimeError(f"the group {group!r} has ranks of both halves of a server, 0-3 and 4-7")
