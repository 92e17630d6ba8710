#include "study/jobs/job/failures.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

}  // namespace

Seconds parse_job_time(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Seconds>, 3> units{{{"m", 60}, {"h", 3600}, {"d", 86400}}};
  Seconds time = 0;
  bool found = false;
  const std::optional<Quantity> quantity = parse_quantity(text);
  for (const auto& [unit, seconds] : units) {
    if (!quantity.has_value() || quantity->unit != unit) continue;
    time = quantity->number * seconds;
    found = true;
  }
  if (!found) time = parse_duration(text);
  constexpr Seconds most = 1e10;  // three centuries
  if (time < 0 || time > most) bad_input("option", "'{}' is no time; give one such as 30s, 5m or 2h", printable(text));
  return time;
}

JobFailure parse_job_failure(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  JobFailure failure;
  if (words.size() == 4 && words[0] == "host" && words[2] == "at") {
    failure.kind = JobFailure::Kind::host;
    failure.target = words[1];
    failure.date = parse_job_time(words[3]);
    return failure;
  }
  if (words.size() != 5 || words[1] != "exit" || words[3] != "at") {
    bad_input("option", "'{}' is no failure; accepted: 'worker-1 exit 137 at 30s', 'host server0 at 1m'",
              printable(text));
  }
  constexpr std::int32_t most = 255;
  const std::optional<std::int32_t> code = parse_number<std::int32_t>(words[2]);
  if (!code.has_value() || *code < 1 || *code > most) {
    bad_input("option", "'{}' is no exit code of a failure; accepted: 1 to {}", printable(words[2]), most);
  }
  failure.target = words[0];
  failure.exit_code = *code;
  failure.date = parse_job_time(words[4]);
  return failure;
}

std::vector<JobFailure> parse_job_failures(const std::vector<std::string>& texts) {
  std::vector<JobFailure> failures;
  for (const std::string& text : texts) {
    if (trimmed(text) != "none") failures.push_back(parse_job_failure(text));
  }
  return failures;
}

}  // namespace hcclsim::study
