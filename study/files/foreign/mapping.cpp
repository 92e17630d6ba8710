#include "study/files/foreign/mapping.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hcclsim::study {

std::vector<ConfigEntry> ForeignMapping::entries() const {
  std::vector<ConfigEntry> entries;
  entries.reserve(options.size());
  for (const MappedOption& option : options) {
    entries.push_back(
        {.section = {}, .key = option.option, .value = option.value, .place = option.place, .written = option.source});
  }
  return entries;
}

MappingWriter::MappingWriter(std::string program, std::string file, std::vector<std::string> ignored) {
  mapping_.program = std::move(program);
  mapping_.file = std::move(file);
  for (std::string& key : ignored) ignored_.emplace_back(std::move(key), false);
}

void MappingWriter::set(std::string source, std::string_view option, std::string value, std::uint32_t line) {
  mapping_.options.push_back({.source = std::move(source),
                              .option = std::string(option),
                              .value = std::move(value),
                              .place = fmt::format("{}:{}", mapping_.file, line)});
}

void MappingWriter::no_effect(std::string source, std::string reason) {
  mapping_.without_effect.push_back({std::move(source), std::move(reason)});
}

void MappingWriter::leave_out(std::string source, std::string reason) {
  mapping_.left_out.push_back({std::move(source), std::move(reason)});
}

void MappingWriter::refuse(std::string_view key, std::string source, std::string_view reason, std::uint32_t line) {
  refuse(std::vector<std::string>{std::string(key)}, std::move(source), reason, line);
}

void MappingWriter::refuse(const std::vector<std::string>& keys, std::string source, std::string_view reason,
                           std::uint32_t line) {
  bool leaves_out = false;
  for (auto& [ignored, used] : ignored_) {
    if (std::ranges::find(keys, ignored) == keys.end()) continue;
    used = true;
    leaves_out = true;
  }
  if (leaves_out) {
    leave_out(std::move(source), fmt::format("left out as --ignore-keys says: {}", reason));
    return;
  }
  std::string text = fmt::format("{}:{}: {}: {}", mapping_.file, line, source, reason);
  if (std::ranges::find(refused_, text, &Refusal::text) == refused_.end())
    refused_.push_back({keys.front(), std::move(text)});
}

void MappingWriter::throw_refusals() const {
  if (refused_.empty()) return;
  std::vector<std::string> keys;
  for (const Refusal& refusal : refused_) {
    if (std::ranges::find(keys, refusal.key) == keys.end()) keys.push_back(refusal.key);
  }
  const std::string list = fmt::format("{}", fmt::join(keys, ","));
  if (refused_.size() == 1) bad_input("foreign", "{}; --ignore-keys {} leaves it out", refused_[0].text, list);
  std::string lines;
  for (const Refusal& refusal : refused_) lines += "\n  " + refusal.text;
  bad_input("foreign", "{}: {} keys have no counterpart; --ignore-keys {} leaves them out:{}", mapping_.file,
            refused_.size(), list, lines);
}

void MappingWriter::drop(std::string_view option, const std::string& reason) {
  for (const MappedOption& mapped : mapping_.options) {
    if (mapped.option == option) no_effect(mapped.source, reason);
  }
  std::erase_if(mapping_.options, [&](const MappedOption& mapped) { return mapped.option == option; });
}

bool MappingWriter::leaves_out(std::string_view words) const {
  return std::ranges::any_of(mapping_.left_out,
                             [&](const UnmappedKey& key) { return key.reason.find(words) != std::string::npos; });
}

std::optional<std::string> MappingWriter::value_of(std::string_view option) const {
  const auto found = std::ranges::find(mapping_.options, option, &MappedOption::option);
  return found == mapping_.options.end() ? std::nullopt : std::optional(found->value);
}

ForeignMapping MappingWriter::finish() && {
  throw_refusals();
  for (const auto& [key, used] : ignored_) {
    if (used) continue;
    bad_input("foreign", "--ignore-keys {}: {} has no such key that would be refused", key, mapping_.file);
  }
  return std::move(mapping_);
}

}  // namespace hcclsim::study
