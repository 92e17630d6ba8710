#include "base/codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <map>

namespace hcclsim {
namespace {

enum class Colour : std::uint8_t { red, green };

struct CodecInner {
  std::string name{};
  std::optional<double> figure{};
  friend bool operator==(const CodecInner&, const CodecInner&) = default;
};

struct CodecOuter {
  bool flag = false;
  Colour colour = Colour::red;
  std::vector<CodecInner> items{};
  std::array<std::uint64_t, 2> counts{};
  std::map<std::string, std::pair<int, double>> table{};
  std::optional<CodecInner> inner{};
  std::tuple<> nothing{};
  friend bool operator==(const CodecOuter&, const CodecOuter&) = default;
};

const CodecOuter sample{true,
                        Colour::green,
                        {{std::string("a\0b\n", 4), 0.1}, {"", {}}},
                        {1, UINT64_MAX},
                        {{"x", {-3, 1e-300}}, {"y", {4, 0}}},
                        CodecInner{"c", {}},
                        {}};

TEST(Codec, KeepsStructsOfAllThatItTakes) {
  EXPECT_EQ(decoded<CodecOuter>(encoded(sample)), sample);
  EXPECT_EQ(decoded<std::vector<CodecOuter>>(encoded(std::vector{sample, CodecOuter{}, sample})),
            (std::vector{sample, CodecOuter{}, sample}));
}

TEST(Codec, KeepsAllBitsOfNumbers) {
  using Limits = std::numeric_limits<double>;
  for (const double number : {0.1, -0.0, 1 / 3.0, Limits::denorm_min(), Limits::infinity(), Limits::quiet_NaN()}) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(decoded<double>(encoded(number))), std::bit_cast<std::uint64_t>(number));
  }
}

TEST(Codec, RefusesBytesThatAreFewerOrMore) {
  const std::string bytes = encoded(sample);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(static_cast<void>(decoded<CodecOuter>(bytes.substr(0, size))), Error) << size;
  }
  EXPECT_THROW(static_cast<void>(decoded<CodecOuter>(bytes + '\0')), Error);
}

}  // namespace
}  // namespace hcclsim
