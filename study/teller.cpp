#include "study/teller.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace hcclsim::study {

Teller::Teller(std::function<void()> tell)
    : process_([tell = std::move(tell)]() -> std::string {
        constexpr std::chrono::milliseconds distance{200};
        while (true) {
          std::this_thread::sleep_for(distance);
          tell();
        }
      }) {}

}  // namespace hcclsim::study
