#include "store/image_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/console.h"
#include "store/record_counts.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;

constexpr int kOwnerOnly = 0600;

[[noreturn]] void Refuse(const std::string& path) {
  throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(errno)));
}

// Closes the file; false, with errno, when not all of the text has reached it.
bool WriteAndClose(int file, const std::string& text, bool is_kept) {
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t size = ::write(file, text.data() + done, text.size() - done);
    if (size < 0) break;
    done += static_cast<std::size_t>(size);
  }
  bool is_good = done == text.size() && (!is_kept || ::fsync(file) == 0);
  int fault = errno;
  if (::close(file) != 0) return false;
  errno = fault;
  return is_good;
}

// Into a device or a pipe, which nothing may take the place of.
void WriteInto(const std::string& path, const std::string& text) {
  int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0 || !WriteAndClose(file, text, false)) Refuse(path);
}

// Writes the whole file or nothing.
void WriteFile(const std::string& path, const std::string& text) {
  struct stat target {};
  bool is_special = ::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode);
  if (is_special) return WriteInto(path, text);
  std::string part = path + ".part";
  ::unlink(part.c_str());
  int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly);
  if (file < 0) Refuse(part);
  bool is_good = WriteAndClose(file, text, true) && std::rename(part.c_str(), path.c_str()) == 0;
  if (is_good) return;
  int fault = errno;
  ::unlink(part.c_str());
  errno = fault;
  Refuse(path);
}

std::map<std::string, std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) Refuse(path);
  std::ostringstream text;
  text << file.rdbuf();
  std::map<std::string, std::string> records;
  try {
    json::value content = json::parse(text.str());
    for (const auto& member : content.as_object()) {
      records.emplace(member.key(), std::string(member.value().as_string()));
    }
  } catch (const std::exception&) {
    throw Error(Verdict::kInvalid, fmt::format("{}: expected a JSON object of paths and texts", path));
  }
  return records;
}

// "1 image, 2 builds, 3 uploads"
std::string CountText(const std::map<std::string, std::string>& records) {
  store::RecordCounts counts;
  for (const auto& [path, text] : records) counts.Add(path);
  return fmt::format("{}, {}, {}", Counted(counts.images.size(), "image"), Counted(counts.builds, "build"),
                     Counted(counts.uploads, "upload"));
}

Task<> RefuseWhileDaemonsRun(Context& context) {
  for (ComponentKind kind : {ComponentKind::kLauncher, ComponentKind::kBuilder}) {
    std::vector<Component> running = co_await context.store.components.List(kind);
    if (running.empty()) continue;
    throw Error(Verdict::kConflict,
                fmt::format("a {} runs on {}; stop all launchers and builders first, or use --force",
                            ToString(kind), running.front().hostname));
  }
}

// `nodepool export-image-data FILE` and `import-image-data FILE` (operations.md 5.8): the records of images
// as a JSON object, path to text. Logs how many were written.
Task<int> ExportImageData(Context& context, std::string path) {
  std::map<std::string, std::string> records = co_await store::ExportImages(context.store);
  json::object content;
  for (const auto& [place, text] : records) content[place] = text;
  WriteFile(path, json::serialize(content));
  context.logger.Info("{} exported to {}", CountText(records), path);
  co_return 0;
}

// Unless `is_forced`, throws Error(kConflict) if a launcher or builder is registered; nothing is written
// then.
Task<int> ImportImageData(Context& context, std::string path, bool is_forced) {
  std::map<std::string, std::string> records = ReadFile(path);
  if (!is_forced) co_await RefuseWhileDaemonsRun(context);
  std::string counts = CountText(records);
  co_await store::ImportImages(context.store, std::move(records));
  context.logger.Info("{} imported from {}", counts, path);
  co_return 0;
}

}  // namespace

void RegisterImageData(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string path;
    bool is_forced = false;
  };
  auto values = std::make_shared<Values>();
  auto add = [&](const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("FILE", values->path, "the file")->required()->type_name("");
    return command;
  };
  CLI::App* exporting = add("export-image-data", "write the records of images to a file");
  OnCommand(*exporting, invocation,
            [values](Context& context) { return ExportImageData(context, values->path); });
  CLI::App* importing = add("import-image-data", "read them back, while no daemon runs");
  importing->add_flag("--force", values->is_forced, "proceed even if launchers or builders are registered");
  OnCommand(*importing, invocation,
            [values](Context& context) { return ImportImageData(context, values->path, values->is_forced); });
}

}  // namespace nodepool::cli
