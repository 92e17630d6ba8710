// Folders of images, and how pictures come into a network's form.

#include <gmock/gmock.h>

#include "models/data/image_file.hpp"
#include "tests/models/data/data_folder.hpp"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

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
  for (float& value : out) value = (value * 0.25F + 0.5F) * 255;
  return out;
}

using Bytes8 = std::vector<std::uint8_t>;

TEST(Picture, BilinearBetweenTheCentresOfPixels) {
  const Bytes8 bytes{0, 200, 100, 250};
  const Picture picture{{1, 2, 2}, bytes};
  EXPECT_THAT(fitted(picture, image_form(1, 2, 2)), Pointwise(FloatNear(1e-3F), {0.0F, 200.0F, 100.0F, 250.0F}));
  EXPECT_THAT(fitted(picture, image_form(1, 2, 4)),
              Pointwise(FloatNear(1e-3F), {0.0F, 50.0F, 150.0F, 200.0F, 100.0F, 137.5F, 212.5F, 250.0F}));
  EXPECT_THAT(fitted(picture, image_form(1, 1, 1)), Pointwise(FloatNear(1e-3F), {137.5F}));
  EXPECT_THAT(fitted(picture, image_form(1, 3, 1)), Pointwise(FloatNear(1e-3F), {100.0F, 137.5F, 175.0F}));
}

TEST(Picture, ChannelsInBothOrders) {
  const Bytes8 by_channel{255, 0, 0, 255, 0, 100};
  const Bytes8 by_pixel{255, 0, 0, 0, 255, 100};
  for (const Picture& colour : {Picture{{3, 1, 2}, by_channel, Picture::Order::by_channel},
                                Picture{{3, 1, 2}, by_pixel, Picture::Order::by_pixel}}) {
    EXPECT_THAT(fitted(colour, image_form(1, 1, 2)),
                Pointwise(FloatNear(1e-3F), {0.299F * 255, 0.587F * 255 + 0.114F * 100}));
    EXPECT_THAT(fitted(colour, image_form(3, 1, 2)),
                Pointwise(FloatNear(1e-3F), {255.0F, 0.0F, 0.0F, 255.0F, 0.0F, 100.0F}));
    SampleForm features = image_form(6, 1, 1);
    features.kind = InputKind::features;
    EXPECT_THAT(fitted(colour, features), Pointwise(FloatNear(1e-3F), {255.0F, 0.0F, 0.0F, 255.0F, 0.0F, 100.0F}));
  }
  const Bytes8 bytes{50, 150};
  const Picture grey{{1, 1, 2}, bytes};
  EXPECT_THAT(fitted(grey, image_form(3, 1, 2)),
              Pointwise(FloatNear(1e-3F), {50.0F, 150.0F, 50.0F, 150.0F, 50.0F, 150.0F}));
}

/// A file of stb_image's writer.
std::string file_of(bool png, int width, int height, int channels, const Bytes8& bytes) {
  std::string file;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data), static_cast<std::size_t>(size));
  };
  if (png) {
    stbi_write_png_to_func(append, &file, width, height, channels, bytes.data(), 0);
  } else {
    stbi_write_jpg_to_func(append, &file, width, height, channels, bytes.data(), 95);
  }
  return file;
}

/// Width × height pixels that change slowly.
Bytes8 soft_pixels(int width, int height, int channels) {
  Bytes8 bytes;
  for (int i = 0; i < width * height * channels; ++i)
    bytes.push_back(static_cast<std::uint8_t>(100 + i / channels % width));
  return bytes;
}

class ImageFileTest : public DataFolderTest {
 protected:
  [[nodiscard]] Bytes8 pixels(const std::string& bytes, const PictureSize& expected) const {
    write("a.png", bytes);
    const DecodedImage image(InputFile(path("a.png"), "data"));
    const Picture picture = image.picture();
    EXPECT_EQ(picture.size.channels, expected.channels);
    EXPECT_EQ(picture.size.height, expected.height);
    EXPECT_EQ(picture.size.width, expected.width);
    return {picture.bytes.begin(), picture.bytes.end()};
  }
  [[nodiscard]] std::string error(const std::string& bytes) const {
    const std::string message = data_error([&] { (void)pixels(bytes, {}); });
    EXPECT_THAT(message, HasSubstr(path("a.png")));
    return message;
  }
};

TEST_F(ImageFileTest, AllForms) {
  const Bytes8 colour{255, 51, 102, 0, 0, 255};
  EXPECT_EQ(pixels(std::string("P6 2 1 255 \xff\x33\x66\x00\x00\xff", 17), {3, 1, 2}), colour);
  EXPECT_EQ(pixels(file_of(true, 2, 1, 3, colour), {3, 1, 2}), colour);
  EXPECT_EQ(pixels(file_of(true, 2, 1, 4, {255, 51, 102, 7, 0, 0, 255, 9}), {3, 1, 2}), colour);
  const Bytes8 grey{0, 51, 255, 102};
  EXPECT_EQ(pixels(std::string("P5\n# a comment\n2 # and another\n2 255\n\0\x33\xff\x66", 41), {1, 2, 2}), grey);
  EXPECT_EQ(pixels(file_of(true, 2, 2, 1, grey), {1, 2, 2}), grey);
  EXPECT_EQ(pixels(file_of(true, 2, 2, 2, {0, 1, 51, 2, 255, 3, 102, 4}), {1, 2, 2}), grey);
  const Bytes8 soft = soft_pixels(40, 24, 3);
  const Bytes8 lossy = pixels(file_of(false, 40, 24, 3, soft), {3, 24, 40});
  ASSERT_EQ(lossy.size(), soft.size());
  for (std::size_t i = 0; i < soft.size(); ++i) ASSERT_NEAR(lossy[i], soft[i], 6) << i;
}

TEST_F(ImageFileTest, BadImages) {
  EXPECT_THAT(error("GIF89a"),
              HasSubstr("accepted: PNG, JPEG, binary PPM and PGM (P5, P6), up to 65536 pixels per side"));
  EXPECT_THAT(error("P2 2 2 255\n1 2 3 4"), HasSubstr("is a PPM or PGM image as text (P2); accepted are binary ones"));
  EXPECT_THAT(error("P5 3 1 255\nab"), HasSubstr("cut short: 2 bytes of pixels for an image of 3x1, which needs 3"));
  EXPECT_THAT(error("P5 3 1 255"), HasSubstr("no pixels behind its header"));
  EXPECT_THAT(error("P5 3 1 15\nabc"), HasSubstr("has 15 as its largest value; accepted of PPM and PGM: 255"));
  EXPECT_THAT(error("P5 3 1 65535\nabcdef"), HasSubstr("has 65535 as its largest value"));
  EXPECT_THAT(error("P6 60000 60000 255\nab"), HasSubstr("10800000000 bytes; accepted: up to 2147483647"));
  EXPECT_THAT(error("P5 9999999990 1 255\nabc"), HasSubstr("has '9999999990 1' in place of its width and height"));
  EXPECT_THAT(error("P5 2x 1 255\nabc"), HasSubstr("has '2x 1' in place of its width and height"));
  EXPECT_THAT(error("P5 0 1 255\nabc"), HasSubstr("0x1 pixels; accepted: 1 to 65536 per side"));
  EXPECT_THAT(error("P5 70000 1 255\nabc"), HasSubstr("70000x1 pixels; accepted: 1 to 65536 per side"));
}

TEST_F(ImageFileTest, EveryTruncationIsRefused) {
  const Bytes8 soft = soft_pixels(40, 24, 3);
  for (const std::string& whole : {std::string("P6 # comment\n1 2 255\nabcdef"), file_of(true, 40, 24, 3, soft),
                                   file_of(false, 40, 24, 3, soft)}) {
    EXPECT_EQ(data_error([&] {
                (void)pixels(whole, whole[0] == 'P' ? PictureSize{3, 2, 1} : PictureSize{3, 24, 40});
              }),
              "");
    // The last bytes of a PNG file are its end mark, with a checksum that is not needed.
    const std::size_t needed = whole.size() - (whole.starts_with("\x89PNG") ? 12 : whole.starts_with("\xff") ? 2 : 0);
    for (std::size_t length = 0; length < needed; ++length) {
      write("a.png", whole.substr(0, length));
      ASSERT_NE(data_error([&] { DecodedImage(InputFile(path("a.png"), "data")); }), "") << length << " bytes";
    }
  }
}

/// A JPEG file up to and with its frame: a comment, then `kind` with three components, the first of 2x2 samples for one
/// of the others.
std::string jpeg_frame(char kind, char height, char width) {
  std::string file{"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xfe\0\6text\xff", 29};
  file += std::string{kind, 0, 17, 8, 0, height, 0, width, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0};
  return file;
}

TEST_F(ImageFileTest, MemoryIsWhatDecodingTakes) {
  const auto memory = [this](const std::string& bytes) {
    write("a.png", bytes);
    return read_image_header(InputFile(path("a.png"), "data")).decoding;
  };
  EXPECT_EQ(memory("P6 2 1 255\nabcdef"), 6);
  // Blocks of 8x8: 17x9 pixels are 4x2 of the first component, 2x1 of each of the others; pixels of three bytes.
  EXPECT_EQ(memory(jpeg_frame('\xc0', 9, 17)), 64 * (4 * 2 + 2 * 2 * 1) + 3 * 17 * 9);
  EXPECT_EQ(memory(jpeg_frame('\xc2', 9, 17)), 3 * 64 * (4 * 2 + 2 * 2 * 1) + 3 * 17 * 9);
  // Lines with a byte of their filter, and pixels with a fourth channel; the file is small.
  std::string png = file_of(true, 64, 32, 3, Bytes8(64 * 32 * 3, 7));
  ASSERT_LT(3 * png.size(), 64 * 32 * 4);
  EXPECT_EQ(memory(png), 32 * (3 * 64 + 1) + 64 * 32 * 4);
  png[28] = 1;  // interlaced
  EXPECT_EQ(memory(png), 32 * (3 * 64 + 1) + 64 * 32 * 4 * 3 / 2);
}

TEST_F(ImageFileTest, HuffmanTablesWithTooManyCodesAreRefused) {
  // A table of 16 lengths with 20 codes each, before the frame, and one behind the begin of the first scan.
  const std::string table = std::string("\xff\xc4\x01\x53\0", 5) + std::string(16, 20) + std::string(320, 1);
  const std::string begin("\xff\xd8", 2);
  EXPECT_THAT(error(begin + table + jpeg_frame('\xc0', 9, 17).substr(2)),
              HasSubstr("is a damaged image: a Huffman table at byte 6 has 320 codes"));
  std::string image = file_of(false, 40, 24, 3, soft_pixels(40, 24, 3));
  EXPECT_EQ(data_error([&] { (void)pixels(image, {3, 24, 40}); }), "");
  image.insert(image.size() - 2, table);
  EXPECT_THAT(error(image), HasSubstr("has 320 codes"));
  EXPECT_THAT(error(std::string(100, '\xff')), HasSubstr("begins with 64 bytes 0xff"));
}

TEST_F(ImageFileTest, HeadersSayWhatIsWrongWithThem) {
  std::string png = file_of(true, 2, 2, 1, Bytes8(4, 7));
  EXPECT_THAT(error(png.substr(0, 20)), HasSubstr("is a damaged PNG image, or cut short"));
  png[16 + 1] = 2;  // width 131074
  EXPECT_THAT(error(png), HasSubstr("has 131074x2 pixels; accepted: 1 to 65536 per side"));
  png[16 + 1] = 0;
  png[16 + 9] = 5;
  EXPECT_THAT(error(png), HasSubstr("is a damaged PNG image: there is no colour type 5"));
  const std::string jpeg = jpeg_frame('\xc0', 9, 17);
  EXPECT_THAT(error(jpeg), HasSubstr("is cut short"));
  EXPECT_THAT(error(jpeg.substr(0, 20)), HasSubstr("is a damaged JPEG image, or cut short"));
  EXPECT_THAT(error(jpeg_frame('\xc9', 9, 17)), HasSubstr("no baseline or progressive frame is found"));
  EXPECT_THAT(error(jpeg_frame('\xc0', 0, 17)), HasSubstr("has 17x0 pixels"));
}

/// Grey pixels in a file.
std::string pgm(int width, int height, const std::string& pixels) {
  return fmt::format("P5 {} {} 255\n{}", width, height, pixels);
}

class ImageFolderTest : public DataFolderTest {
 protected:
  [[nodiscard]] std::string error() const { return open_error("images:" + path(), graph_); }

  const Graph graph_ = image_network({1, 1, 2, 1}, 2);
};

TEST_F(ImageFolderTest, SubFoldersAreClasses) {
  write("cats/b.pgm", pgm(1, 2, "\x33\x66"));
  write("cats/a.PNG", file_of(true, 1, 2, 1, {0, 255}));
  write("cats/notes.txt", "not an image");
  write(".thumbnails/c.pgm", pgm(1, 2, "ab"));
  write("dogs/a.ppm", "P6 1 1 255\n\xff\xff\xff");
  const auto dataset = open_dataset("images:" + path(), graph_, 1);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->shuffles());
  EXPECT_EQ(dataset->describe(), "3 images of " + path());
  const Batch batch = batch_of(*dataset, {0, 1, 2});
  EXPECT_THAT(batch.labels, ElementsAre(0, 0, 1));
  EXPECT_THAT(batch.inputs, Pointwise(FloatNear(1e-5F), {-2.0F, 2.0F, -1.2F, -0.4F, 2.0F, 2.0F}));
}

TEST_F(ImageFolderTest, LabelsFromAFile) {
  write("one.pgm", pgm(1, 2, "\x33\x66"));
  write("deep/two with blanks.pgm", pgm(1, 2, std::string("\0\xff", 2)));
  write("labels.txt", "deep/two with blanks.pgm 1\r\n\n  one.pgm\t0");
  const auto dataset = open_dataset("images:" + path(), graph_, 1);
  const Batch batch = batch_of(*dataset, {0, 1});
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.inputs, Pointwise(FloatNear(1e-5F), {-2.0F, 2.0F, -1.2F, -0.4F}));
}

TEST_F(ImageFolderTest, BadLabels) {
  write("a.pgm", pgm(1, 2, "ab"));
  write("b.pgm", pgm(1, 2, "ab"));
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
  EXPECT_THAT(error_with("c.pgm 0"), HasSubstr("labels.txt:1: there is no file " + path("c.pgm")));
  EXPECT_THAT(error_with(std::string("a.pgm\0 0", 8)), HasSubstr("labels.txt:1: the line has a NUL byte"));
  EXPECT_THAT(error_with("a.pgm 0\na.pgm 1"), HasSubstr("labels.txt:2: a.pgm has a label already"));
}

TEST_F(ImageFolderTest, BadFolders) {
  EXPECT_THAT(error(), AllOf(HasSubstr("has no images"), HasSubstr("labels.txt"), HasSubstr("a sub-folder per class")));
  write("a.pgm", pgm(1, 2, "ab"));
  EXPECT_THAT(error(), HasSubstr("has images without labels"));
  write("c0/a.pgm", pgm(1, 2, "ab"));
  write("c1/a.txt", "");
  EXPECT_THAT(error(), HasSubstr(path("c1") + " has no images (.png, .jpg, .jpeg, .ppm, .pgm, .pnm)"));
  write("c1/a.pgm", "P5 1 2 255\n1");
  EXPECT_THAT(error(), HasSubstr(path("c1/a.pgm") + ": is cut short"));
  write("c1/a.pgm", "");
  EXPECT_THAT(error(), HasSubstr(path("c1/a.pgm") + ": the file is empty"));
  write("c2/a.pgm", pgm(1, 2, "ab"));
  EXPECT_THAT(error(), HasSubstr("has 3 sub-folders, one per class, but the network has 2 classes"));
  EXPECT_THAT(open_error("images:" + path("missing"), graph_), HasSubstr("there is no folder"));
}

TEST_F(ImageFolderTest, ImageThatChangesLater) {
  write("c0/a.pgm", pgm(1, 2, "ab"));
  const auto dataset = open_dataset("images:" + path(), graph_, 1);
  EXPECT_THAT(dataset->read_cost().sample, HasSubstr("c0/a.pgm (1x2 pixels)"));
  EXPECT_EQ(dataset->read_cost().bytes, 2);
  write("c0/a.pgm", "P5 1 2 255\na");
  EXPECT_THAT(data_error([&] { (void)batch_of(*dataset, {0}); }), HasSubstr("c0/a.pgm: is cut short"));
  write("c0/a.pgm", pgm(10, 10, std::string(100, 'x')));
  EXPECT_THAT(data_error([&] { (void)batch_of(*dataset, {0}); }), HasSubstr("c0/a.pgm: has become 10x10 pixels"));
}

}  // namespace
}  // namespace hcclsim::models
