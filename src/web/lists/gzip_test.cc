#include "web/lists/gzip.h"

#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "base/random.h"
#include "web/lists/gunzip_for_test.h"

namespace nodepool::web {
namespace {

// HTTP-6
TEST(GzipTest, PiecesOfAnySize) {
  SeededRandom random(1);
  for (std::size_t longest : {1u, 100u, 200'000u}) {
    GzipWriter writer;
    std::string text, compressed;
    for (int i = 0; i < 30; ++i) {
      std::string piece(random.Below(longest + 1), '\0');
      // The first pieces can hardly be compressed, the others well.
      for (char& c : piece) c = static_cast<char>(i < 10 ? random.Below(256) : 'a' + random.Below(2));
      writer.Write(compressed, piece);
      text += piece;
    }
    writer.Finish(compressed);
    EXPECT_TRUE(Gunzipped(compressed) == text) << longest;
  }
}

// HTTP-6
TEST(GzipTest, NothingIsAFileToo) {
  GzipWriter writer;
  std::string compressed;
  writer.Finish(compressed);
  EXPECT_EQ(Gunzipped(compressed), "");
}

// HTTP-6
TEST(GzipTest, TheLoopGoesOnMeanwhile) {
  testing::VirtualTime time;
  std::string text(1 << 20, 'x');
  Pace pace(time.loop(), Pace::kEachStep);
  EXPECT_TRUE(Gunzipped(time.Run(Gzipped(text, pace))) == text);
}

}  // namespace
}  // namespace nodepool::web
