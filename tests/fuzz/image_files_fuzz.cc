// Any names and contents of files where the builder has its images and logs: it reads them, and what it
// removes of a build belongs to that build.
#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "async/loop.h"
#include "base/error.h"
#include "builder/files/local_files.h"
#include "builder/files/temporary_files.h"

namespace nodepool::builder {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

void Expect(bool is_right) {
  if (!is_right) __builtin_trap();
}

std::string PickName(FuzzedDataProvider& in) {
  static const std::string ids[] = {std::string(32, 'a'), "0123456789abcdef0123456789abcdef", "0000000001",
                                    "x"};
  std::string name = in.ConsumeRandomLengthString(12);
  if (in.ConsumeBool()) {
    static constexpr const char* kEnds[] = {".qcow2", ".qcow2.md5", ".qcow2.sha256", ".raw", ".d", ".log",
                                            "",       "."};
    name += "-" + in.PickValueInArray(ids) + in.PickValueInArray(kEnds);
  }
  std::erase_if(name, [](char c) { return c == '/' || c == '\0'; });
  return name == "." || name == ".." ? "" : name;
}

void MakeEntry(FuzzedDataProvider& in, const fs::path& folder) {
  std::string name = PickName(in);
  if (name.empty()) return;
  std::error_code ignored;
  switch (in.ConsumeIntegralInRange(0, 7)) {
    case 0:
      fs::create_directory(folder / name, ignored);
      std::ofstream(folder / name / "manifest") << "x";
      return;
    case 1:
      fs::create_symlink("../outside", folder / name, ignored);
      return;
    default:
      std::ofstream(folder / name, std::ios::binary) << in.ConsumeRandomLengthString(80);
  }
}

Names NamesIn(const fs::path& folder) {
  Names names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

void CheckChecksums(const Checksums& sums) {
  for (auto [sum, digits] : {std::pair(sums.md5, 32u), std::pair(sums.sha256, 64u)}) {
    Expect(sum && sum->size() == digits && sum->find_first_not_of("0123456789abcdef") == std::string::npos);
  }
}

Task<> Use(LocalFiles& files, fs::path folder) {
  std::set<ImageName> images{ImageName("a")};
  LocalBuilds builds = co_await files.Scan(folder, images);
  for (const auto& [build, formats] : builds) {
    for (const auto& [format, path] : formats) {
      Expect(fs::path(path).filename() == build.str() + "." + format);
      Checksums sums = co_await files.ReadChecksums(path);
      CheckChecksums(sums);
    }
    Names before = NamesIn(folder);
    co_await files.RemoveBuild(folder, build);
    Names after = NamesIn(folder);
    for (const std::string& name : before)
      Expect(after.contains(name) || name.starts_with(build.str() + "."));
  }
}

void CheckLog(const std::string& log) {
  for (const fs::path path : TemporaryDirectories(log)) {
    std::string name = path.filename();
    Expect(path.is_absolute() && path.lexically_normal() == path);
    Expect(name.starts_with("dib_build.") || name.starts_with("dib_image."));
  }
}

}  // namespace
}  // namespace nodepool::builder

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool;
  using namespace nodepool::builder;
  static const fs::path top = "/dev/shm/image_files_fuzz." + std::to_string(getpid());
  FuzzedDataProvider in(data, size);
  CheckLog("+ TMP_BUILD_DIR=" + in.ConsumeRandomLengthString() + "\n");
  fs::create_directories(top / "images");
  std::ofstream(top / "outside") << "x";
  while (in.remaining_bytes() > 0) MakeEntry(in, top / "images");
  Loop loop;
  BlockingPool pool(1);
  DirectoryFiles files(pool);
  RunToEnd(loop, Use(files, top / "images"));
  Expect(fs::exists(top / "outside"));
  fs::remove_all(top);
  return 0;
}
