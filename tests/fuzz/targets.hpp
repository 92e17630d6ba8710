#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

/// Everything that hcclsim reads from outside, as functions of bytes: through the public functions that the command
/// calls. A good end is that the input is read, or refused with Error(bad_input). Whatever else comes out, an Error of
/// another code, another exception, a crash, a sanitizer's report, more than a GiB or some seconds, is a defect.
///
/// clang's libFuzzer calls them with inputs that it makes up (libfuzzer.cpp); the ordinary tests with those kept in
/// tests/data/fuzz (replay_test.cpp).
namespace hcclsim::fuzz {

using Input = std::span<const std::uint8_t>;

/// What became of an input; also a number, since fuzzers want one.
enum Verdict : std::uint8_t { accepted, refused };

// targets/base.cpp
int fuzz_config_file(Input input);
int fuzz_quantities(Input input);
// targets/platform.cpp
int fuzz_platform(Input input);
int fuzz_platform_edit(Input input);
// targets/data.cpp
int fuzz_gradients(Input input);
int fuzz_mnist(Input input);
int fuzz_cifar10(Input input);
int fuzz_image_file(Input input);
int fuzz_image_labels(Input input);
// targets/settings.cpp
int fuzz_rank_table(Input input);
int fuzz_split_lists(Input input);
int fuzz_hccl_variables(Input input);
// targets/schedule.cpp
int fuzz_schedule_text(Input input);
int fuzz_schedule_binary(Input input);
// targets/checkpoint.cpp
int fuzz_checkpoint(Input input);
int fuzz_checkpoint_records(Input input);
// targets/study.cpp
int fuzz_profile(Input input);
int fuzz_calibration_log(Input input);
int fuzz_communication(Input input);
int fuzz_baseline(Input input);
int fuzz_validation(Input input);
int fuzz_msjob(Input input);
// targets/traces.cpp
int fuzz_chakra(Input input);
int fuzz_goal(Input input);
// targets/sweep.cpp
int fuzz_sweep_rows(Input input);
int fuzz_sweep_grid(Input input);
// targets/options.cpp
int fuzz_option_texts(Input input);
// targets/foreign.cpp
int fuzz_onnx(Input input);
int fuzz_mindformers(Input input);
int fuzz_megatron(Input input);
// targets/loading.cpp
int fuzz_platform_loading(Input input);

[[nodiscard]] inline std::string text_of(Input input) { return {input.begin(), input.end()}; }

/// Reads an input: what `read` throws because of it makes it refused, whatever else it throws goes on.
template <typename Read>
Verdict attempt(const Read& read) {
  try {
    read();
    return accepted;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
    return refused;
  }
}

/// Throws unless something holds that must, whatever the input.
inline void require(bool holds, std::string_view what) {
  if (!holds) internal_error("{}", what);
}

}  // namespace hcclsim::fuzz
