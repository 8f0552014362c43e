#include "builder/files/directory_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "async/loop.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "builder/files/builder_id.h"

namespace nodepool::builder {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr const char* kId = "0123456789abcdef0123456789abcdef";
constexpr const char* kOtherId = "f123456789abcdef0123456789abcdef";

class DirectoryFilesTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, const std::string& text = "x") {
    fs::create_directories(fs::path(folder + "/" + name).parent_path());
    std::ofstream(folder + "/" + name) << text;
  }
  std::string Read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder + "/" + name).rdbuf();
    return text.str();
  }
  std::set<std::string> Names() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }
  LocalBuilds Scan(std::set<ImageName> images = {}) { return Run(files.Scan(folder, images)); }
  template <class T>
  T Run(Task<T> task) {
    return RunToEnd(loop, std::move(task));
  }
  static store::BuildKey Key(const std::string& image, const std::string& build = kId) {
    return {ImageName(image), BuildId(build)};
  }

  Loop loop;
  BlockingPool pool{1};
  DirectoryFiles files{pool};
  testing::TemporaryFolder temporary_;
  const std::string& folder = temporary_.path();
  std::string base = std::string("deb-12.5-") + kId;
};

TEST(LocalName, TellsTheBuild) {
  auto parse = [](const std::string& name) {
    std::optional<LocalName> parsed = ParseLocalName(name);
    return parsed ? parsed->build.image.value + " " + parsed->build.build.value + " " + parsed->rest : "";
  };
  std::string id = kId;
  EXPECT_EQ(parse("deb-12.5-" + id + ".qcow2.md5"), "deb-12.5 " + id + " qcow2.md5");
  EXPECT_EQ(parse("a-0000000007.raw"), "a 0000000007 raw");
  std::vector<std::string> foreign = {"ubuntu-2204.iso", "notes-1.txt", "-", "",
                                      "a-ABCDEF0123456789ABCDEF0123456789.raw"};
  for (const char* shape : {"a-{}", "a-{}.", "-{}.raw", "a-{}0.raw", "a{}.raw"}) {
    foreign.push_back(fmt::format(fmt::runtime(shape), id));
  }
  for (const std::string& name : foreign) {
    EXPECT_EQ(parse(name), "") << name;
  }
}

// B-find-files
TEST_F(DirectoryFilesTest, FindsImagesAmongOtherThings) {
  for (const char* end : {".qcow2", ".qcow2.md5", ".raw", ".d/manifest"}) Put(base + end);
  for (const char* name : {"ubuntu-2204.iso", "builder_id.txt", "a-0000000007.raw", "b-0000000008.raw"})
    Put(name);
  LocalBuilds builds = Scan({ImageName("a")});
  EXPECT_THAT(builds,
              UnorderedElementsAre(
                  Pair(Key("deb-12.5"), UnorderedElementsAre(Pair("qcow2", folder + "/" + base + ".qcow2"),
                                                             Pair("raw", folder + "/" + base + ".raw"))),
                  Pair(Key("a", "0000000007"), ElementsAre(Pair("raw", folder + "/a-0000000007.raw")))));
  EXPECT_EQ(Run(files.Scan(folder + "/", {ImageName("a")})).at(Key("deb-12.5")).size(), 2u);
  EXPECT_THROW(Run(files.Scan(folder + "/none", {})), Error);
}

// builder.md 9.4
TEST_F(DirectoryFilesTest, RemovesAllOfABuildAndNothingElse) {
  for (const char* end : {".qcow2", ".qcow2.md5", ".qcow2.sha256", ".raw-new", ".d/dir/manifest", ".vhd.bak"})
    Put(base + end);
  std::string sibling = std::string("deb-12.5-x-") + kId + ".qcow2";
  std::string other = std::string("deb-12.5-") + kOtherId + ".qcow2";
  // A directory that no build creates.
  for (const std::string& name : {sibling, other, base + ".mine/file", base, std::string("outside")})
    Put(name);
  fs::create_symlink(folder + "/outside", folder + "/" + base + ".vmdk");
  for (int i = 0; i < 2; ++i) Run(files.RemoveBuild(folder, Key("deb-12.5")));
  EXPECT_THAT(Names(), UnorderedElementsAre(sibling, other, base + ".mine", base, "outside"));
}

TEST_F(DirectoryFilesTest, RemovesAFormatWithItsChecksums) {
  for (const char* end : {".qcow2", ".qcow2.md5", ".qcow2.sha256", ".raw"}) Put(base + end);
  for (int i = 0; i < 2; ++i) Run(files.RemoveFormat(folder, Key("deb-12.5"), "qcow2"));
  EXPECT_THAT(Names(), ElementsAre(base + ".raw"));
}

// builder.md 9.3: the files' checksums are taken as they are; missing ones are computed.
TEST_F(DirectoryFilesTest, Checksums) {
  Put("i.raw", "abc");
  Checksums computed = Run(files.ReadChecksums(folder + "/i.raw"));
  EXPECT_EQ(computed.md5, "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(computed.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Read("i.raw.md5"), "900150983cd24fb0d6963f7d28e17f72  " + folder + "/i.raw\n");
  Put("i.raw.md5", std::string(32, 'a') + "  i.raw");
  EXPECT_EQ(Run(files.ReadChecksums(folder + "/i.raw")).md5, std::string(32, 'a'));
  for (const std::string& garbage : {std::string("short"), std::string(40, 'z'), std::string()}) {
    Put("i.raw.md5", garbage);
    EXPECT_EQ(Run(files.ReadChecksums(folder + "/i.raw")).md5, computed.md5);
  }
  EXPECT_THROW(Run(files.ReadChecksums(folder + "/none")), Error);
}

TEST_F(DirectoryFilesTest, ChecksumsOfASparseFileAreThoseOfItsContent) {
  constexpr std::size_t kHole = 3 << 20;
  Put("i.raw", "abc");
  fs::resize_file(folder + "/i.raw", kHole);
  std::ofstream(folder + "/i.raw", std::ios::app) << "xyz";
  fs::resize_file(folder + "/i.raw", 2 * kHole);
  Run(files.WriteChecksums(folder + "/i.raw"));
  std::string content = "abc" + std::string(kHole - 3, '\0') + "xyz" + std::string(kHole - 3, '\0');
  EXPECT_THAT(Read("i.raw.sha256"), StartsWith(Sha256Hex(content)));
  Digest md5("md5");
  md5.Add(content);
  EXPECT_THAT(Read("i.raw.md5"), StartsWith(md5.Hex()));
}

// B-log-retention; builds of "deb" do not count those of "deb-12"
TEST_F(DirectoryFilesTest, TheConfiguredNumberOfLogsIsRetained) {
  auto names_after = [&](int retention) {
    fs::remove_all(folder);
    for (int i = 0; i < 5; ++i) {
      std::string name = fmt::format("deb-{:032x}.log", i);
      Put(name);
      fs::last_write_time(folder + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(i));
    }
    Put(std::string("deb-12-") + kId + ".log");
    Put("deb-notes.log");
    EXPECT_EQ(Run(files.StartLog(folder, Key("deb", kOtherId), retention)),
              folder + "/deb-" + kOtherId + ".log");
    EXPECT_TRUE(Names().contains(std::string("deb-12-") + kId + ".log"));
    return Names().size() - 2;
  };
  EXPECT_EQ(names_after(-1), 6u);
  EXPECT_EQ(names_after(0), 2u);
  EXPECT_EQ(names_after(2), 3u);
  EXPECT_TRUE(Names().contains(fmt::format("deb-{:032x}.log", 0))) << "the newest stay";
  Run(files.AppendToLog(folder + "/x", "a"));
  Run(files.AppendToLog(folder + "/x", "b"));
  EXPECT_EQ(Read("x"), "ab");
}

// B-id-file
TEST_F(DirectoryFilesTest, TheBuildersIdIsMadeOnce) {
  SeededRandom random(1);
  std::string id = ReadBuilderId(folder, random);
  EXPECT_THAT(id, MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_EQ(Read("builder_id.txt"), id);
  EXPECT_EQ(ReadBuilderId(folder, random), id);
  Put("builder_id.txt", " any thing\n");
  EXPECT_EQ(ReadBuilderId(folder, random), " any thing\n");
  for (std::string rest : {std::string(), std::string(36, '\0')}) {
    Put("builder_id.txt", rest);
    EXPECT_EQ(ReadBuilderId(folder, random).size(), id.size()) << "a crash has left it";
  }
}

TEST_F(DirectoryFilesTest, ImagesDirIsMade) {
  SeededRandom random(1);
  std::string id = ReadBuilderId(folder + "/new/images", random);
  EXPECT_EQ(Read("new/images/builder_id.txt"), id);
  Put("file", "");
  try {
    ReadBuilderId(folder + "/file/images", random);
    FAIL() << "there is no directory";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("images-dir " + folder + "/file/images cannot be made: Not a directory"),
                      HasSubstr("install -d -o nodepool")));
  }
}

}  // namespace
}  // namespace nodepool::builder
