#include "process/lock_holder.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace nodepool::process {
namespace {

TEST(LockHolderTest, IsReadFromTheKernelsTable) {
  constexpr std::string_view kLocks =
      "1: POSIX  ADVISORY  WRITE 11 08:01:5678 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 12 08:02:5678 0 EOF\n"
      "3: FLOCK  ADVISORY  READ  13 fe:1a:5678 0 EOF\n"
      "3: -> FLOCK  ADVISORY  WRITE 14 fe:1b:5678 0 EOF\n"
      "4: FLOCK  ADVISORY  WRITE -1 08:03:5678 0 EOF\n"
      "nonsense\n";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 2), 5678), 12);
  EXPECT_EQ(LockHolderIn(kLocks, makedev(0xfe, 0x1a), 5678), 13);
  EXPECT_EQ(LockHolderIn(kLocks, makedev(0xfe, 0x1b), 5678), std::nullopt) << "it waits";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 1), 5678), std::nullopt) << "of another kind";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 3), 5678), std::nullopt) << "of another container";
  EXPECT_EQ(LockHolderIn(kLocks, makedev(8, 2), 567), std::nullopt);
}

}  // namespace
}  // namespace nodepool::process
