#pragma once

#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <string>

#include "sim/platform/names.hpp"
#include "sim/platform/problems.hpp"

/// A platform file as its check has read it.
namespace hcclsim::sim {

struct PlatformDocument {
  explicit PlatformDocument(std::string file) : text(std::move(file)), problems(text) {}

  std::string text;
  PlatformProblems problems;
  pugi::xml_document document;
  std::optional<PlatformNames> names;  ///< once its form is right
};

/// Whether hosts of a file are NPUs, or edits are to make some.
enum class NpusOfFile : bool { are_there, are_to_come };

/// A file that has no fatal problem; else throws Error(bad_input, "platform") "FILE:LINE: message" for the first one,
/// with the number of the others.
[[nodiscard]] std::unique_ptr<PlatformDocument> valid_platform(const std::string& path,
                                                               NpusOfFile npus = NpusOfFile::are_there);

}  // namespace hcclsim::sim
