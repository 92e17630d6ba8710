#pragma once

#include <pugixml.hpp>
#include <string>

#include "sim/platform/problems.hpp"

/// The form of a platform file: which tags SimGrid knows, where they may stand, and the type of every attribute. Tags
/// that SimGrid 3.32 has dropped, or that hcclsim cannot use, say so.
namespace hcclsim::sim {

/// Checks every element and attribute of a document that has a root; it must have been read with parse_fragment,
/// parse_declaration and parse_doctype, so that what stands outside the root is there. `directory` is where the
/// platform file lies: profile files are looked for there and in the working directory, as SimGrid does.
void check_schema(const pugi::xml_document& document, const std::string& directory, PlatformProblems& problems);

/// Byte offset of an element's name in the file.
[[nodiscard]] inline std::ptrdiff_t place(const pugi::xml_node& node) { return node.offset_debug(); }

}  // namespace hcclsim::sim
