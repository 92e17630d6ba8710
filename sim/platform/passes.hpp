#pragma once

#include <string>

#include "sim/platform/document.hpp"
#include "sim/platform/names.hpp"

/// The passes of the check of a platform file, each in a file of its own.
namespace hcclsim::sim {

/// The form of a document that has a root: which tags SimGrid knows, where they may stand, and the type of every
/// attribute. Tags that SimGrid 3.32 has dropped, or that hcclsim cannot use, say so, and so do profiles. The document
/// must have been read with parse_fragment, parse_declaration and parse_doctype, so that what stands outside the root
/// is there.
void check_schema(const pugi::xml_document& document, PlatformProblems& problems);

/// Every route: that its ends and links exist and stand where the route can use them, that none is given twice, that
/// its zone's routing takes it, and that every two NPUs are joined. The last check looks at one zone at a time: for an
/// inner zone it asks only for a zoneRoute that leads to it, and for Floyd and Dijkstra zones that the graph is
/// connected in both directions.
void check_routes(const PlatformNames& names, PlatformProblems& problems);

/// The properties that hcclsim reads: chip, server and device of the NPUs, the kind and the speeds of links, and what
/// the outermost zone says for all of them. Properties that hcclsim does not know are left alone.
void check_properties(const pugi::xml_node& platform, const PlatformNames& names, NpusOfFile npus,
                      PlatformProblems& problems);

}  // namespace hcclsim::sim
