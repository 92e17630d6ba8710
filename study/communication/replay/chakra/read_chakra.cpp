#include "study/communication/replay/chakra/read_chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/names.hpp"
#include "study/communication/replay/chakra/attributes.hpp"
#include "study/communication/replay/chakra/process_groups.hpp"

namespace hcclsim::study {
namespace {

namespace format = chakra_format;

using hccl::Collective;

constexpr std::string_view all_ranks_group = "0";
constexpr std::string_view other_lists =
    "; if it is a control dependency, --dependencies data goes on without these: PyTorch's converter leaves out "
    "callers";
constexpr std::string_view priority_note = "comm_priority is not obeyed: communication that is ready goes by node id";

/// By Chakra's number of a collective.
constexpr std::array<Collective, 10> collective_types{
    Collective::allreduce,      Collective::reduce,    Collective::allgather, Collective::gather,
    Collective::scatter,        Collective::broadcast, Collective::alltoall,  Collective::reduce_scatter,
    Collective::reduce_scatter, Collective::barrier};

/// Attributes of a node that are read.
struct Attributes {
  bool host = false;
  bool whole_network = true;
  std::optional<std::int64_t> comm_type{};
  std::optional<std::int64_t> comm_size{};
  std::optional<std::int64_t> source{};
  std::optional<std::int64_t> destination{};
  std::optional<std::int64_t> tag{};
  std::optional<std::int64_t> stream{};
  std::optional<std::int64_t> device_stream{};  ///< of the program that was traced
  std::int64_t root = 0;
  std::int64_t iteration = -1;
  std::int64_t operations = 0;
  std::int64_t tensor_bytes = 0;
  std::optional<double> duration{};
  std::optional<Collective> collective{};
  std::optional<bool> in_place{};
  std::string group{};
};

class FileReader {
 public:
  FileReader(const ChakraFile& file, const ChakraSpec& spec, const ChakraGroups& groups, ExecutionTrace& trace)
      : bytes_(file.bytes),
        rank_(file.rank),
        spec_(spec),
        common_groups_(groups),
        whole_(trace),
        trace_(trace.traces.emplace_back()) {
    trace_.source = file.name;
  }

  /// What the file tells of the whole trace.
  struct Told {
    std::optional<Rank> ranks{};
    std::optional<std::uint64_t> nodes{};  ///< of the file
  };

  Told read() {
    read_metadata();
    while (place_ < bytes_.size()) {
      const std::string_view message = next_message();
      node_.Clear();
      if (!node_.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
        fail("node number {} (from 0) cannot be read: the file is damaged, or no Chakra trace", trace_.nodes.size());
      }
      add_node();
    }
    if (trace_.nodes.empty()) fail("there are no nodes in the file");
    if (told_.nodes.value_or(trace_.nodes.size()) != trace_.nodes.size()) {
      fail("there are {} nodes, but its head tells of {}: the file is cut off", trace_.nodes.size(), *told_.nodes);
    }
    if (priorities_ && std::ranges::find(whole_.notes, priority_note) == whole_.notes.end()) {
      whole_.notes.emplace_back(priority_note);
    }
    dependencies_.resolve(whole_, trace_, has_both_lists_ ? other_lists : "");
    if (launch_.has_value() && !device_communicates_) {
      fail_at(trace_.nodes[*launch_], "a task of the CPU (is_cpu_op) cannot communicate, and no node of the NPU does");
    }
    const bool meets = is_own_ || !own_groups_.empty();
    const bool buffered = spec_.sends == ChakraSends::automatic ? !meets : spec_.sends == ChakraSends::buffered;
    for (TraceNode& node : trace_.nodes) {
      if (node.kind == NodeKind::collective) node.group = group_of(node);
      if (node.kind == NodeKind::send) node.buffered = buffered;
    }
    return told_;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    bad_input("trace", "{}: {}", trace_.source, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void fail_at(const TraceNode& node, fmt::format_string<Args...> text, Args&&... args) const {
    bad_input("trace", "{}: {}", whole_.place(trace_, node), fmt::format(text, std::forward<Args>(args)...));
  }

  /// The next message behind its length.
  std::string_view next_message() {
    const std::size_t begin = place_;
    constexpr unsigned bits_of_length = 32;
    std::uint64_t length = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (place_ == bytes_.size()) fail("the file ends in the length of a message, at byte {}: it is cut off", begin);
      if (shift >= bits_of_length) fail("what is at byte {} is no length of a message: no Chakra trace", begin);
      const auto byte = static_cast<unsigned char>(bytes_[place_++]);
      length |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80U) break;
    }
    if (length > bytes_.size() - place_) {
      fail("the message at byte {} has {} bytes, but only {} are left: the file is cut off, or no Chakra trace", begin,
           length, bytes_.size() - place_);
    }
    const std::string_view message = bytes_.substr(place_, length);
    place_ += length;
    return message;
  }

  void read_metadata() {
    if (bytes_.empty()) fail("the file is empty");
    const std::string_view message = next_message();
    constexpr char tag_of_node_id = 0x08;
    format::GlobalMetadata metadata;
    const bool is_node = !message.empty() && message.front() == tag_of_node_id;
    if (is_node || !metadata.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      fail("it does not begin with Chakra's GlobalMetadata{}", is_node ? ": its first message is a node" : "");
    }
    for (const format::AttributeProto& attribute : metadata.attr()) {
      const std::int64_t number = integer_of(attribute).value_or(0);
      is_own_ = is_own_ || attribute.name().starts_with(chakra_attribute::own);
      if (attribute.name() == chakra_attribute::nodes && number > 0) told_.nodes = static_cast<std::uint64_t>(number);
      if (attribute.name() == chakra_attribute::ranks && number > 0) told_.ranks = static_cast<Rank>(number);
    }
  }

  void add_node() {
    TraceNode& node = trace_.nodes.emplace_back();
    node.id = node_.id();
    node.name = whole_.intern(node_.name());
    const Attributes attributes = read_attributes(node);
    node.host = attributes.host;
    node.iteration = static_cast<std::int32_t>(attributes.iteration);
    std::optional<std::int64_t> stream = attributes.stream;
    if (!stream.has_value() && !node.host) stream = attributes.device_stream;
    if (stream.has_value()) {
      constexpr std::int64_t most_streams = 1 << 20;
      if (*stream < 0 || *stream >= most_streams) {
        fail_at(node, "stream {}: accepted: 0 to {}", *stream, most_streams - 1);
      }
      node.stream = static_cast<std::int32_t>(*stream);
    }
    constexpr double micro = 1e6;
    constexpr std::uint64_t longest_micros = 1'000'000'000'000'000;
    if (node_.duration_micros() > longest_micros) {
      fail_at(node, "duration_micros is {} ({} with its sign); accepted: 0 to {}", node_.duration_micros(),
              static_cast<std::int64_t>(node_.duration_micros()), longest_micros);
    }
    if (node_.duration_micros() > 0) node.duration = static_cast<double>(node_.duration_micros()) / micro;
    if (attributes.duration.has_value()) node.duration = *attributes.duration;
    add_work(node, attributes);
    add_dependencies();
  }

  void add_dependencies() {
    std::vector<std::uint64_t> ends;
    if (spec_.dependencies != ChakraDependencies::control) {
      ends.insert(ends.end(), node_.data_deps().begin(), node_.data_deps().end());
    }
    if (spec_.dependencies != ChakraDependencies::data) {
      ends.insert(ends.end(), node_.ctrl_deps().begin(), node_.ctrl_deps().end());
    }
    const bool both = spec_.dependencies == ChakraDependencies::both;
    has_both_lists_ = has_both_lists_ || (both && !node_.ctrl_deps().empty());
    dependencies_.add(std::move(ends));
  }

  void add_work(TraceNode& node, const Attributes& attributes) {
    switch (node_.type()) {
      case format::METADATA_NODE:
        node.kind = NodeKind::metadata;
        read_process_groups(node);
        return;
      case format::MEM_LOAD_NODE:
      case format::MEM_STORE_NODE:
        node.kind = NodeKind::memory;
        node.bytes = size(node, "tensor_size", attributes.tensor_bytes);
        return;
      case format::COMP_NODE:
        node.flops = static_cast<double>(size(node, "num_ops", attributes.operations));
        node.bytes = size(node, "tensor_size", attributes.tensor_bytes);
        return;
      case format::COMM_SEND_NODE:
      case format::COMM_RECV_NODE:
      case format::COMM_COLL_NODE:
        add_communication(node, attributes);
        return;
      case format::INVALID_NODE:
        fail_at(node, "it has no type (INVALID_NODE)");
      default:
        break;
    }
    if (!spec_.unknown_is_host) {
      fail_at(node, "nodes of type {} are not known; --unknown-nodes host takes them as tasks of the CPU",
              static_cast<int>(node_.type()));
    }
    node.host = true;
  }

  /// What the CPU does under a communication's name, beside that of the device, is to launch it.
  void add_communication(TraceNode& node, const Attributes& attributes) {
    if (node.host) {
      if (!launch_.has_value()) launch_ = trace_.nodes.size() - 1;
      return;
    }
    device_communicates_ = true;
    if (node_.type() == format::COMM_COLL_NODE) {
      add_collective(node, attributes);
    } else {
      add_message(node, attributes);
    }
  }

  void add_message(TraceNode& node, const Attributes& attributes) {
    const bool sends = node_.type() == format::COMM_SEND_NODE;
    node.kind = sends ? NodeKind::send : NodeKind::receive;
    node.bytes = required(node, "comm_size", attributes.comm_size);
    const auto& own = sends ? attributes.source : attributes.destination;
    const std::uint64_t peer =
        sends ? required(node, "comm_dst", attributes.destination) : required(node, "comm_src", attributes.source);
    if (peer >= most_ranks) fail_at(node, "{} {} is no rank", sends ? "comm_dst" : "comm_src", peer);
    node.peer = static_cast<Rank>(peer);
    node.tag = required(node, "comm_tag", attributes.tag);
    if (own.has_value() && rank_.has_value() && *own != std::int64_t{*rank_}) {
      fail_at(node, "{} is {}, but the file is that of rank {}", sends ? "comm_src" : "comm_dst", *own, *rank_);
    }
  }

  void add_collective(TraceNode& node, const Attributes& attributes) {
    node.kind = NodeKind::collective;
    const std::uint64_t type = required(node, "comm_type", attributes.comm_type);
    if (type >= collective_types.size()) {
      fail_at(node, "comm_type {} is no collective; accepted: 0 to {}", type, collective_types.size() - 1);
    }
    node.collective = attributes.collective.value_or(collective_types.at(type));
    if (node.collective != Collective::barrier) {
      node.bytes = required(node, "comm_size", attributes.comm_size);
      if (node.bytes == 0) fail_at(node, "a collective of 0 bytes (comm_size)");
    }
    if (!attributes.whole_network) {
      fail_at(node,
              "involved_dim leaves out dimensions of the network; a platform here has no such dimensions: give "
              "the group of ranks by pg_name");
    }
    node.peer = static_cast<Rank>(size(node, "root", attributes.root));
    node.in_place = attributes.in_place.value_or(node.collective != Collective::alltoall);
    group_names_.resize(trace_.nodes.size());
    group_names_.back() = whole_.intern(attributes.group.empty() ? std::string(all_ranks_group) : attributes.group);
  }

  std::uint64_t required(const TraceNode& node, std::string_view name, std::optional<std::int64_t> value) const {
    if (!value.has_value()) fail_at(node, "it lacks the attribute {}", name);
    return size(node, name, *value);
  }

  std::uint64_t size(const TraceNode& node, std::string_view name, std::int64_t value) const {
    const std::int64_t most = std::int64_t{1} << (name.ends_with("_size") ? 48 : 62);
    if (value < 0) fail_at(node, "{} is negative: {}", name, value);
    if (value > most) fail_at(node, "{} is {}; accepted: 0 to {}", name, value, most);
    return static_cast<std::uint64_t>(value);
  }

  template <typename Value>
  Value value(const TraceNode& node, const format::AttributeProto& attribute, std::optional<Value> value,
              std::string_view kind) const {
    if (!value.has_value()) fail_at(node, "the attribute {} is no {}", attribute.name(), kind);
    return *value;
  }

  template <typename Parse>
  auto parsed(const TraceNode& node, std::string_view name, const std::string& text, const Parse& parse) const {
    try {
      return parse(text);
    } catch (const Error& error) {
      fail_at(node, "{}: {}", name, error.what());
    }
  }

  Attributes read_attributes(TraceNode& node) {
    Attributes read;
    for (const format::AttributeProto& attribute : node_.attr()) read_attribute(node, attribute, read);
    return read;
  }

  void read_attribute(TraceNode& node, const format::AttributeProto& attribute, Attributes& read) {
    const std::string& name = attribute.name();
    const auto integer = [&] { return value(node, attribute, integer_of(attribute), "integer"); };
    if (name == "is_cpu_op") {
      read.host = value(node, attribute, truth_of(attribute), "truth value");
    } else if (name == "num_ops") {
      read.operations = integer();
    } else if (name == "tensor_size") {
      read.tensor_bytes = integer();
    } else if (name == "comm_type") {
      read.comm_type = integer();
    } else if (name == "comm_size") {
      read.comm_size = integer();
    } else if (name == "comm_src") {
      read.source = integer();
    } else if (name == "comm_dst") {
      read.destination = integer();
    } else if (name == "comm_tag") {
      read.tag = integer();
    } else if (name == "pg_name") {
      read.group = value(node, attribute, text_of(attribute), "text");
    } else if (name == "involved_dim") {
      if (!attribute.has_bool_list()) fail_at(node, "the attribute {} is no list of truth values", name);
      const auto& dimensions = attribute.bool_list().values();
      read.whole_network = std::find(dimensions.begin(), dimensions.end(), false) == dimensions.end();
    } else if (name == "comm_priority") {
      priorities_ = priorities_ || integer() != 0;
    } else if (name == "root" || name == "root_rank" || name == chakra_attribute::root) {
      read.root = integer();
    } else if (name == "stream" && spec_.node_streams) {
      read.device_stream = integer();
    } else {
      read_own_attribute(node, attribute, read);
    }
  }

  void read_own_attribute(TraceNode& node, const format::AttributeProto& attribute, Attributes& read) {
    const std::string& name = attribute.name();
    if (!name.starts_with(chakra_attribute::own)) return;
    const auto text = [&] { return value(node, attribute, text_of(attribute), "text"); };
    if (name == chakra_attribute::duration) {
      read.duration = value(node, attribute, number_of(attribute), "number");
      constexpr Seconds longest = 1e9;
      if (!(*read.duration >= 0) || *read.duration > longest) fail_at(node, "{}: {} s", name, *read.duration);
    } else if (name == chakra_attribute::stream) {
      read.stream = value(node, attribute, integer_of(attribute), "integer");
    } else if (name == chakra_attribute::iteration) {
      constexpr std::int64_t most = 1 << 30;
      read.iteration = value(node, attribute, integer_of(attribute), "integer");
      if (read.iteration < 0 || read.iteration > most) fail_at(node, "{}: {}", name, read.iteration);
    } else if (name == chakra_attribute::data_type) {
      node.type = parsed(node, name, text(), parse_data_type);
      node.untyped = false;
    } else if (name == chakra_attribute::reduce_op) {
      node.op = parsed(node, name, text(), parse_reduce_op);
    } else if (name == chakra_attribute::collective) {
      read.collective = parsed(node, name, text(), hccl::parse_collective);
    } else if (name == chakra_attribute::in_place) {
      read.in_place = value(node, attribute, truth_of(attribute), "truth value");
    } else if (name == chakra_attribute::counts) {
      whole_.counts.push_back(value(node, attribute, counts_of(attribute), "list of counts"));
      node.counts = static_cast<std::uint32_t>(whole_.counts.size() - 1);
    }
  }

  void read_process_groups(const TraceNode& node) {
    ProcessGroups found;
    try {
      found = process_groups_of(node_.inputs().values());
    } catch (const Error& error) {
      fail_at(node, "{}", error.what());
    }
    for (auto& [name, members] : found.groups) own_groups_[name] = std::move(members);
    if (found.all_ranks.has_value()) told_.ranks = found.all_ranks;
  }

  std::uint32_t group_of(const TraceNode& node) {
    const auto place = static_cast<std::size_t>(&node - trace_.nodes.data());
    const std::uint32_t number = group_names_[place];
    const auto known = group_numbers_.find(number);
    if (known != group_numbers_.end()) return known->second;
    const std::string& name = whole_.names[number];
    const std::vector<Rank>* members = find(own_groups_, name);
    if (members == nullptr) members = find(common_groups_, name);
    if (members == nullptr && name != all_ranks_group) {
      fail_at(node, "no ranks are known of the process group {}: neither a METADATA_NODE nor --comm-groups has them",
              name);
    }
    std::uint32_t group = TraceNode::world;
    if (members != nullptr && !members->empty()) {
      const auto same = std::find_if(whole_.groups.begin() + 1, whole_.groups.end(),
                                     [&](const auto& other) { return other.name == name && other.ranks == *members; });
      group = static_cast<std::uint32_t>(same - whole_.groups.begin());
      if (same == whole_.groups.end()) whole_.groups.push_back({name, *members});
    }
    group_numbers_.emplace(number, group);
    return group;
  }

  static const std::vector<Rank>* find(const ChakraGroups& groups, const std::string& name) {
    const auto found = groups.find(name);
    return found == groups.end() ? nullptr : &found->second;
  }

  static constexpr std::uint64_t most_ranks = 1U << 20U;

  std::string_view bytes_;
  std::optional<Rank> rank_;
  std::size_t place_ = 0;
  const ChakraSpec& spec_;
  const ChakraGroups& common_groups_;
  ExecutionTrace& whole_;
  RankTrace& trace_;
  DependencyList dependencies_;
  format::Node node_;
  ChakraGroups own_groups_;
  std::vector<std::uint32_t> group_names_;                // of nodes, as numbers of names
  std::map<std::uint32_t, std::uint32_t> group_numbers_;  // by these
  std::optional<std::size_t> launch_;                     // the first of the CPU's nodes that launch communication
  bool device_communicates_ = false;
  bool is_own_ = false;  // hcclsim wrote it
  bool priorities_ = false;
  bool has_both_lists_ = false;
  Told told_;
};

}  // namespace

std::optional<Rank> add_chakra(const ChakraFile& file, const ChakraSpec& spec, const ChakraGroups& groups,
                               ExecutionTrace& trace) {
  if (trace.groups.empty()) trace.groups.push_back(hccl::world_communicator(0));
  return FileReader(file, spec, groups, trace).read().ranks;
}

ExecutionTrace read_chakra(const ChakraSpec& spec) {
  const ChakraFiles files = find_chakra(spec.path);
  const auto number = static_cast<Rank>(files.paths.size());
  if (files.for_all && spec.ranks == 0) {
    bad_input("trace", "{}: one file for all ranks; say with --ranks how many there are", spec.path);
  }
  if (!files.for_all && spec.ranks != 0 && spec.ranks != number) {
    bad_input("trace", "{}: --ranks {}, but there are the files of {}", spec.path, spec.ranks, counted(number, "rank"));
  }
  const std::string groups_file = spec.groups_file.empty() ? find_chakra_groups(files.folder) : spec.groups_file;
  const ChakraGroups groups = groups_file.empty() ? ChakraGroups{} : read_chakra_groups(groups_file);
  ExecutionTrace trace;
  const Rank ranks = files.for_all ? spec.ranks : number;
  for (Rank rank = 0; rank < number; ++rank) {
    const std::string bytes = InputFile(files.paths[rank], "trace").text();
    ChakraFile file{.bytes = bytes, .name = files.paths[rank]};
    if (!files.for_all) file.rank = rank;
    const Rank told = add_chakra(file, spec, groups, trace).value_or(ranks);
    if (told == ranks) continue;
    if (files.for_all) {
      bad_input("trace", "{}: it is of {}, but would be replayed on {}; give the folder of all files, or --ranks {}",
                file.name, counted(told, "rank"), ranks, told);
    }
    bad_input("trace", "{}: it is of {} ranks, but there are the files of {}", file.name, told, ranks);
  }
  for (Rank rank = 0; rank < ranks; ++rank) trace.trace_of.push_back(files.for_all ? 0 : rank);
  trace.groups.front() = hccl::world_communicator(ranks);
  if (files.for_all) trace.notes.push_back(fmt::format("one file for all {} ranks", ranks));
  return trace;
}

}  // namespace hcclsim::study
