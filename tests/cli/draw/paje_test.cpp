#include "cli/draw/paje.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "study/run/run.hpp"

namespace hcclsim::cli {
namespace {

/// The fields of a line; those in quotes may hold blanks.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::string field;
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ' ' && !quoted) {
      fields.push_back(std::move(field));
      field.clear();
    } else {
      field += letter;
    }
  }
  fields.push_back(field);
  return fields;
}

/// An event by the names of its fields, as the file's own header defines them.
using PajeEvent = std::map<std::string, std::string>;

std::vector<PajeEvent> read_paje(const std::string& text) {
  std::map<std::string, std::pair<std::string, std::vector<std::string>>> definitions;  // by number
  std::vector<PajeEvent> events;
  std::istringstream lines(text);
  std::string line;
  std::string defining;
  while (std::getline(lines, line)) {
    if (line.starts_with('%')) {
      std::istringstream words(line.substr(1));
      std::string first;
      std::string second;
      std::string third;
      words >> first >> second >> third;
      if (first == "EventDef") {
        defining = third;
        definitions[third].first = second;
      } else if (first != "EndEventDef") {
        definitions[defining].second.push_back(first);
      }
      continue;
    }
    const std::vector<std::string> fields = fields_of(line);
    EXPECT_TRUE(definitions.contains(fields.front())) << line;
    const auto& [name, keys] = definitions[fields.front()];
    EXPECT_EQ(fields.size(), keys.size() + 1) << line;
    PajeEvent event{{"event", name}};
    for (std::size_t i = 0; i < keys.size() && i + 1 < fields.size(); ++i) event[keys[i]] = fields[i + 1];
    events.push_back(std::move(event));
  }
  return events;
}

std::string paje_of_pipeline() {
  study::RunSpec spec;
  spec.platform.file = "atlas800-9000";
  spec.model = {
      .name = "gpt2-small", .batch = 4, .sequence = 16, .layers = 4, .hidden = 128, .heads = 2, .vocabulary = 256};
  spec.step.framework = study::Framework::mindspore;
  spec.npus = 4;
  spec.simulation.iterations = 1;
  spec.step.shape.stages = 2;
  spec.parallel.micro_batches = 2;
  return study::on_experiment(spec, [](study::Experiment& experiment) {
    std::vector<Rank> ranks(experiment.npus);
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    study::RunWishes wishes;
    wishes.traced = ranks;
    const study::RunResult result = simulate_run(experiment, std::move(wishes));
    std::string text;
    write_paje(result.step.plan, result.step.trace, ranks, [&text](std::string_view piece) { text += piece; });
    return text;
  });
}

TEST(Paje, NamesThatItsQuotesCannotHold) {
  sim::Trace trace;
  trace.select({0}, 1, false);
  for (const char* const name : {"", "two\nlines", "a \"b\"", "ends \\"}) {
    trace.add({.name = trace.intern(name), .kind = sim::SpanKind::kernel, .start = 0, .end = 1e-6});
  }
  std::string text;
  write_paje({}, trace, {0}, [&text](std::string_view piece) { text += piece; });
  std::vector<std::string> names;
  for (const PajeEvent& event : read_paje(text)) {
    if (event.at("event") == "PajeDefineEntityValue" && event.at("Type") == "WORK") names.push_back(event.at("Name"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"no name", "two lines", "a 'b'", "ends \\"}));
}

TEST(Paje, FollowsItsOwnHeader) {
  const std::vector<PajeEvent> events = read_paje(paje_of_pipeline());
  std::map<std::string, std::string> containers;  // type of each
  std::map<std::string, std::string> values;      // type of each
  std::map<std::string, int> depth;               // of states, by container
  std::map<std::string, PajeEvent> begun;         // links
  std::map<std::string, int> links;               // that ended, by type
  double now = 0;
  for (const PajeEvent& event : events) {
    const std::string& kind = event.at("event");
    if (event.contains("Time")) {
      EXPECT_GE(std::stod(event.at("Time")), now);
      now = std::stod(event.at("Time"));
    }
    if (kind == "PajeDefineEntityValue") values[event.at("Alias")] = event.at("Type");
    if (kind == "PajeCreateContainer") {
      EXPECT_TRUE(event.at("Container") == "0" || containers.contains(event.at("Container")));
      containers[event.at("Alias")] = event.at("Type");
    } else if (kind == "PajePushState") {
      EXPECT_EQ(containers.at(event.at("Container")), event.at("Type") == "TASK" ? "PLANE" : "STREAM");
      EXPECT_EQ(values.at(event.at("Value")), event.at("Type"));
      ++depth[event.at("Container")];
      EXPECT_EQ(depth[event.at("Container")], 1);
    } else if (kind == "PajePopState") {
      --depth[event.at("Container")];
    } else if (kind == "PajeStartLink") {
      EXPECT_TRUE(containers.contains(event.at("StartContainer")));
      EXPECT_EQ(values.at(event.at("Value")), event.at("Type"));
      begun[event.at("Key")] = event;
    } else if (kind == "PajeEndLink") {
      ASSERT_TRUE(begun.contains(event.at("Key")));
      EXPECT_EQ(begun[event.at("Key")].at("Value"), event.at("Value"));
      EXPECT_NE(begun[event.at("Key")].at("StartContainer"), event.at("EndContainer"));
      ++links[event.at("Type")];
      begun.erase(event.at("Key"));
    } else if (kind == "PajeDestroyContainer") {
      EXPECT_EQ(containers.at(event.at("Name")), event.at("Type"));
      containers.erase(event.at("Name"));
    }
  }
  EXPECT_THAT(begun, testing::IsEmpty());
  EXPECT_THAT(containers, testing::IsEmpty());
  for (const auto& [container, open] : depth) EXPECT_EQ(open, 0) << container;
  // On two pairs of ranks two micro-batches forward and backward, and the table of tokens that both stages have:
  // its gradient one way, its weights the other.
  EXPECT_EQ(links["MESSAGE"], 2 * (2 * 2 + 2));
  EXPECT_GT(links["NOTIFY"], 0);
}

}  // namespace
}  // namespace hcclsim::cli
