#include "models/data/picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::models {

namespace {

constexpr float mean = 0.5F;
constexpr float deviation = 0.25F;

/// One channel of the result: a channel of the picture, or its luminance.
std::vector<float> channel_of(const Picture& picture, std::uint32_t channel, std::uint32_t channels) {
  const std::uint64_t pixels = picture.size.pixels();
  const auto plane = [&](std::uint32_t c) { return std::span(picture.values).subspan(c * pixels, pixels); };
  if (channels == picture.size.channels || picture.size.channels == 1) {
    const auto values = plane(picture.size.channels == 1 ? 0 : channel);
    return {values.begin(), values.end()};
  }
  std::vector<float> grey(pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    grey[i] = 0.299F * plane(0)[i] + 0.587F * plane(1)[i] + 0.114F * plane(2)[i];
  }
  return grey;
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

void resize(std::span<const float> plane, const PictureSize& size, const Shape& shape, std::span<float> out) {
  const std::vector<Place> rows = places(size.height, shape.height());
  const std::vector<Place> columns = places(size.width, shape.width());
  std::size_t i = 0;
  for (const Place& y : rows) {
    const auto above = plane.subspan(std::size_t{y.before} * size.width, size.width);
    const auto below = plane.subspan(std::size_t{y.behind} * size.width, size.width);
    for (const Place& x : columns) {
      const float upper = above[x.before] + x.share * (above[x.behind] - above[x.before]);
      const float lower = below[x.before] + x.share * (below[x.behind] - below[x.before]);
      out[i++] = upper + y.share * (lower - upper);
    }
  }
}

}  // namespace

Picture picture_of(const PictureSize& size, std::span<const std::uint8_t> bytes) {
  Picture picture{size, std::vector<float>(bytes.size())};
  std::ranges::transform(bytes, picture.values.begin(),
                         [](std::uint8_t value) { return static_cast<float>(value) / 255; });
  return picture;
}

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
    std::ranges::copy(picture.values, out.begin());
  } else {
    const std::uint64_t pixels = form.shape.image();
    for (std::uint32_t channel = 0; channel < form.shape.channels(); ++channel) {
      resize(channel_of(picture, channel, form.shape.channels()), picture.size, form.shape,
             out.subspan(channel * pixels, pixels));
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
