#include "study/communication/replay/chakra/read_chakra.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "study/communication/replay/chakra/write_chakra.hpp"
#include "tests/study/communication/replay/replayed.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using test::chakra_file;
using test::ChakraNode;
using test::collective_node;
using test::compute_node;
using test::integer;
using test::Message;
using test::refusal;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Reads the bytes of one file.
ExecutionTrace read_bytes(const std::string& bytes, const ChakraSpec& spec = {}, const ChakraGroups& groups = {}) {
  ExecutionTrace trace;
  add_chakra({.bytes = bytes, .name = "t.0.et", .rank = 0}, spec, groups, trace);
  trace.trace_of = {0};
  return trace;
}

ExecutionTrace read_nodes(const std::vector<ChakraNode>& nodes, const ChakraSpec& spec = {},
                          const ChakraGroups& groups = {}) {
  return read_bytes(chakra_file(nodes), spec, groups);
}

std::string refused_nodes(const std::vector<ChakraNode>& nodes) {
  return refusal("trace", [&] { static_cast<void>(read_nodes(nodes)); });
}

std::string refused_bytes(const std::string& bytes) {
  return refusal("trace", [&] { static_cast<void>(read_bytes(bytes)); });
}

TEST(ReadChakra, NodesHaveTheirFields) {
  ChakraNode work = compute_node(0, 25);
  work.name = "matmul";
  work.attributes = {integer("num_ops", 1'000'000), integer("tensor_size", 4096)};
  ChakraNode cpu = compute_node(7, 3, {0});
  cpu.attributes = {Message().text(1, "is_cpu_op").varint(27, 1).bytes()};
  const ExecutionTrace trace = read_nodes({work, cpu, test::send_node(9, 1, 64, {0, 7}, 5)});
  const std::vector<TraceNode>& nodes = trace.of(0).nodes;
  ASSERT_EQ(nodes.size(), 3);
  EXPECT_EQ(nodes[0].kind, NodeKind::compute);
  EXPECT_EQ(nodes[0].id, 0);  // which is not on the wire
  EXPECT_EQ(trace.names[nodes[0].name], "matmul");
  EXPECT_DOUBLE_EQ(nodes[0].duration, 25e-6);
  EXPECT_EQ(nodes[0].flops, 1e6);
  EXPECT_EQ(nodes[0].bytes, 4096);
  EXPECT_TRUE(nodes[1].host);
  EXPECT_THAT(trace.of(0).ends_before(nodes[1]), ElementsAre(0));
  EXPECT_EQ(nodes[2].kind, NodeKind::send);
  EXPECT_EQ(nodes[2].peer, 1);
  EXPECT_EQ(nodes[2].tag, 5);
  EXPECT_EQ(nodes[2].bytes, 64);
  EXPECT_THAT(trace.of(0).ends_before(nodes[2]), ElementsAre(0, 1));
}

TEST(ReadChakra, AnyIntegerTypeIsRead) {
  // Fields of int32_val, int64_val, uint32_val, uint64_val, of zigzag forms, and a text for a group.
  for (const std::uint32_t field : {7U, 9U, 11U, 13U}) {
    ChakraNode node = collective_node(1, test::chakra::all_gather, 0);
    node.attributes.back() = Message().text(1, "comm_size").varint(field, 1000).bytes();
    EXPECT_EQ(read_nodes({node}).of(0).nodes[0].bytes, 1000) << field;
  }
  for (const std::uint32_t field : {15U, 17U}) {
    ChakraNode node = collective_node(1, test::chakra::all_gather, 0);
    node.attributes.back() = Message().text(1, "comm_size").varint(field, 2000).bytes();
    EXPECT_EQ(read_nodes({node}).of(0).nodes[0].bytes, 1000) << field;
  }
}

TEST(ReadChakra, CollectivesAndTheirGroups) {
  const ChakraGroups groups{{"3", {0, 2}}};
  const ExecutionTrace trace =
      read_nodes({collective_node(1, test::chakra::reduce_scatter, 64, {}, "3"), collective_node(2, 8, 64, {1}, "0"),
                  collective_node(3, test::chakra::barrier, 0, {2})},
                 {}, groups);
  const std::vector<TraceNode>& nodes = trace.of(0).nodes;
  EXPECT_EQ(nodes[0].collective, hccl::Collective::reduce_scatter);
  EXPECT_THAT(trace.groups[nodes[0].group].ranks, ElementsAre(0, 2));
  EXPECT_EQ(nodes[1].collective, hccl::Collective::reduce_scatter);  // REDUCE_SCATTER_BLOCK
  EXPECT_EQ(nodes[1].group, TraceNode::world);
  EXPECT_EQ(nodes[2].collective, hccl::Collective::barrier);
}

TEST(ReadChakra, GroupsOfMetadata) {
  ChakraNode groups{.id = 1, .type = test::chakra::metadata};
  groups.values = R"([{"pg_name": "5", "ranks": [4, 6], "group_size": 2}])";
  const ExecutionTrace trace = read_nodes({collective_node(2, 0, 64, {}, "5"), groups});
  EXPECT_THAT(trace.groups[trace.of(0).nodes[0].group].ranks, ElementsAre(4, 6));
  EXPECT_EQ(trace.of(0).nodes[1].kind, NodeKind::metadata);
}

/// The ranks of group 5, which a node's values tell.
std::vector<Rank> ranks_of_group(const std::string& values) {
  ChakraNode groups{.id = 1, .type = test::chakra::metadata};
  groups.values = values;
  const ExecutionTrace trace = read_nodes({groups, collective_node(2, 0, 64, {}, "5")});
  return trace.groups[trace.of(0).nodes[1].group].ranks;
}

TEST(ReadChakra, GroupsAsTheConverterPrintsThem) {
  const std::string json = R"([{"pg_name": "0", "ranks": [], "group_size": 8}, {"pg_name": "5", "ranks": [4, 6]}])";
  EXPECT_THAT(ranks_of_group(json), ElementsAre(4, 6));
  EXPECT_THAT(ranks_of_group("['" + json + "']"), ElementsAre(4, 6));  // Python's str() of a list of texts
  EXPECT_THAT(ranks_of_group("[[" + json + "]]"), ElementsAre(4, 6));
  EXPECT_THAT(ranks_of_group(R"(["[{\"pg_name\": \"5\", \"ranks\": [4, 6]}]"])"), ElementsAre(4, 6));
  EXPECT_THAT(ranks_of_group("[[{'pg_name': '5', 'pg_desc': 'it\\'s', 'ranks': [4, 6], 'config': None, 'on': True}]]"),
              ElementsAre(4, 6));
  EXPECT_THAT(ranks_of_group(R"(['[{"pg_name": "5", "pg_desc": "a \\"b\\"", "ranks": {"4": 0, "6": 1}}]'])"),
              ElementsAre(4, 6));
  ChakraNode node{.id = 1, .type = test::chakra::metadata};
  for (const char* const ranks : {"[0, -1]", "[0, \"a\"]", "[1.5]", "{\"x\": 0}", "[18446744073709551615]"}) {
    node.values = fmt::format(R"([{{"pg_name": "5", "ranks": {}}}])", ranks);
    EXPECT_THAT(refused_nodes({node}), AllOf(HasSubstr("node 1"), HasSubstr("in the place of a rank"))) << ranks;
  }
  for (const char* const other : {"", "[", "[]", "[1, 2]", "['x", "{}", "[[[[[[]]]]]]", "None", "['[']", "[\\"}) {
    node.values = other;
    EXPECT_EQ(read_nodes({node}).groups.size(), 1) << other;
  }
}

TEST(ReadChakra, ACallerThatIsNotInTheFile) {
  ChakraNode node = compute_node(2, 1);
  node.control = {1};
  EXPECT_THAT(refused_nodes({node}),
              AllOf(HasSubstr("node 2 waits for node 1, which is not in the file"), HasSubstr("--dependencies data")));
  EXPECT_EQ(read_nodes({node}, {.dependencies = ChakraDependencies::data}).of(0).nodes.size(), 1);
}

TEST(ReadChakra, WhichDependenciesCount) {
  ChakraNode last = compute_node(3, 1, {1});
  last.control = {2, 1};
  const std::vector<ChakraNode> nodes{compute_node(1, 1), compute_node(2, 1), last};
  const auto number = [&](ChakraDependencies dependencies) {
    return read_nodes(nodes, {.dependencies = dependencies}).of(0).nodes[2].dependencies;
  };
  EXPECT_EQ(number(ChakraDependencies::both), 2);  // those in both lists once
  EXPECT_EQ(number(ChakraDependencies::data), 1);
  EXPECT_EQ(number(ChakraDependencies::control), 2);
}

TEST(ReadChakra, StreamsOfNodesIfTheyAreAskedFor) {
  ChakraNode node = compute_node(1, 1);
  node.attributes = {integer("stream", 7)};
  EXPECT_EQ(read_nodes({node}).of(0).nodes[0].stream, TraceNode::by_kind);
  EXPECT_EQ(read_nodes({node}, {.node_streams = true}).of(0).nodes[0].stream, 7);
}

TEST(ReadChakra, LongMetadata) {
  const std::string bytes = Message().text(1, std::string(40'000, 'x')).delimited() + compute_node(1, 1).delimited();
  EXPECT_EQ(read_bytes(bytes).of(0).nodes.size(), 1);
}

TEST(ReadChakra, DamagedFiles) {
  const std::string whole = chakra_file({compute_node(1, 50), compute_node(2, 50, {1})});
  EXPECT_THAT(refused_bytes(""), HasSubstr("t.0.et: the file is empty"));
  EXPECT_THAT(refused_bytes(whole.substr(0, whole.size() - 3)), HasSubstr("only"));
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    const bool between = cut == whole.size() - compute_node(2, 50, {1}).delimited().size();
    if (between) continue;  // a shorter trace that is whole
    EXPECT_THAT(refused_bytes(whole.substr(0, cut)), HasSubstr("t.0.et")) << cut;
  }
  EXPECT_THAT(refused_bytes(chakra_file({})), HasSubstr("there are no nodes"));
  EXPECT_THAT(refused_bytes(compute_node(1, 1).delimited()), HasSubstr("its first message is a node"));
  EXPECT_THAT(refused_bytes(std::string("\xff\xff\xff\xff\xff\xff\xff", 7)), HasSubstr("no Chakra trace"));
  EXPECT_THAT(refused_bytes("random bytes that are no trace"), HasSubstr("t.0.et"));
  EXPECT_THAT(refused_bytes(Message().delimited() + Message().text(1, "id").delimited() + Message().delimited()),
              HasSubstr("t.0.et"));
}

TEST(ReadChakra, WrongGraphs) {
  EXPECT_THAT(refused_nodes({compute_node(1, 1), compute_node(1, 2)}),
              HasSubstr("t.0.et: node 1 has the id of an earlier node"));
  EXPECT_THAT(refused_nodes({compute_node(1, 1, {4})}), HasSubstr("node 1 waits for node 4, which is not in the file"));
  EXPECT_THAT(
      refused_nodes({compute_node(5, 1), compute_node(1, 1, {3}), compute_node(2, 1, {1}), compute_node(3, 1, {2})}),
      HasSubstr("nodes wait for each other in a circle: 3 waits for 2 waits for 1 waits for 3"));
  EXPECT_THAT(refused_nodes({compute_node(1, 1, {1})}), HasSubstr("1 waits for 1"));
}

TEST(ReadChakra, WrongNodes) {
  ChakraNode node{.id = 4, .type = 0};
  EXPECT_THAT(refused_nodes({node}), HasSubstr("node 4: it has no type (INVALID_NODE)"));
  node.type = 8;
  EXPECT_THAT(refused_nodes({node}), AllOf(HasSubstr("node 4"), HasSubstr("nodes of type 8 are not known")));
  EXPECT_TRUE(read_nodes({node}, {.unknown_is_host = true}).of(0).nodes[0].host);
  node = collective_node(1, 10, 8);
  EXPECT_THAT(refused_nodes({node}), HasSubstr("comm_type 10 is no collective"));
  node.attributes.erase(node.attributes.begin());
  EXPECT_THAT(refused_nodes({node}), HasSubstr("it lacks the attribute comm_type"));
  EXPECT_THAT(refused_nodes({collective_node(1, 2, 0)}), HasSubstr("a collective of 0 bytes"));
  EXPECT_THAT(refused_nodes({collective_node(1, 2, -8)}), HasSubstr("comm_size is negative: -8"));
  EXPECT_THAT(refused_nodes({collective_node(1, 2, std::int64_t{1} << 62)}),
              HasSubstr("comm_size is 4611686018427387904"));
  EXPECT_THAT(refused_nodes({compute_node(1, ~std::uint64_t{0} - 4)}), HasSubstr("(-5 with its sign)"));
  EXPECT_THAT(refused_nodes({compute_node(1, std::uint64_t{1} << 60)}), HasSubstr("duration_micros is"));
  EXPECT_THAT(refused_nodes({collective_node(1, 2, 8, {}, "9")}),
              HasSubstr("no ranks are known of the process group 9"));
  node = collective_node(1, 2, 8);
  node.attributes.back() = Message().text(1, "comm_size").fixed64(3, 8.0).bytes();
  EXPECT_THAT(refused_nodes({node}), HasSubstr("the attribute comm_size is no integer"));
  node = collective_node(1, 2, 8);
  node.attributes.push_back(Message().text(1, "is_cpu_op").varint(27, 1).bytes());
  EXPECT_THAT(refused_nodes({node}),
              HasSubstr("a task of the CPU (is_cpu_op) cannot communicate, and no node of the NPU does"));
  node = collective_node(1, 2, 8);
  node.attributes.push_back(
      Message().text(1, "involved_dim").text(28, Message().varint(1, 1).varint(1, 0).bytes()).bytes());
  EXPECT_THAT(refused_nodes({node}), HasSubstr("involved_dim leaves out dimensions"));
  node.attributes.back() = integer("involved_dim", 1);
  EXPECT_THAT(refused_nodes({node}), HasSubstr("the attribute involved_dim is no list of truth values"));
  node = test::send_node(1, 1, 8);
  node.attributes.pop_back();
  EXPECT_THAT(refused_nodes({node}), HasSubstr("it lacks the attribute comm_tag"));
  node = test::send_node(1, 1, 8);
  node.attributes.push_back(integer("comm_src", 3));
  EXPECT_THAT(refused_nodes({node}), HasSubstr("comm_src is 3, but the file is that of rank 0"));
}

/// A folder with these files.
std::string folder_of(const std::string& name, const std::vector<std::string>& files) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::create_directories(folder);
  for (const std::string& file : files) std::ofstream(folder / file) << chakra_file({compute_node(1, 1)});
  return folder.string();
}

TEST(ReadChakra, FilesOfRanks) {
  const std::string folder = folder_of("three", {"a.0.et", "a.1.et", "a.2.et", "note.txt"});
  EXPECT_EQ(read_chakra({.path = folder}).ranks(), 3);
  EXPECT_EQ(read_chakra({.path = folder + "/a"}).ranks(), 3);
  EXPECT_EQ(read_chakra({.path = folder, .ranks = 3}).ranks(), 3);
  EXPECT_EQ(read_chakra({.path = folder + "/a.1.et", .ranks = 5}).ranks(), 5);  // one for all
  const auto refused = [](const ChakraSpec& spec) {
    return refusal("trace", [&] { static_cast<void>(read_chakra(spec)); });
  };
  EXPECT_THAT(refused({.path = folder, .ranks = 4}), HasSubstr("--ranks 4, but there are the files of 3 ranks"));
  EXPECT_THAT(refused({.path = folder + "/a.1.et"}), HasSubstr("say with --ranks"));
  EXPECT_THAT(refused({.path = folder + "/b"}), HasSubstr("there is no such file"));
  EXPECT_THAT(refused({.path = folder_of("gap", {"a.0.et", "a.2.et"})}),
              HasSubstr("a.1.et is missing, though there is one of rank 2"));
  EXPECT_THAT(refused({.path = folder_of("first", {"a.1.et"})}), HasSubstr("a.0.et is missing"));
  EXPECT_THAT(refused({.path = folder_of("two", {"a.0.et", "b.0.et"})}), HasSubstr("the folder has several traces"));
  EXPECT_THAT(refused({.path = folder_of("none", {})}), HasSubstr("no PREFIX.0.et in the folder"));
}

TEST(ReadChakra, FilesOfFewerRanksThanTheyTell) {
  ChakraNode node{.id = 1, .type = test::chakra::metadata};
  node.values = R"(['[{"pg_name": "0", "ranks": [], "group_size": 4}]'])";
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "four";
  std::filesystem::create_directories(folder);
  for (int rank = 0; rank < 4; ++rank) {
    if (rank > 0) {
      EXPECT_THAT(refusal("trace", [&] { static_cast<void>(read_chakra({.path = folder.string()})); }),
                  HasSubstr(fmt::format("it is of 4 ranks, but there are the files of {}", rank)));
    }
    std::ofstream(folder / fmt::format("a.{}.et", rank)) << chakra_file({node});
  }
  EXPECT_EQ(read_chakra({.path = folder.string()}).ranks(), 4);
}

TEST(ReadChakra, GroupsFile) {
  const std::string path = test::write_temporary("groups.json", R"({"1": [0, 1], "2": [2]})");
  EXPECT_THAT(read_chakra_groups(path).at("1"), ElementsAre(0, 1));
  const auto refused = [](const std::string& text) {
    return refusal("trace", [&] { static_cast<void>(read_chakra_groups(test::write_temporary("bad.json", text))); });
  };
  EXPECT_THAT(refused("[]"), HasSubstr("it is to be an object"));
  EXPECT_THAT(refused(R"({"1": 3})"), HasSubstr("group 1 is no list of ranks"));
  EXPECT_THAT(refused(R"({"1": [-3]})"), HasSubstr("group 1 is no list of ranks"));
  EXPECT_THAT(refused(R"({"1": []})"), HasSubstr("group 1 has no ranks"));
}

TEST(WriteChakra, WhatIsWrittenIsReadAgain) {
  ChakraNode work = compute_node(3, 25);
  work.name = "matmul";
  work.attributes = {integer("num_ops", 1'000'000)};
  const ChakraGroups groups{{"1", {0, 1}}};
  const ExecutionTrace trace = read_nodes(
      {work, collective_node(5, 7, 64, {3}, "1"), test::send_node(6, 1, 8, {5}, 2), test::receive_node(8, 1, 16)}, {},
      groups);
  const std::string written = chakra_bytes(trace, 0);
  const ExecutionTrace again = read_bytes(written, {}, groups);
  EXPECT_EQ(chakra_bytes(again, 0), written);
  ASSERT_EQ(again.of(0).nodes.size(), 4);
  EXPECT_DOUBLE_EQ(again.of(0).nodes[0].duration, 25e-6);
  EXPECT_EQ(again.of(0).nodes[1].collective, hccl::Collective::reduce_scatter);
  EXPECT_EQ(again.of(0).nodes[3].bytes, 16);
  // Cut off between two nodes: the head tells how many there are.
  bool told = false;
  for (std::size_t cut = 1; cut < written.size(); ++cut) {
    const std::string refused = refused_bytes(written.substr(0, cut));
    EXPECT_THAT(refused, HasSubstr("t.0.et")) << cut;
    told = told || refused.find("there are 3 nodes, but its head tells of 4: the file is cut off") != std::string::npos;
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace hcclsim::study
