// How the NPUs of a communicator are connected. What the functions give out belongs to the thread.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <hccl/hccl_rank_graph.h>

#include <cstring>
#include <vector>

#include "clients/library/hccl_calls.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

/// Asks for numbers of a layer, which `numbers` keeps for the program.
HcclResult get_numbers(const char* function, Call call, HcclComm comm, std::uint32_t layer,
                       std::vector<std::uint32_t>& numbers, std::uint32_t** list, std::uint32_t* count) {
  if (list == nullptr || count == nullptr) return failed(function, HCCL_E_PTR, "null");
  const Answer answer = ask(call, {number_of(comm), layer});
  if (answer.status == 0) {
    numbers.resize(answer.bytes.size() / sizeof(std::uint32_t));
    std::memcpy(numbers.data(), answer.bytes.data(), answer.bytes.size());
    *list = numbers.data();
    *count = static_cast<std::uint32_t>(numbers.size());
  }
  return result_of(function, answer);
}

EndpointDesc endpoint_of(const LinkEnd& end, CommProtocol protocol) {
  EndpointDesc endpoint;
  std::memset(&endpoint, 0, sizeof endpoint);
  endpoint.protocol = protocol;
  endpoint.commAddr.type = COMM_ADDR_TYPE_ID;
  endpoint.commAddr.id = end.device;
  endpoint.loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
  endpoint.loc.device = {end.device, end.device, end.server, end.super_pod};
  return endpoint;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** netLayers, uint32_t* netLayerNum) {
  thread_local std::vector<std::uint32_t> layers;
  return get_numbers(__func__, Call::graph_layers, comm, 0, layers, netLayers, netLayerNum);
}

HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t** ranks, uint32_t* rankNum) {
  thread_local std::vector<std::uint32_t> numbers;
  return get_numbers(__func__, Call::graph_ranks, comm, netLayer, numbers, ranks, rankNum);
}

HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t* rankNum) {
  std::vector<std::uint32_t> numbers;
  std::uint32_t* ranks = nullptr;
  return get_numbers(__func__, Call::graph_ranks, comm, netLayer, numbers, &ranks, rankNum);
}

HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo* topoType) {
  if (topoType == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::graph_type, {number_of(comm), netLayer});
  if (answer.status == 0) *topoType = static_cast<CommTopo>(answer.values[0]);
  return result_of(__func__, answer);
}

HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer, uint32_t** instSizeList,
                                               uint32_t* listSize) {
  thread_local std::vector<std::uint32_t> sizes;
  return get_numbers(__func__, Call::graph_sizes, comm, netLayer, sizes, instSizeList, listSize);
}

HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank, uint32_t dstRank, CommLink** links,
                                 uint32_t* linkNum) {
  if (links == nullptr || linkNum == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  thread_local CommLink link;
  const Answer answer = ask(Call::graph_link, {number_of(comm), netLayer, srcRank, dstRank});
  if (answer.status != 0) return result_of(__func__, answer);
  *linkNum = answer.bytes.empty() ? 0 : 1;
  *links = answer.bytes.empty() ? nullptr : &link;
  if (answer.bytes.empty()) return HCCL_SUCCESS;
  const auto protocol = static_cast<CommProtocol>(answer.values[0]);
  LinkEnd ends[2];
  std::memcpy(ends, answer.bytes.data(), sizeof ends);
  std::memset(&link, 0, sizeof link);
  link.header = {COMM_LINK_VERSION, COMM_LINK_MAGIC_WORD, sizeof link, 0};
  link.srcEndpointDesc = endpoint_of(ends[0], protocol);
  link.dstEndpointDesc = endpoint_of(ends[1], protocol);
  link.linkAttr.linkProtocol = protocol;
  link.linkAttr.hop = 1;
  return HCCL_SUCCESS;
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
