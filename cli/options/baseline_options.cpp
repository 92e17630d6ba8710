#include "cli/options/baseline_options.hpp"

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/overwriting.hpp"

namespace hcclsim::cli {

void add_baseline_options(Command& command, BaselineOptions& options) {
  command.begin_group("Regression");
  command.add("--baseline", read_file(options.file),
              "Compare with a stored result, what --format json printed; exit status 1 if a figure differs");
  command.add("--tolerance", number(options.tolerance, 0, 1), "Relative difference from the baseline that is accepted")
      .with_default();
  command.add("--junit", written_file(options.junit), "Result as JUnit XML for CI systems");
}

void check_baseline_options(const Command& command, const BaselineOptions& options) {
  if (command.get("--tolerance").asks() && options.file.empty()) {
    bad_input("option", "--tolerance is that of a comparison; give --baseline FILE too");
  }
  if (options.junit == "-") bad_input("option", "--junit -: standard output is taken by the report; give a file");
}

}  // namespace hcclsim::cli
