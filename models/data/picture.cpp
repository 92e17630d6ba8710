#include "models/data/picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::models {

namespace {

constexpr float mean = 0.5F;
constexpr float deviation = 0.25F;

/// The value of a channel of the result at a pixel of the picture: of a channel of the picture, or its luminance.
float value_of(const Picture& picture, std::uint32_t channel, std::uint32_t channels, std::uint64_t pixel) {
  if (picture.size.channels == 1) return picture.value(0, pixel);
  if (channels == picture.size.channels) return picture.value(channel, pixel);
  return 0.299F * picture.value(0, pixel) + 0.587F * picture.value(1, pixel) + 0.114F * picture.value(2, pixel);
}

/// Where a pixel of a resized line lies between two pixels of the original.
struct Place {
  std::uint32_t before = 0;
  std::uint32_t behind = 0;
  float share = 0;  ///< of the one behind
};

std::vector<Place> places(std::uint32_t from, std::uint32_t to) {
  std::vector<Place> result(to);
  for (std::uint32_t i = 0; i < to; ++i) {
    const float centre = (static_cast<float>(i) + 0.5F) * static_cast<float>(from) / static_cast<float>(to) - 0.5F;
    const float position = std::clamp(centre, 0.0F, static_cast<float>(from - 1));
    const auto before = static_cast<std::uint32_t>(position);
    result[i] = {before, std::min(before + 1, from - 1), position - static_cast<float>(before)};
  }
  return result;
}

/// Makes a channel of the result; looks at the pixels that it needs alone.
void resize(const Picture& picture, std::uint32_t channel, const Shape& shape, std::span<float> out) {
  const PictureSize& size = picture.size;
  const std::vector<Place> rows = places(size.height, shape.height());
  const std::vector<Place> columns = places(size.width, shape.width());
  const auto at = [&](std::uint32_t row, std::uint32_t column) {
    return value_of(picture, channel, shape.channels(), std::uint64_t{row} * size.width + column);
  };
  std::size_t i = 0;
  for (const Place& y : rows) {
    for (const Place& x : columns) {
      const float above = at(y.before, x.before);
      const float below = at(y.behind, x.before);
      const float upper = above + x.share * (at(y.before, x.behind) - above);
      const float lower = below + x.share * (at(y.behind, x.behind) - below);
      out[i++] = upper + y.share * (lower - upper);
    }
  }
}

}  // namespace

void require_fit(std::string_view where, const PictureSize& size, const SampleForm& form) {
  if (form.kind == InputKind::features && size.elements() != form.elements()) {
    bad_input("data", "{}: images of {}x{}x{} have {} values, but the network takes {} features", where, size.channels,
              size.height, size.width, size.elements(), form.elements());
  }
  if (form.kind == InputKind::images && form.shape.channels() != 1 && form.shape.channels() != 3) {
    bad_input("data", "{}: images have 1 or 3 channels, but the network takes {}", where, form.shape.channels());
  }
}

void fit(const Picture& picture, const SampleForm& form, std::span<float> out) {
  if (form.kind == InputKind::features) {
    const std::uint64_t pixels = picture.size.pixels();
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = picture.value(static_cast<std::uint32_t>(i / pixels), i % pixels);
    }
  } else {
    const std::uint64_t pixels = form.shape.image();
    for (std::uint32_t channel = 0; channel < form.shape.channels(); ++channel) {
      resize(picture, channel, form.shape, out.subspan(channel * pixels, pixels));
    }
  }
  for (float& value : out) value = (value - mean) / deviation;
}

std::string describe(const PictureSize& size, const SampleForm& form) {
  std::string original = fmt::format("{}x{}x{}", size.channels, size.height, size.width);
  const Shape& shape = form.shape;
  const bool same = shape.channels() == size.channels && shape.height() == size.height && shape.width() == size.width;
  if (same || form.kind == InputKind::features) return original;
  return fmt::format("{} resized to {}x{}x{}", original, shape.channels(), shape.height(), shape.width());
}

}  // namespace hcclsim::models
