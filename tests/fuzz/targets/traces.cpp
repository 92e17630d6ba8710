// Execution traces: Chakra's files and GOAL's text.

#include <string>

#include "study/communication/replay/chakra/read_chakra.hpp"
#include "study/communication/replay/chakra/write_chakra.hpp"
#include "study/communication/replay/goal/read_goal.hpp"
#include "study/communication/replay/meetings.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {

/// A file that two ranks carry out, with some groups.
int fuzz_chakra(Input input) {
  const std::string bytes = text_of(input);
  return attempt([&] {
    const study::ChakraGroups groups{{"1", {0, 1}}, {"2", {1}}};
    study::ExecutionTrace trace;
    add_chakra({.bytes = bytes, .name = "t.et"}, {}, groups, trace);
    trace.groups.front() = hccl::world_communicator(2);
    trace.trace_of = {0, 0};
    const std::string written = chakra_bytes(trace, 0);
    study::ExecutionTrace again;
    add_chakra({.bytes = written, .name = "written.et"}, {}, groups, again);
    require(again.traces.front().nodes.size() == trace.traces.front().nodes.size(), "nodes are lost when written");
    const study::Meetings meetings(trace);
  });
}

int fuzz_goal(Input input) {
  const std::string text = text_of(input);
  return attempt([&] {
    const study::ExecutionTrace trace = study::parse_goal(text, "t.goal");
    require(trace.ranks() > 0, "a schedule without ranks");
    const study::Meetings meetings(trace);
  });
}

}  // namespace hcclsim::fuzz
