#include "cli/image_changes.h"

#include <fmt/format.h>

#include <ostream>

#include "store/list_uploads.h"

namespace nodepool::cli {
namespace {

// What applies to both kinds of records.
template <class Record>
std::function<store::Change(Record&)> ToDeleting(WallTime now) {
  return [now](Record& record) {
    record.state = ImageState::kDeleting;
    record.state_time = now;
    return store::Change::kWrite;
  };
}

std::string_view WithoutZeros(std::string_view number) {
  return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

bool IsMeant(const store::StoredUpload& upload, const std::string& id) {
  return WithoutZeros(upload.id.upload.value) == WithoutZeros(id) || upload.record.external_id == id;
}

}  // namespace

Task<int> DibImageDelete(Context& context, std::string name) {
  std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) {
    context.logger.Error("\"{}\" is no build; expected IMAGE-BUILD, as dib-image-list shows it", name);
    co_return 1;
  }
  store::BuildKey key{ImageName(name.substr(0, dash)), BuildId(name.substr(dash + 1))};
  std::optional<store::StoredBuild> build;
  if (!key.image.empty() && !key.build.empty() && name.find('/') == std::string::npos) {
    build = co_await context.store.images.ReadBuild(key);
  }
  if (!build) {
    context.out << "Build " << name << " not found\n";
  } else if (build->record.state == ImageState::kBuilding) {
    context.out << "Cannot delete a build in progress\n";
  } else {
    auto change = ToDeleting<ImageBuild>(context.loop.Now());
    co_await context.store.images.UpdateUnlocked(*build, change);
  }
  co_return 0;
}

Task<int> ImageDelete(Context& context, store::UploadKey key, bool is_forced) {
  std::optional<store::StoredUpload> upload;
  bool is_name = key.str().find('/') == std::string::npos;
  if (is_name) upload = co_await context.store.images.ReadUpload(key);
  if (!upload) {
    context.out << "Image upload not found\n";
  } else if (upload->record.state == ImageState::kUploading) {
    context.out << "Cannot delete because image upload in progress\n";
  } else if (is_forced) {
    co_await context.store.images.RemoveUpload(key);
  } else {
    co_await MarkForDeletion(context, *upload);
  }
  co_return 0;
}

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
  context.out << "Image upload not found\n";
  co_return 0;
}

Task<> MarkForDeletion(Context& context, store::StoredUpload upload) {
  auto change = ToDeleting<ImageUpload>(context.loop.Now());
  co_await context.store.images.UpdateUnlocked(upload, change);
}

Task<int> PauseImage(Context& context, ImageName image) {
  std::exception_ptr error;
  try {
    co_await context.store.images.Pause(image);
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return 0;
  if (VerdictOf(error) != Verdict::kNotFound) std::rethrow_exception(error);
  context.logger.Error("There is no image {} yet; it can be paused once a builder knows it", image);
  co_return 1;
}

Task<int> UnpauseImage(Context& context, ImageName image) {
  co_await context.store.images.Unpause(image);
  co_return 0;
}

}  // namespace nodepool::cli
