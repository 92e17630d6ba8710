#pragma once

#include <string>

#include "study/files/context/auto_parallel_context.hpp"

namespace hcclsim::study {

/// Does to a context what the calls of Python's text do, in their order, as far as they are MindSpore's: by a name that
/// an import from mindspore gives them, or behind one that no import gives to something else (ms, context). All other
/// code is passed over. What stands under a condition counts, with a warning, unless a literal says that it does not
/// hold; branches must not differ. Throws Error(bad_input, "context") for what is no Python, arguments that are no
/// literals, branches that differ, and texts without a call of set_auto_parallel_context; or what
/// AutoParallelContext::set() throws; `path` and line come first.
void read_python_context(const std::string& path, const std::string& text, AutoParallelContext& context);

}  // namespace hcclsim::study
