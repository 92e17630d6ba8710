// Folders of images in the Netpbm formats, and how pictures come into a network's form.

#include <gmock/gmock.h>

#include "models/data/netpbm.hpp"
#include "tests/models/data/data_folder.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

SampleForm image_form(std::uint32_t channels, std::uint32_t height, std::uint32_t width) {
  return {.kind = InputKind::images, .shape = {1, channels, height, width}, .labels = 1, .classes = 2};
}

std::vector<float> fitted(const Picture& picture, const SampleForm& form) {
  std::vector<float> out(form.elements());
  fit(picture, form, out);
  for (float& value : out) value = value * 0.25F + 0.5F;
  return out;
}

TEST(Picture, BilinearBetweenTheCentresOfPixels) {
  const Picture picture{{1, 2, 2}, {0, 0.8F, 0.4F, 1}};
  EXPECT_THAT(fitted(picture, image_form(1, 2, 2)), Pointwise(FloatNear(1e-6F), {0.0F, 0.8F, 0.4F, 1.0F}));
  EXPECT_THAT(fitted(picture, image_form(1, 2, 4)),
              Pointwise(FloatNear(1e-6F), {0.0F, 0.2F, 0.6F, 0.8F, 0.4F, 0.55F, 0.85F, 1.0F}));
  EXPECT_THAT(fitted(picture, image_form(1, 1, 1)), Pointwise(FloatNear(1e-6F), {0.55F}));
  EXPECT_THAT(fitted(picture, image_form(1, 3, 1)), Pointwise(FloatNear(1e-6F), {0.4F, 0.55F, 0.7F}));
}

TEST(Picture, Channels) {
  const Picture colour{{3, 1, 2}, {1, 0, 0, 1, 0, 0.5F}};
  EXPECT_THAT(fitted(colour, image_form(1, 1, 2)), Pointwise(FloatNear(1e-6F), {0.299F, 0.587F + 0.057F}));
  const Picture grey{{1, 1, 2}, {0.25F, 0.75F}};
  EXPECT_THAT(fitted(grey, image_form(3, 1, 2)),
              Pointwise(FloatNear(1e-6F), {0.25F, 0.75F, 0.25F, 0.75F, 0.25F, 0.75F}));
}

class NetpbmTest : public DataFolderTest {
 protected:
  [[nodiscard]] Picture picture(const std::string& bytes) const {
    write("a.ppm", bytes);
    return read_netpbm(InputFile(path("a.ppm"), "data"));
  }
  [[nodiscard]] std::string error(const std::string& bytes) const {
    const std::string message = data_error([&] { (void)picture(bytes); });
    EXPECT_THAT(message, HasSubstr(path("a.ppm")));
    return message;
  }
};

TEST_F(NetpbmTest, AllForms) {
  const std::vector<float> grey{0, 0.2F, 1, 0.4F};
  EXPECT_EQ(picture(std::string("P5 2 2 255\n\0\x33\xff\x66", 15)).values, grey);
  EXPECT_EQ(picture("P2\n# a comment\n2 # another\n2\n255\n0 51\n255\t102").values, grey);
  EXPECT_EQ(picture("P2 2 2 5 0 1 5 2\n").values, grey);
  const Picture wide = picture(std::string("P5\n1 2\n1000\n\x03\xe8\x01\xf4", 16));
  EXPECT_EQ(wide.values, (std::vector<float>{1, 0.5F}));
  EXPECT_EQ(wide.size.height, 2);
  // Colour: pixel by pixel in the file, channel by channel in memory.
  const std::vector<float> colour{1, 0, 0.2F, 0, 0.4F, 1};
  EXPECT_EQ(picture(std::string("P6 2 1 255 \xff\x33\x66\x00\x00\xff", 17)).values, colour);
  EXPECT_EQ(picture("P3 2 1 5 5 1 2 0 0 5 and the rest").values, colour);
}

TEST_F(NetpbmTest, LongHeadersAndLongPlainFiles) {
  const std::string comment = "#" + std::string(10000, 'x') + "\n";
  EXPECT_EQ(picture("P5 " + comment + "1 1 255\n\xff").values.front(), 1);
  std::string plain = "P2 100 100 9\n";
  for (int i = 0; i < 10000; ++i) plain += std::string(1, static_cast<char>('0' + i % 10)) + " ";
  EXPECT_EQ(picture(plain).values[9999], 1);
}

TEST_F(NetpbmTest, BadImages) {
  EXPECT_THAT(error("GIF89a"), HasSubstr("does not begin with P2, P3, P5 or P6"));
  EXPECT_THAT(error("P4 8 1 \xff"), HasSubstr("does not begin with P2"));
  EXPECT_THAT(error("P"), HasSubstr("does not begin with P2"));
  EXPECT_THAT(error("P5"), HasSubstr("ends at byte 2, before the width"));
  EXPECT_THAT(error("P5 3"), HasSubstr("ends at byte 4, before the height"));
  EXPECT_THAT(error("P5 3 x 255\n"), HasSubstr("byte 5: the height is not a number"));
  EXPECT_THAT(error("P5 3 1x 255\n"), HasSubstr("byte 5: the height is not a number"));
  EXPECT_THAT(error("P5 -3 1 255\n"), HasSubstr("byte 3: the width is not a number"));
  EXPECT_THAT(error("P5 99999999999999999999999 1 255\n"), HasSubstr("the width is larger than 65536"));
  EXPECT_THAT(error("P5 3 0 255\n"), HasSubstr("3x0 pixels"));
  EXPECT_THAT(error("P5 3 1 0\nabc"), HasSubstr("largest value of the image is 0"));
  EXPECT_THAT(error("P5 3 1 65536\nabc"), HasSubstr("byte 7: the largest value is larger than 65535"));
  EXPECT_THAT(error("P5 3 1 255"), HasSubstr("no pixels behind the header"));
  EXPECT_THAT(error("P5 3 1 255\nab"), HasSubstr("cut short: 2 bytes of pixels for an image of 3x1, which needs 3"));
  EXPECT_THAT(error("P6 65536 65536 65535\nab"), HasSubstr("which needs 25769803776"));
  EXPECT_THAT(error("P5 2 1 99\n\x10\x70"), HasSubstr("byte 11: the value 112 is larger than the largest, 99"));
  EXPECT_THAT(error("P2 2 2 9\n1 2 3"), HasSubstr("which needs at least 7"));
  EXPECT_THAT(error("P2 2 2 9\n1 2 3      "), HasSubstr("before a pixel's value"));
  EXPECT_THAT(error("P2 2 1 9\n1 10"), HasSubstr("byte 11: a pixel's value is larger than 9"));
  EXPECT_THAT(error("P2 2 1 9\n1 two"), HasSubstr("byte 11: a pixel's value is not a number"));
}

TEST_F(NetpbmTest, EveryTruncationIsRefused) {
  const std::string wide("P5 2 1 999\n\x01\x02\x03\x04", 15);
  for (const std::string& whole :
       {std::string("P6 # comment\n1 2 255\nabcdef"), std::string("P3\n2 1 9\n1 2 3 4 5 6"), wide}) {
    EXPECT_EQ(data_error([&] { (void)picture(whole); }), "") << whole;
    for (std::size_t length = 0; length < whole.size(); ++length) {
      ASSERT_NE(data_error([&] { (void)picture(whole.substr(0, length)); }), "") << length << " bytes of " << whole;
    }
  }
}

class ImageFolderTest : public DataFolderTest {
 protected:
  [[nodiscard]] std::string error() const { return open_error("images:" + path(), graph_); }

  const Graph graph_ = image_network({1, 1, 2, 1}, 2);
};

TEST_F(ImageFolderTest, SubFoldersAreClasses) {
  write("cats/b.pgm", "P2 1 2 4\n1 2");
  write("cats/a.PGM", "P2 1 2 4\n0 4");
  write("cats/notes.txt", "not an image");
  write(".thumbnails/c.pgm", "P2 1 2 4\n0 0");
  write("dogs/a.ppm", "P3 1 1 4\n4 4 4");
  const auto dataset = open_dataset("images:" + path(), graph_, 1);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->shuffles());
  EXPECT_EQ(dataset->describe(), "3 images of " + path());
  const Batch batch = batch_of(*dataset, {0, 1, 2});
  EXPECT_THAT(batch.labels, ElementsAre(0, 0, 1));
  EXPECT_THAT(batch.inputs, Pointwise(FloatNear(1e-6F), {-2.0F, 2.0F, -1.0F, 0.0F, 2.0F, 2.0F}));
}

TEST_F(ImageFolderTest, LabelsFromAFile) {
  write("one.pgm", "P2 1 2 4\n1 2");
  write("deep/two with blanks.pgm", "P2 1 2 4\n0 4");
  write("labels.txt", "deep/two with blanks.pgm 1\r\n\n  one.pgm\t0");
  const auto dataset = open_dataset("images:" + path(), graph_, 1);
  const Batch batch = batch_of(*dataset, {0, 1});
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.inputs, Pointwise(FloatNear(1e-6F), {-2.0F, 2.0F, -1.0F, 0.0F}));
}

TEST_F(ImageFolderTest, BadLabels) {
  write("a.pgm", "P2 1 2 4\n1 2");
  write("b.pgm", "P2 1 2 4\n1 2");
  const auto error_with = [&](const std::string& labels) {
    write("labels.txt", labels);
    const std::string message = error();
    EXPECT_THAT(message, HasSubstr(path("labels.txt")));
    return message;
  };
  EXPECT_THAT(error_with("\n"), HasSubstr("names no images"));
  EXPECT_THAT(error_with("a.pgm 0\nb.pgm\n"), HasSubstr("labels.txt:2: 'b.pgm' is not the name of an image and its"));
  EXPECT_THAT(error_with("a.pgm -1"), HasSubstr("labels.txt:1: 'a.pgm -1' is not"));
  EXPECT_THAT(error_with("a.pgm cat"), HasSubstr("labels.txt:1: 'a.pgm cat' is not"));
  EXPECT_THAT(error_with("a.pgm 99999999999"), HasSubstr("is not"));
  EXPECT_THAT(error_with("a.pgm 0\n\nb.pgm 2"),
              HasSubstr("labels.txt:3: b.pgm has label 2, but the network has 2 classes (labels 0 to 1)"));
  EXPECT_THAT(error_with("c.pgm 0"), HasSubstr("labels.txt:1: there is no " + path("c.pgm")));
  EXPECT_THAT(error_with("a.pgm 0\na.pgm 1"), HasSubstr("labels.txt:2: a.pgm has a label already"));
}

TEST_F(ImageFolderTest, BadFolders) {
  EXPECT_THAT(error(), AllOf(HasSubstr("has no images"), HasSubstr("labels.txt"), HasSubstr("a sub-folder per class")));
  write("a.pgm", "P2 1 2 4\n1 2");
  EXPECT_THAT(error(), HasSubstr("has images without labels"));
  write("c0/a.pgm", "P2 1 2 4\n1 2");
  write("c1/a.txt", "");
  EXPECT_THAT(error(), HasSubstr(path("c1") + " has no images (.ppm"));
  write("c1/a.pgm", "P5 1 2 255\n1");
  EXPECT_THAT(error(), HasSubstr(path("c1/a.pgm") + ": is cut short"));
  write("c1/a.pgm", "");
  EXPECT_THAT(error(), HasSubstr(path("c1/a.pgm") + ": the file is empty"));
  write("c2/a.pgm", "P2 1 2 4\n1 2");
  EXPECT_THAT(error(), HasSubstr("has 3 sub-folders, one per class, but the network has 2 classes"));
  EXPECT_THAT(open_error("images:" + path("missing"), graph_), HasSubstr("there is no folder"));
}

TEST_F(ImageFolderTest, ImageThatChangesLater) {
  write("c0/a.pgm", "P2 1 2 4\n1 2");
  const auto dataset = open_dataset("images:" + path(), graph_, 1);
  write("c0/a.pgm", "P2 1 2 4\n1 5");
  EXPECT_THAT(data_error([&] { (void)batch_of(*dataset, {0}); }), HasSubstr("c0/a.pgm: byte 11"));
}

}  // namespace
}  // namespace hcclsim::models
