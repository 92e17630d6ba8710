#include "cli/terminal/messages.hpp"

#include <cstdlib>
#include <utility>

namespace hcclsim::cli {

bool messages_are_json() {
  const char* const form = std::getenv("HCCLSIM_MESSAGES");
  return form != nullptr && std::string_view(form) == "json";
}

std::string json_message(std::string_view key, Json value) {
  Json message = Json::object();
  message.append(std::string(key), std::move(value));
  return message.dump() + '\n';
}

}  // namespace hcclsim::cli
