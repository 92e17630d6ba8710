#include "study/communication/replay/chakra/write_chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files/output_folder.hpp"
#include "base/json.hpp"
#include "study/communication/replay/chakra/attributes.hpp"

namespace hcclsim::study {
namespace {

namespace chakra = chakra_format;
using hccl::Collective;
using Sink = std::function<void(std::string_view)>;

constexpr const char* written_version = "0.0.4";

/// Chakra's number of a collective; of one that it does not have that of an all-to-all, which it is like.
std::int64_t comm_type_of(Collective collective) {
  constexpr std::array<Collective, 10> types{
      Collective::allreduce,      Collective::reduce,    Collective::allgather, Collective::gather,
      Collective::scatter,        Collective::broadcast, Collective::alltoall,  Collective::reduce_scatter,
      Collective::reduce_scatter, Collective::barrier};
  const auto* const found = std::find(types.begin(), types.end(), collective);
  if (found == types.end()) return comm_type_of(Collective::alltoall);
  return found - types.begin();
}

/// A message behind its length.
void write_message(const std::string& bytes, std::string& text) {
  std::uint64_t length = bytes.size();
  for (; length >= 0x80U; length >>= 7U) text += static_cast<char>((length & 0x7fU) | 0x80U);
  text += static_cast<char>(length);
  text += bytes;
}

class NodeWriter {
 public:
  NodeWriter(const ExecutionTrace& trace, Rank rank) : trace_(trace), rank_(rank) {}

  const chakra::Node& write(const TraceNode& node) {
    node_.Clear();
    node_.set_id(node.id);
    node_.set_name(trace_.names[node.name]);
    add_dependencies(node);
    add("is_cpu_op").set_bool_val(node.host);
    if (node.duration != TraceNode::unknown) {
      constexpr double micro = 1e6;
      node_.set_duration_micros(static_cast<std::uint64_t>(std::llround(node.duration * micro)));
      add(chakra_attribute::duration).set_double_val(node.duration);
    }
    if (node.stream != TraceNode::by_kind) add(chakra_attribute::stream).set_int32_val(node.stream);
    if (node.iteration >= 0) add(chakra_attribute::iteration).set_int32_val(node.iteration);
    add_work(node);
    return node_;
  }

 private:
  chakra::AttributeProto& add(const char* name) {
    chakra::AttributeProto& attribute = *node_.add_attr();
    attribute.set_name(name);
    return attribute;
  }
  void add_integer(const char* name, std::uint64_t value) { add(name).set_int64_val(static_cast<std::int64_t>(value)); }

  void add_dependencies(const TraceNode& node) {
    const RankTrace& of = trace_.of(rank_);
    if (node.start_dependencies > 0) {
      bad_input("unsupported", "{}: it waits for the begin of a node; Chakra has ends alone", trace_.place(of, node));
    }
    for (const std::uint32_t before : of.ends_before(node)) node_.add_data_deps(of.nodes[before].id);
  }

  void add_work(const TraceNode& node) {
    switch (node.kind) {
      case NodeKind::metadata:
        node_.set_type(chakra::METADATA_NODE);
        return;
      case NodeKind::memory:
        node_.set_type(chakra::MEM_LOAD_NODE);
        add_integer("tensor_size", node.bytes);
        return;
      case NodeKind::compute:
        node_.set_type(chakra::COMP_NODE);
        if (node.flops > 0) add_integer("num_ops", static_cast<std::uint64_t>(std::llround(node.flops)));
        if (node.bytes > 0) add_integer("tensor_size", node.bytes);
        return;
      case NodeKind::send:
      case NodeKind::receive:
        add_message(node);
        return;
      case NodeKind::collective:
        add_collective(node);
        return;
    }
  }

  void add_message(const TraceNode& node) {
    const bool sends = node.kind == NodeKind::send;
    node_.set_type(sends ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE);
    add_integer("comm_size", node.bytes);
    add_integer("comm_src", sends ? rank_ : node.peer);
    add_integer("comm_dst", sends ? node.peer : rank_);
    add_integer("comm_tag", node.tag);
    add_type(node);
  }

  void add_collective(const TraceNode& node) {
    node_.set_type(chakra::COMM_COLL_NODE);
    add_integer("comm_type", static_cast<std::uint64_t>(comm_type_of(node.collective)));
    if (node.collective == Collective::send_recv) {
      add(chakra_attribute::collective).set_string_val(std::string(name_of(node.collective)));
    }
    add_integer("comm_size", node.bytes);
    const bool all = node.group == TraceNode::world;
    add("pg_name").set_string_val(all ? "0" : trace_.groups[node.group].name);
    add_type(node);
    if (reduces(node.collective)) add(chakra_attribute::reduce_op).set_string_val(std::string(name_of(node.op)));
    if (is_rooted(node.collective)) add(chakra_attribute::root).set_int32_val(static_cast<std::int32_t>(node.peer));
    add(chakra_attribute::in_place).set_bool_val(node.in_place);
    const std::vector<std::uint64_t>& counts = trace_.counts[node.counts];
    if (counts.empty()) return;
    auto& list = *add(chakra_attribute::counts).mutable_uint64_list()->mutable_values();
    list.Assign(counts.begin(), counts.end());
  }

  void add_type(const TraceNode& node) {
    if (!node.untyped) add(chakra_attribute::data_type).set_string_val(std::string(name_of(node.type)));
  }

  const ExecutionTrace& trace_;
  Rank rank_;
  chakra::Node node_;
};

void write_rank(const ExecutionTrace& trace, Rank rank, const Sink& sink) {
  constexpr std::size_t piece = 1U << 18U;
  std::string text;
  chakra::GlobalMetadata metadata;
  metadata.set_version(written_version);
  const auto add = [&](const char* name, std::uint64_t number) {
    chakra::AttributeProto& attribute = *metadata.add_attr();
    attribute.set_name(name);
    attribute.set_int64_val(static_cast<std::int64_t>(number));
  };
  add(chakra_attribute::ranks, trace.ranks());
  add(chakra_attribute::nodes, trace.of(rank).nodes.size());
  write_message(metadata.SerializeAsString(), text);
  NodeWriter writer(trace, rank);
  for (const TraceNode& node : trace.of(rank).nodes) {
    write_message(writer.write(node).SerializeAsString(), text);
    if (text.size() < piece) continue;
    sink(text);
    text.clear();
  }
  sink(text);
}

std::string file_of(Rank rank) { return fmt::format("trace.{}.et", rank); }

/// The folder may be there, with other files in it.
constexpr auto filled = OutputFolder::Existing::is_filled;

}  // namespace

std::string chakra_bytes(const ExecutionTrace& trace, Rank rank) {
  std::string bytes;
  write_rank(trace, rank, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void require_writable_chakra(const std::string& folder, Rank ranks) {
  const OutputFolder unused(folder, filled);  // dropped
  if (!std::filesystem::exists(std::filesystem::path(folder) / file_of(ranks))) return;
  bad_input("output", "{}: there are the files of a trace with more than {} ranks; choose another folder", folder,
            ranks);
}

void write_chakra(const ExecutionTrace& trace, const std::string& folder) {
  require_writable_chakra(folder, trace.ranks());
  OutputFolder files(folder, filled);
  files.make_folder("");
  for (Rank rank = 0; rank < trace.ranks(); ++rank) {
    OutputFile file = files.file(file_of(rank));
    write_rank(trace, rank, [&](std::string_view piece) { file.write(piece); });
    file.commit();
  }
  Json groups = Json::object();
  for (std::size_t i = 1; i < trace.groups.size(); ++i) {
    groups.append(trace.groups[i].name, Json(trace.groups[i].ranks));
  }
  OutputFile file = files.file("comm_groups.json");
  file.write(groups.dump() + '\n');
  file.commit();
  files.commit();
}

}  // namespace hcclsim::study
