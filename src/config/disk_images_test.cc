#include "config/disk_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/main_schema.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<ImageName, DiskImage> ReadImages(const std::string& text) {
  Expected<Value> value = ParseYaml(text);
  if (!value) throw value.error();
  return ReadDiskImages(Section(*value, MainSchema(), ""));
}

DiskImage ReadOne(const std::string& settings) {
  return ReadImages("diskimages:\n  - name: x\n" + settings).at(ImageName("x"));
}

std::string ErrorOf(const std::string& text) {
  try {
    ReadImages(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(DiskImagesTest, DefaultsAreThoseOfTheTable) {
  DiskImage image = ReadOne("");
  EXPECT_EQ(image.rebuild_age, std::chrono::hours(24));
  EXPECT_EQ(image.build_timeout, std::chrono::hours(8));
  EXPECT_EQ(image.dib_cmd, "disk-image-create");
  EXPECT_EQ(image.username, "zuul");
  EXPECT_EQ(image.python_path, "auto");
  EXPECT_EQ(image.shell_type, std::nullopt);
  EXPECT_EQ(image.release, "");
  EXPECT_FALSE(image.delete_after_upload);
  EXPECT_FALSE(image.is_paused);
}

// configuration.17.6, B-inherit, B-inherit-abstract
TEST(DiskImagesTest, InheritsFromTheRootDownwards) {
  auto images = ReadImages(R"(
diskimages:
  - name: c
    parent: b
    dib-cmd: child's
    elements: [c]
    env-vars: {V: c, C: '1'}
    metadata: {only: c}
    pause: false
    formats: []
    delete-after-upload: false
    rebuild-age: 0
  - name: b
    abstract: true
    parent: a
    elements: [b]
    env-vars: {V: b, B: '1'}
    delete-after-upload: true
    rebuild-age: 5
  - name: a
    elements: [a, a]
    env-vars: {V: a, A: '1'}
    dib-cmd: mine
    release: 21
    metadata: {only: a}
    pause: true
    formats: [vhd, raw, vhd]
)");
  ASSERT_THAT(images, ::testing::SizeIs(2));
  const DiskImage& image = images.at(ImageName("c"));
  EXPECT_THAT(image.elements, ElementsAre("a", "a", "b", "c"));
  EXPECT_THAT(image.env_vars,
              UnorderedElementsAre(Pair("V", "c"), Pair("A", "1"), Pair("B", "1"), Pair("C", "1")));
  EXPECT_THAT(image.metadata, ElementsAre(Pair("only", "c")));
  EXPECT_TRUE(image.is_paused);
  EXPECT_THAT(image.formats, ElementsAre("raw", "vhd"));
  EXPECT_FALSE(image.delete_after_upload);
  EXPECT_EQ(image.rebuild_age, std::chrono::seconds(5));
  EXPECT_EQ(image.dib_cmd, "child's");
  EXPECT_EQ(image.release, "21");
}

// builder.md 3.4
TEST(DiskImagesTest, TheirPositionInTheFileIsKnown) {
  auto images =
      ReadImages("diskimages: [{name: c}, {name: p, abstract: true}, {name: a}, {name: b, parent: p}]");
  std::vector<std::string> names;
  for (const DiskImage* image : AsListed(images)) names.push_back(image->name.value);
  EXPECT_THAT(names, ElementsAre("c", "a", "b"));
}

TEST(DiskImagesTest, AbsentMetadataClearsTheParents) {
  auto images = ReadImages("diskimages: [{name: a, metadata: {k: v}}, {name: b, parent: a}]");
  EXPECT_TRUE(images.at(ImageName("b")).metadata.empty());
}

TEST(DiskImagesTest, ALaterDuplicateCounts) {
  auto images = ReadImages("diskimages: [{name: a, release: x}, {name: a, release: y}]");
  EXPECT_EQ(images.at(ImageName("a")).release, "y");
}

// configuration.17.7
TEST(DiskImagesTest, ReleaseIsTheTextPassedToTheBuild) {
  EXPECT_EQ(ReadOne("    release: 20.10\n").release, "20.1");
  EXPECT_EQ(ReadOne("    release: '20.10'\n").release, "20.10");
  EXPECT_EQ(ReadOne("    release: 010\n").release, "8");
  EXPECT_EQ(ReadOne("    release: 0\n").release, "");
  EXPECT_EQ(ReadOne("    release: false\n").release, "");
  EXPECT_EQ(ReadOne("    release: ''\n").release, "");
  EXPECT_EQ(ReadOne("    release: yes\n").release, "True");
}

TEST(DiskImagesTest, RefusesUnbuildableImages) {
  EXPECT_THAT(
      ErrorOf("diskimages:\n- name: a\n  parent: ubunto\n- name: ubuntu\n"),
      "line 3, column 11: diskimages[0].parent: there is no diskimage 'ubunto'; did you mean 'ubuntu'?");
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, parent: b}, {name: b, parent: a}]"),
              HasSubstr("its own ancestor"));
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, parent: a}]"), HasSubstr("its own ancestor"));
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, elements: }]"), HasSubstr("elements: has no value"));
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, env-vars: null}]"), HasSubstr("env-vars: has no value"));
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, elements: [[x]]}]"), HasSubstr("elements[0]: expected text"));
  EXPECT_THAT(ErrorOf("diskimages: [{release: x}]"), HasSubstr("name: is required"));
  EXPECT_THAT(ErrorOf("diskimages: 5"), HasSubstr("expected a list"));
  EXPECT_THAT(ErrorOf("diskimages: [5]"), HasSubstr("expected a mapping"));
}

TEST(DiskImagesTest, ChainsOfParentsAreBounded) {
  std::string text = "diskimages:\n- name: i0\n";
  for (int i = 1; i < 500; ++i)
    text += "- {name: i" + std::to_string(i) + ", parent: i" + std::to_string(i - 1) + "}\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("too many ancestors"));
}

TEST(DiskImagesTest, AMistakeInASecretIsNotQuoted) {
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, env-vars: hunter2}]"), ::testing::Not(HasSubstr("hunter2")));
}

// VAL-5
TEST(DiskImagesTest, Validation) {
  EXPECT_FALSE(ReadOne("").validation);
  EXPECT_FALSE(ReadOne("    validate: false\n").validation);
  ASSERT_TRUE(ReadOne("    validate: true\n").validation);
  EXPECT_EQ(ReadOne("    validate: true\n").validation->timeout, std::chrono::hours(1));
  DiskImage image = ReadOne("    validate: {command: /check it, timeout: 60}\n");
  EXPECT_EQ(image.validation->command, "/check it");
  EXPECT_EQ(image.validation->timeout, std::chrono::minutes(1));
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, validate: {timeout: 0}}]"), HasSubstr("timeout"));
  auto child = ReadImages(
      "diskimages: [{name: a, validate: true}, {name: b, parent: a}, {name: c, parent: a, validate: false}]");
  EXPECT_TRUE(child.at(ImageName("b")).validation);
  EXPECT_FALSE(child.at(ImageName("c")).validation);
  EXPECT_EQ(Fingerprint(image), Fingerprint(ReadOne(""))) << "the image is the same";
}

// configuration.md 7.5
TEST(DiskImagesTest, FingerprintLeavesOutWhatDoesNotChangeTheImage) {
  DiskImage image = ReadOne("");
  std::string before = Fingerprint(image);
  image.delete_after_upload = true;
  image.keep_formats = {"raw"};
  EXPECT_EQ(Fingerprint(image), before);
  image.env_vars["A"] = "1";
  EXPECT_NE(Fingerprint(image), before);
}

// configuration.md 9.7
TEST(CanonicalJsonTest, TheOrderOfMappingsDoesNotMatterThatOfListsDoes) {
  auto canonical = [](const std::string& text) { return CanonicalJson(*ParseYaml(text)); };
  EXPECT_EQ(canonical("a: 1\nb: {d: 1, c: 2}\n"), canonical("b: {c: 2, d: 1}\na: 1\n"));
  EXPECT_NE(canonical("[1, 2]"), canonical("[2, 1]"));
  EXPECT_NE(canonical("a: 1"), canonical("a: '1'"));
}

}  // namespace

}  // namespace nodepool::config
