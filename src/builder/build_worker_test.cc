#include "builder/build_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace nodepool::builder {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BuildCommandTest : public ::testing::Test {
 protected:
  BuildCommandTest() {
    config.images_dir = "/opt/images";
    image.name = ImageName("deb");
    image.formats = {"qcow2", "raw"};
    image.elements = {"debian-minimal", "vm  simple-init"};
  }
  BuildPlan Plan() { return PlanBuild(config, image, build, context); }
  std::vector<std::string> Words() { return Plan().commands.at(0).argv; }

  config::Config config;
  config::DiskImage image;
  store::BuildKey build{ImageName("deb"), BuildId("0c44")};
  BuildContext context{{{"PATH", "/bin"}, {"ELEMENTS_PATH", "/theirs"}}, "/usr/lib/helpers"};
};

// B-env: the arguments
TEST_F(BuildCommandTest, TheArgumentsOfTheCommand) {
  EXPECT_THAT(Words(), ElementsAre("disk-image-create", "-x", "-t", "qcow2,raw", "--checksum", "--no-tmpfs",
                                   "--qemu-img-options", "compat=0.10", "-o", "/opt/images/deb-0c44",
                                   "debian-minimal", "vm", "simple-init"));
  image.formats = {"raw"};
  image.elements = {};
  config.images_dir = "/with blank/it's";
  EXPECT_THAT(Words(), ElementsAre("disk-image-create", "-x", "-t", "raw", "--checksum", "--no-tmpfs", "-o",
                                   "/with blank/it's/deb-0c44"));
}

// D-43
TEST_F(BuildCommandTest, TheCommandMayHaveItsOwnArguments) {
  image.dib_cmd = "sudo -E '%p/my create'";
  std::vector<std::string> words = Words();
  words.resize(4);
  EXPECT_THAT(words, ElementsAre("sudo", "-E", "/usr/lib/helpers/my create", "-x"));
  for (const char* bad : {"'open", "", "  "}) {
    image.dib_cmd = bad;
    EXPECT_THROW(Plan(), Error) << bad;
  }
}

// D-41
TEST_F(BuildCommandTest, TemporaryFoldersAreThoseOfTheEnvironments) {
  EXPECT_THAT(TemporaryFolders(config, {}), ElementsAre("/tmp"));
  EXPECT_THAT(TemporaryFolders(config, {{"TMP_DIR", "/two"}}), ElementsAre("/two"));
  EXPECT_THAT(TemporaryFolders(config, {{"TMPDIR", "/one"}, {"TMP_DIR", "/two"}}), ElementsAre("/one"));
  image.env_vars = {{"TMPDIR", "/srv/tmp"}};
  config.diskimages[image.name] = image;
  EXPECT_THAT(TemporaryFolders(config, {}), ElementsAre("/srv/tmp", "/tmp"));
}

// B-env
TEST_F(BuildCommandTest, TheEnvironment) {
  EXPECT_EQ(Plan().commands[0].environment,
            (process::Environment{{"PATH", "/bin"},
                                  {"ELEMENTS_PATH", "/theirs"},
                                  {"DIB_RELEASE", ""},
                                  {"DIB_IMAGE_NAME", "deb"},
                                  {"DIB_IMAGE_FILENAME", "/opt/images/deb-0c44"}}));
  context.environment.erase("ELEMENTS_PATH");
  EXPECT_FALSE(Plan().commands[0].environment.contains("ELEMENTS_PATH"));
  config.elements_dir = "/ours";
  image.release = "12";
  image.env_vars = {{"PATH", "/opt"}, {"DIB_IMAGE_NAME", "other"}};
  process::Environment environment = Plan().commands[0].environment;
  EXPECT_EQ(environment["ELEMENTS_PATH"], "/ours");
  EXPECT_EQ(environment["DIB_RELEASE"], "12");
  EXPECT_EQ(environment["PATH"], "/opt");
  EXPECT_EQ(environment["DIB_IMAGE_NAME"], "other") << "env-vars have the last word";
}

// D-46
TEST_F(BuildCommandTest, FormatsThatExcludeEachOtherAreConvertedAfterwards) {
  image.formats = {"qcow2", "tar", "vhd", "vmdk"};
  BuildPlan plan = Plan();
  ASSERT_EQ(plan.commands.size(), 2u);
  EXPECT_EQ(plan.commands[0].argv[3], "qcow2,tar,vhd");
  EXPECT_THAT(plan.commands[1].argv, ElementsAre("qemu-img", "convert", "-f", "qcow2", "-O", "vmdk",
                                                 "/opt/images/deb-0c44.qcow2", "/opt/images/deb-0c44.vmdk"));
  EXPECT_THAT(plan.without_checksums, ElementsAre("vmdk"));
  image.formats = {"raw", "vmdk"};
  plan = Plan();
  EXPECT_EQ(plan.commands.size(), 1u);
  EXPECT_EQ(plan.commands[0].argv[3], "raw,vmdk");
  EXPECT_THAT(plan.without_checksums, IsEmpty());
}

TEST(ReasonInLog, IsTheLastLineThatSpeaksOfAnError) {
  EXPECT_EQ(ReasonInLog("2026-05-01 10:00:00.123 | Building elements: base\n"
                        "2026-05-01 10:00:01.123 | E: Unable to locate package nope, not found\n"
                        "2026-05-01 10:00:01.200 | + cleanup error\n"
                        "2026-05-01 10:00:01.300 | Unmounting\n\n"),
            "E: Unable to locate package nope, not found");
}

TEST(ReasonInLog, IsElseTheLastLine) {
  EXPECT_EQ(ReasonInLog("one\ntwo\n  \n++ trace\n"), "two");
  EXPECT_EQ(ReasonInLog(""), "");
  EXPECT_EQ(ReasonInLog("+ set -e\n"), "");
}

TEST(ReasonInLog, IsShortAndShowsNoControls) {
  EXPECT_EQ(ReasonInLog("error: \x1b[31mred"), "error: \\x1b[31mred");
  EXPECT_LT(ReasonInLog(std::string(5000, 'x')).size(), 210u);
}

}  // namespace

}  // namespace nodepool::builder
