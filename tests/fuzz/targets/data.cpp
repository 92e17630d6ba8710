// Measured gradients, and data sets: MNIST, CIFAR-10, images.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "base/memory_file.hpp"
#include "models/data/dataset.hpp"
#include "models/data/image_file.hpp"
#include "models/profile.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/fuzz/scratch_folder.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

/// Opens a source for a small network and reads its first and last samples.
void read_samples(const std::string& source) {
  static const models::Graph graph = models::make_model({.name = "lenet", .batch = 2});
  const auto dataset = models::open_dataset(source, graph, 1);
  require(!dataset->describe().empty() && dataset->size() > 0, "a data set without description or samples");
  models::Batch batch;
  models::fill(batch, *dataset, std::vector<std::uint64_t>{0, dataset->size() - 1});
  require(std::ranges::all_of(batch.inputs, [](float x) { return x >= -2 && x <= 2; }), "a pixel out of its range");
}

}  // namespace

int fuzz_gradients(Input input) {
  const std::string text = text_of(input);
  return attempt([&] {
    const models::GradientProfile profile = models::parse_gradient_profile(text, "gradients.csv");
    require(!profile.gradients.empty(), "a profile without gradients");
    require(std::ranges::is_sorted(profile.gradients, {}, &models::ProfiledGradient::ready_s), "dates that decrease");
  });
}

/// The first two bytes are the number of bytes of the images' file; what follows it is the labels' file.
int fuzz_mnist(Input input) {
  static const ScratchFolder folder;
  if (input.size() < 2) return refused;
  const std::size_t images = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 2);
  folder.write("train-images-idx3-ubyte", text_of(input.subspan(2, images)));
  folder.write("train-labels-idx1-ubyte", text_of(input.subspan(2 + images)));
  return attempt([&] { read_samples("mnist:" + folder.path()); });
}

int fuzz_cifar10(Input input) {
  const MemoryFile file(text_of(input));
  return attempt([&] { read_samples("cifar10:" + file.path()); });
}

/// What takes more memory than this is only looked at, as --memory-limit would have it.
int fuzz_image_file(Input input) {
  constexpr Bytes most = Bytes{64} << 20U;
  const MemoryFile memory(text_of(input));
  return attempt([&] {
    const InputFile file(memory.path(), "data");
    if (models::read_image_header(file).decoding > most) return;
    const models::DecodedImage image(file);
    require(image.picture().size.elements() > 0, "an image without pixels");
  });
}

/// labels.txt beside two images.
int fuzz_image_labels(Input input) {
  static const ScratchFolder folder;
  folder.write("a.pgm", std::string("P5 2 2 255\n\x00\x40\x80\xff", 15));
  folder.write("b b.ppm", "P6 1 1 255\n\x10\x40\x80");
  folder.write("labels.txt", text_of(input));
  return attempt([&] { read_samples("images:" + folder.path()); });
}

}  // namespace hcclsim::fuzz
