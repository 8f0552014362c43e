#include "builder/files/remove_tree.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/temporary_folder.h"

namespace nodepool::builder {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace nodepool::builder
