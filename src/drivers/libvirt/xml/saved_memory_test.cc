#include "drivers/libvirt/xml/saved_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/error.h"

namespace nodepool::drivers::libvirt {
namespace {

constexpr std::size_t kHeader = 92;

std::string File(const std::string& magic, std::uint32_t version, const std::string& description,
                 std::uint32_t cookie) {
  std::uint32_t numbers[19] = {version, static_cast<std::uint32_t>(description.size()), 1, 0, cookie};
  return magic + std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)) + description +
         "memory";
}

std::string Room(const std::string& text, std::size_t size) {
  return text + std::string(size - text.size(), '\0');
}

// LV-47
TEST(SavedMemoryTest, ReadsAndReplacesTheDescriptionWithinItsRoom) {
  std::string file = File("LibvirtQemudSave", 2, Room("<old/>", 20) + "cookie", 20);
  EXPECT_EQ(DescriptionIn(file), "<old/>");
  std::string start = WithDescription(file, "<longer/>");
  EXPECT_EQ(start.size(), kHeader + 20);
  EXPECT_EQ(start.substr(0, kHeader), file.substr(0, kHeader));
  EXPECT_EQ(DescriptionIn(start + file.substr(start.size())), "<longer/>");
  EXPECT_THROW(WithDescription(file, std::string(20, 'x')), Error) << "without a place for its end";
}

// LV-47
TEST(SavedMemoryTest, WithoutACookieTheWholeRoomIsTheDescriptions) {
  EXPECT_EQ(DescriptionIn(File("LibvirtQemudSave", 2, Room("<old/>", 20), 0)), "<old/>");
}

// LV-49
TEST(SavedMemoryTest, AFileThatIsNotCompleteHasNone) {
  EXPECT_EQ(DescriptionIn(""), std::nullopt);
  EXPECT_EQ(DescriptionIn(File("LibvirtQemudPart", 2, "<old/>", 0)), std::nullopt);
}

// LV-49
TEST(SavedMemoryTest, OtherFilesAreRefused) {
  EXPECT_THROW(DescriptionIn(File("SomethingElse...", 2, "<old/>", 0)), Error);
  EXPECT_THROW(DescriptionIn(File("LibvirtQemudSave", 3, "<old/>", 0)), Error);
  EXPECT_THROW(DescriptionIn(File("LibvirtQemudSave", 2, "<old/>", 7)), Error);
  std::string damaged = File("LibvirtQemudSave", 2, "<old/>", 0);
  damaged[20] = '\x7f';
  damaged[23] = '\x7f';
  EXPECT_THROW(DescriptionIn(damaged), Error);
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
