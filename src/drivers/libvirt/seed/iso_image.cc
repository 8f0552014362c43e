#include "drivers/libvirt/seed/iso_image.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

namespace {

using Archive = std::unique_ptr<archive, decltype(&archive_write_free)>;
using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

void CheckArchive(const Archive& iso, int status) {
  if (status >= ARCHIVE_WARN) return;
  const char* cause = archive_error_string(iso.get());
  throw Error(Verdict::kFail, fmt::format("the seed image could not be made: {}",
                                          cause != nullptr ? cause : "unknown cause"));
}

la_ssize_t Append(archive*, void* image, const void* bytes, std::size_t size) {
  static_cast<std::string*>(image)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

void AddFile(const Archive& iso, const std::string& path, const std::string& content) {
  Entry entry(archive_entry_new(), &archive_entry_free);
  archive_entry_set_pathname(entry.get(), path.c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0444);
  archive_entry_set_mtime(entry.get(), 0, 0);
  CheckArchive(iso, archive_write_header(iso.get(), entry.get()));
  la_ssize_t written = archive_write_data(iso.get(), content.data(), content.size());
  if (written != static_cast<la_ssize_t>(content.size())) CheckArchive(iso, ARCHIVE_FATAL);
}

}  // namespace

std::string IsoImage(const std::string& label, const std::map<std::string, std::string>& files) {
  std::string image;
  Archive iso(archive_write_new(), &archive_write_free);
  CheckArchive(iso, archive_write_set_format_iso9660(iso.get()));
  CheckArchive(iso, archive_write_set_option(iso.get(), nullptr, "volume-id", label.c_str()));
  CheckArchive(iso, archive_write_open(iso.get(), &image, nullptr, &Append, nullptr));
  for (const auto& [path, content] : files) AddFile(iso, path, content);
  CheckArchive(iso, archive_write_close(iso.get()));
  return image;
}

}  // namespace nodepool::drivers::libvirt
