#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
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
#include "cli/show_listing.h"
#include "operate/actions.h"
#include "store/image_data.h"
#include "store/whole_tree.h"

namespace nodepool::cli {

namespace {

// `nodepool image-pause IMAGE` and `image-unpause IMAGE`: pauses or resumes the builds of the image
// (operations.md 5.6).
Task<int> PauseImage(Context& context, ImageName image) {
  operate::Done paused = co_await operate::PauseImage(context.store, std::move(image));
  if (paused) co_return 0;
  context.logger.Error("{}", paused.error().why);
  co_return 1;
}

Task<int> UnpauseImage(Context& context, ImageName image) {
  std::vector<ImageName> images = co_await context.store.images.List();
  bool has_records = std::ranges::find(images, image) != images.end();
  if (!has_records && !context.config->common.diskimages.contains(image)) {
    context.logger.Error("{}", UnknownImage(*context.config, image));
    co_return 1;
  }
  co_await operate::UnpauseImage(context.store, std::move(image));
  co_return 0;
}

int StatusOf(Context& context, const operate::Done& done) {
  if (!done) context.logger.Error("{}", done.error().why);
  return done ? 0 : 1;
}

std::string_view WithoutZeros(std::string_view number) {
  return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

bool IsMeant(const store::StoredUpload& upload, const std::string& id) {
  return WithoutZeros(upload.id.upload.value) == WithoutZeros(id) || upload.record.external_id == id;
}

// Which upload image-delete selects, in one of two forms.
struct DeleteValues {
  std::string id;
  std::string provider, image, build, upload;
  bool is_forced = false;

  store::UploadKey key() const {
    return {{ImageName(image), BuildId(build)}, ProviderName(provider), UploadId(upload)};
  }
};

// Marks builds and uploads for deletion; a builder deletes them (operations.md 5.6). `name` is <image>-<build
// id>.
Task<int> DibImageDelete(Context& context, std::string name) {
  std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) {
    context.logger.Error("\"{}\" is no build; expected IMAGE-BUILD, as dib-image-list shows it", name);
    co_return 1;
  }
  store::BuildKey key{ImageName(name.substr(0, dash)), BuildId(name.substr(dash + 1))};
  operate::Done done = co_await operate::DeleteBuild(context.loop, context.store, std::move(key));
  co_return StatusOf(context, done);
}

Task<int> ImageDelete(Context& context, store::UploadKey key, bool is_forced) {
  operate::Done done = co_await operate::DeleteUpload(context.loop, context.store, std::move(key), is_forced);
  co_return StatusOf(context, done);
}

// The same for an upload that is given by its number, with or without leading zeros, or by the image's id in
// the cloud (operations.md 13.8). If several match, none is deleted. If forced, the record is removed at
// once; the image in the cloud is then deleted as a leak.
Task<int> ImageDeleteById(Context& context, std::string id, bool is_forced) {
  std::vector<store::StoredUpload> uploads = co_await store::ListUploads(context.store);
  std::erase_if(uploads, [&](const store::StoredUpload& upload) { return !IsMeant(upload, id); });
  if (uploads.size() > 1) {
    context.logger.Error("\"{}\" may mean each of these:", id);
    for (const store::StoredUpload& upload : uploads) {
      const auto& [build, provider, number] = upload.id;
      context.logger.Error("image-delete --provider {} --image {} --build-id {} --upload-id {}", provider,
                           build.image, build.build, number);
    }
    co_return 1;
  }
  if (!uploads.empty()) co_return co_await ImageDelete(context, uploads.front().id, is_forced);
  context.logger.Error("Image upload not found");
  co_return 1;
}

void AddPause(CLI::App& app, Invocation& invocation, const char* name, const char* help,
              Task<int> (*change)(Context&, ImageName)) {
  auto image = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("IMAGE", *image, "name of the image")->required()->type_name("");
  OnCommand(*command, invocation,
            [change, image](Context& context) { return change(context, ImageName(*image)); });
}

void AddBuildDelete(CLI::App& app, Invocation& invocation) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("dib-image-delete", "delete a build of an image, with its uploads");
  command->add_option("BUILD", *id, "IMAGE-BUILD, as dib-image-list shows it")->required()->type_name("");
  OnCommand(*command, invocation, [id](Context& context) { return DibImageDelete(context, *id); });
}

void AddUploadDelete(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<DeleteValues>();
  CLI::App* command = app.add_subcommand(
      "image-delete",
      "delete an upload of an image; that of the newest build is made again, so to go back to the image "
      "before use dib-image-delete");
  auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    return command->add_option(name, value, help)->type_name(type);
  };
  CLI::Option* provider = add("--provider", values->provider, "the provider", "PROVIDER");
  CLI::Option* image = add("--image", values->image, "the image", "IMAGE");
  CLI::Option* build = add("--build-id", values->build, "the build", "ID");
  CLI::Option* upload = add("--upload-id", values->upload, "the upload", "ID");
  provider->needs(image)->needs(build)->needs(upload);
  for (CLI::Option* option : {image, build, upload}) option->needs(provider);
  add("ID", values->id, "in place of these: number of the upload, or id of the image in the cloud", "")
      ->excludes(provider);
  command->add_flag("--force", values->is_forced,
                    "remove its record at once; what the cloud has is deleted by a launcher, as a leak");
  command->callback([&invocation, values, provider] {
    if (values->id.empty() && provider->count() == 0) {
      throw CLI::RequiredError("ID, or --provider, --image, --build-id and --upload-id");
    }
    invocation.command = [values](Context& context) {
      return values->id.empty() ? ImageDelete(context, values->key(), values->is_forced)
                                : ImageDeleteById(context, values->id, values->is_forced);
    };
  });
}

}  // namespace

void RegisterImagePause(CLI::App& app, Invocation& invocation) {
  AddPause(app, invocation, "image-pause", "stop building an image", &PauseImage);
  AddPause(app, invocation, "image-unpause", "build an image again", &UnpauseImage);
}

void RegisterImageDelete(CLI::App& app, Invocation& invocation) {
  AddBuildDelete(app, invocation);
  AddUploadDelete(app, invocation);
}

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
