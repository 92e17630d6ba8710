#pragma once

#include <string>

#include "sim/platform/options.hpp"

/// Writes platform files: servers of one kind of NPU, joined by a fabric. The shipped files of platforms/ are what this
/// generator writes, so the figures of sim/platform/catalog.cpp are the only ones.
///
/// Names count over the whole cluster: NPU 13 is host npu-13 with port roce-13; hccs-12-13, pcie-8-12, sio-12-13 join
/// two NPUs and are SPLITDUPLEX with UP from the first to the second; cpu-1 are the CPUs of server 1.
///
/// Fabrics:
///  - star: one flat zone of routing Cluster. The port of each NPU is its host_link, the core does not block, and a
///    bypassRoute in each direction leads every pair inside a server over its own links. An A3 super-pod has one such
///    zone per node, joined by a FATPIPE link: what one flow reaches from node to node. Several super-pods have a zone
///    each with all of this, and a property `super_pod` at every die: between them sim::Cluster leads from RoCE port to
///    RoCE port. The routes between these zones are for other SimGrid programs.
///  - fat tree: a FAT_TREE cluster of the NPUs, and beside it a zone of routing None with the links inside the servers
///    and a property `route:npu-A:npu-B` for each pair, which sim::Cluster adds as bypass routes. SimGrid alone sees
///    the fabric only. Such a file has no CPU hosts.
namespace hcclsim::sim {

/// The platform file as a string; the same options give the same bytes. Throws Error(bad_input) for options that no
/// cluster can have, such as three 910A in a server or a leaf size that does not divide the NPUs.
[[nodiscard]] std::string generate_platform(const PlatformOptions& options);

}  // namespace hcclsim::sim
