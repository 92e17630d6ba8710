#pragma once

#include <hccl/hccl.h>
#include <mpi.h>

#include <cstdint>

#include "check.hpp"

/// A process for each NPU, as MPI starts them: its rank, and the communicator of all.
struct World {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  HcclComm comm = nullptr;
};

/// A communicator of all processes, from a root info of rank 0.
inline HcclComm make_communicator(std::uint32_t rank, std::uint32_t ranks) {
  HcclRootInfo root{};
  if (rank == 0) CHECK(HcclGetRootInfo(&root));
  MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);
  HcclComm comm = nullptr;
  CHECK(HcclCommInitRootInfo(ranks, &root, rank, &comm));
  return comm;
}

/// Starts MPI and ACL, and sets the process's device.
inline World begin_world(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(aclInit(nullptr));
  std::uint32_t devices = 0;
  CHECK(aclrtGetDeviceCount(&devices));
  CHECK(aclrtSetDevice(devices > 0 ? rank % static_cast<int>(devices) : 0));
  World world{static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks), nullptr};
  world.comm = make_communicator(world.rank, world.ranks);
  return world;
}

inline void end_world(const World& world) {
  CHECK(HcclCommDestroy(world.comm));
  CHECK(aclFinalize());
  MPI_Finalize();
}
