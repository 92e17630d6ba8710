#include "base/json_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim {
namespace {

/// "[json.exception…] parse error at line 2, column 3: syntax error while …" without what stands in brackets.
std::string_view without_id(std::string_view what) {
  const std::size_t bracket = what.find("] ");
  return bracket == std::string_view::npos ? what : what.substr(bracket + 2);
}

}  // namespace

template <typename Json>
Json parse_json_text(std::string_view text, const std::string& file, std::string_view kind,
                     const typename Json::parser_callback_t& see) {
  constexpr int deepest = 100;
  try {
    return Json::parse(text, [&](int depth, typename Json::parse_event_t event, Json& parsed) {
      using Event = typename Json::parse_event_t;
      const bool begins = event == Event::object_start || event == Event::array_start;
      if (begins && depth >= deepest) bad_input(kind, "{}: objects and lists are more than {} deep", file, deepest);
      if (see != nullptr) static_cast<void>(see(depth, event, parsed));
      return true;
    });
  } catch (const typename Json::parse_error& error) {
    // The place stands before the message.
    const std::string_view what = without_id(error.what());
    const std::size_t colon = what.find(": ");
    const std::string_view message = colon == std::string_view::npos ? what : what.substr(colon + 2);
    const std::string_view before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
    const std::string_view line = before.substr(before.rfind('\n') + 1);
    bad_input(kind, "{}:{}:{}: not JSON: {}", file, std::count(before.begin(), before.end(), '\n') + 1, line.size() + 1,
              printable(message));
  } catch (const typename Json::exception& error) {
    bad_input(kind, "{}: {}", file, printable(without_id(error.what())));
  }
}

template nlohmann::json parse_json_text<nlohmann::json>(std::string_view, const std::string&, std::string_view,
                                                        const nlohmann::json::parser_callback_t&);
template nlohmann::ordered_json parse_json_text<nlohmann::ordered_json>(
    std::string_view, const std::string&, std::string_view, const nlohmann::ordered_json::parser_callback_t&);

}  // namespace hcclsim
