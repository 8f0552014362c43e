#include "builder/files/local_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/testing/test_environment.h"
#include "builder/files/temporary_files.h"

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
using Paths = std::vector<std::string>;

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

class ImageCheckTest : public ::testing::Test {
 protected:
  ~ImageCheckTest() override { std::filesystem::remove(path_); }
  ImageCheck Check(const std::string& format, const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return CheckImageFile(path_, format);
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("nodepool-image-{}", ::getpid())).string();
};

TEST_F(ImageCheckTest, NoFormatHasAnEmptyFile) {
  for (const char* format : {"qcow2", "raw", "vhd", "vmdk"})
    EXPECT_THAT(Check(format, "").fault, HasSubstr(std::string("its ") + format + " file is empty"));
}

TEST_F(ImageCheckTest, WhatLooksLikeItsFormatIsNotDoubted) {
  std::string vhd = std::string(1024, 'x') + "conectix" + std::string(504, 0);
  for (const auto& [format, bytes] :
       {std::pair("qcow2", std::string("QFI\xfb") + "..."), std::pair("vhd", vhd),
        std::pair("raw", std::string("anything")), std::pair("vmdk", std::string("x"))}) {
    ImageCheck check = Check(format, bytes);
    EXPECT_EQ(check.fault + check.doubt, "") << format;
  }
}

TEST_F(ImageCheckTest, OtherBytesAreDoubtedButNoFault) {
  for (const char* format : {"qcow2", "vhd"}) {
    for (const std::string& bytes : {std::string("QF"), std::string("fake-data"), std::string(2048, 0)}) {
      ImageCheck check = Check(format, bytes);
      EXPECT_EQ(check.fault, "");
      EXPECT_THAT(check.doubt, HasSubstr(std::string("does not look like a ") + format));
    }
  }
}

TEST_F(ImageCheckTest, AFileThatCannotBeReadIsAnError) {
  EXPECT_THROW(CheckImageFile("/no/such/file.raw", "raw"), Error);
}

class RemoveTreeTest : public ::testing::Test {
 protected:
  RemoveTreeTest() {
    fs::create_directories(tree() / "a/b");
    std::ofstream(tree() / "a/b/file") << "x";
    fs::create_directories(folder_ / "outside");
    std::ofstream(folder_ / "outside/file") << "x";
  }

  fs::path tree() const { return folder_ / "tree"; }
  fs::path outside() const { return folder_ / "outside/file"; }

  testing::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST_F(RemoveTreeTest, RemovesFilesLinksAndPipesButNothingBehindALink) {
  fs::create_directory_symlink(folder_ / "outside", tree() / "a/link");
  fs::create_symlink("missing", tree() / "dangling");
  ASSERT_EQ(::mkfifo((tree() / "pipe").c_str(), 0600), 0);
  RemoveTree(tree().string());
  EXPECT_FALSE(fs::exists(fs::symlink_status(tree())));
  EXPECT_TRUE(fs::exists(outside()));
  RemoveTree(tree().string());
}

TEST_F(RemoveTreeTest, DoesNotFollowALinkInItsPlace) {
  fs::create_directory_symlink(folder_ / "outside", folder_ / "link");
  EXPECT_THROW(RemoveTree((folder_ / "link").string()), Error);
  EXPECT_TRUE(fs::exists(outside()));
}

// The exit code of a process with mounts of its own; 77: it may not have any.
int RunWithMount(const fs::path& source, const fs::path& place, const fs::path& tree) {
  pid_t child = ::fork();
  if (child == 0) {
    bool has_mounts = (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      ::mount(source.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) == 0;
    if (!has_mounts) ::_exit(77);
    try {
      RemoveTree(tree.string());
      ::_exit(1);
    } catch (const Error& error) {
      ::_exit(error.message() == place.string() + " is a mount; unmount it" ? 0 : 2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

// A bind mount from the same file system, as diskimage-builder makes for its hooks.
TEST_F(RemoveTreeTest, EntersNoMount) {
  int code = RunWithMount(folder_ / "outside", tree() / "a/b", tree());
  if (code == 77) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(fs::exists(outside()));
}

TEST(TemporaryDirectoriesTest, AreWhatTheLogSaysThatMktempMade) {
  EXPECT_EQ(TemporaryDirectories("2026-11-21 10:00:00.000 | + TMP_BUILD_DIR=/srv/tmp/dib_build.aB3dEf7h\n"
                                 "2026-11-21 10:00:00.010 | + TMP_IMAGE_DIR=/srv/tmp/dib_image.01234567\n"
                                 "2026-11-21 10:00:00.020 | ++ TMP_BUILD_DIR=/srv/tmp/dib_build.aB3dEf7h\n"),
            (Paths{"/srv/tmp/dib_build.aB3dEf7h", "/srv/tmp/dib_image.01234567"}));
}

TEST(TemporaryDirectoriesTest, AreNothingElse) {
  for (std::string value :
       {"/", "/home", "/srv/dib_build.short", "/srv/dib_build.toolong01", "dib_build.aB3dEf7h",
        "/srv/../dib_build.aB3dEf7h", "/srv/dib_build.aB3dEf7h/", "/srv/dib_build.aB3dEf7h/mnt",
        "/srv/dib_build.aB3d*f7h", "/srv/dib_other.aB3dEf7h", ""}) {
    EXPECT_TRUE(TemporaryDirectories("+ TMP_BUILD_DIR=" + value + "\n").empty()) << value;
  }
  EXPECT_TRUE(TemporaryDirectories("+ rm -r /srv/dib_build.aB3dEf7h\n").empty());
  EXPECT_TRUE(TemporaryDirectories(std::string(1 << 20, 'x')).empty());
}

class LeftoversTest : public ::testing::Test {
 protected:
  LeftoversTest() {
    temporary_folder_ = folder_.string();
    left_ = folder_ / "dib_build.aB3dEf7h";
    fs::create_directories(left_ / "mnt/dev");
    std::ofstream(left_ / "mnt/dev/file") << "x";
    fs::create_directories(folder_ / "logs");
  }

  fs::path WriteLog(const std::string& end,
                    const std::string& name = "debian-" + std::string(32, 'a') + ".log") {
    fs::path path = folder_ / "logs" / name;
    std::ofstream(path) << "+ TMP_BUILD_DIR=" << left_.string() << "\nmore\n" << end;
    return path;
  }
  Paths Remove() {
    return RunToEnd(loop_, files_.RemoveTemporary((folder_ / "logs").string(), {temporary_folder_}));
  }

  Loop loop_;
  BlockingPool pool_{1};
  DirectoryFiles files_{pool_};
  testing::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path left_;
  std::string temporary_folder_;
};

TEST_F(LeftoversTest, OfBuildsThatDidNotEndWellAreRemoved) {  // D-41
  for (std::string end : {"", "Exit code: -9\n", "Exit code: 1\n"}) {
    fs::create_directories(left_);
    WriteLog(end);
    EXPECT_EQ(Remove(), Paths{left_.string()}) << end;
    EXPECT_FALSE(fs::exists(left_));
    EXPECT_EQ(Remove(), Paths{}) << "a second sweep finds nothing";
  }
}

TEST_F(LeftoversTest, OfOtherProgramsAreNot) {
  WriteLog("Exit code: 0\n");
  WriteLog("Exit code: 1\n", "notes.log");
  EXPECT_EQ(Remove(), Paths{});
  EXPECT_TRUE(fs::exists(left_));
  fs::remove_all(folder_ / "logs");
  EXPECT_EQ(Remove(), Paths{}) << "no build yet";
}

TEST_F(LeftoversTest, OfABuildThatRunsAreNot) {
  std::ofstream writer(WriteLog(""), std::ios::app);
  EXPECT_EQ(Remove(), Paths{});
  writer.close();
  EXPECT_EQ(Remove(), Paths{left_.string()});
}

TEST_F(LeftoversTest, OutsideTheFoldersOfBuildsAreNot) {
  WriteLog("");
  for (const fs::path& folder :
       {fs::path("/"), fs::path("/var"), folder_ / "missing", folder_.parent_path()}) {
    temporary_folder_ = folder.string();
    EXPECT_EQ(Remove(), Paths{}) << folder;
  }
  EXPECT_TRUE(fs::exists(left_ / "mnt/dev/file"));
}

TEST_F(LeftoversTest, BehindALinkAreNot) {
  fs::path temporary = folder_ / "tmp";
  fs::create_directory(temporary);
  fs::create_directory_symlink(folder_, temporary / "link");
  temporary_folder_ = temporary.string();
  left_ = temporary / "link" / left_.filename();
  WriteLog("");
  EXPECT_EQ(Remove(), Paths{});
  EXPECT_TRUE(fs::exists(left_));
}

TEST_F(LeftoversTest, AreRemovedWhereTheFolderItselfIsALink) {
  fs::path link = folder_.string() + "-link";
  fs::create_directory_symlink(folder_, link);
  temporary_folder_ = link.string();
  fs::path real = left_;
  left_ = link / left_.filename();
  WriteLog("");
  EXPECT_EQ(Remove(), Paths{fs::canonical(folder_) / real.filename()});
  fs::remove(link);
}

TEST_F(LeftoversTest, ALinkIsNotFollowed) {
  fs::path elsewhere = folder_ / "elsewhere";
  fs::rename(left_, elsewhere);
  fs::create_directory_symlink(elsewhere, left_);
  WriteLog("");
  EXPECT_EQ(Remove(), Paths{});
  EXPECT_TRUE(fs::exists(elsewhere / "mnt/dev/file"));
}

}  // namespace

}  // namespace nodepool::builder
