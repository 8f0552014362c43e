#include "drivers/libvirt/names/volume_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "driver/cloud/metadata.h"
#include "drivers/libvirt/names/escaping.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::size_t kMachineDigits = 8;
constexpr std::size_t kShownDigits = 16;  // of a checksum
constexpr std::string_view kMark = ".unfinished";

// The unescaped fields of "np.<field>.<field>..."; empty: not a name of ours. A field is not empty, and is
// written as Escaped writes it.
std::vector<std::string> FieldsOf(std::string_view name) {
  std::vector<std::string> fields;
  for (const std::string& text : Split(name, '.')) {
    std::optional<std::string> field = Unescaped(text);
    if (!field || field->empty() || Escaped(*field) != text) return {};
    fields.push_back(std::move(*field));
  }
  if (fields.empty() || fields.front() != "np") return {};
  return fields;
}

bool IsPart(std::string_view part) {
  constexpr std::array kParts = {kRootPart,        kConsolePart, kNoCloudPart,
                                 kConfigDrivePart, kMemoryPart,  kVariablesPart};
  return std::ranges::find(kParts, part) != kParts.end();
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string NameOf(const MachineVolume& volume) {
  return fmt::format("np.{}.node.{}.{}.{}", Escaped(volume.provider), Escaped(volume.node),
                     Escaped(volume.machine), volume.part);
}

std::optional<MachineVolume> ParseMachineVolume(std::string_view name) {
  std::vector<std::string> fields = FieldsOf(name);
  bool is_rotated_log = fields.size() == 7 && fields[5] == kConsolePart && IsNumber(fields[6]);
  if ((fields.size() != 6 && !is_rotated_log) || fields[2] != "node") return std::nullopt;
  bool is_machine = fields[4].size() == kMachineDigits &&
                    fields[4].find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_machine || !IsPart(fields[5])) return std::nullopt;
  std::string part = is_rotated_log ? fields[5] + "." + fields[6] : fields[5];
  return MachineVolume{fields[1], fields[3], fields[4], std::move(part)};
}

std::map<std::string, std::string> MetadataOf(const MachineVolume& volume) {
  return {{driver::cloud::kProviderKey, volume.provider}, {driver::cloud::kNodeKey, volume.node}};
}

std::string NameOf(const ImageVolume& volume) {
  return fmt::format("np.{}.image.{}.{}.{}", Escaped(volume.provider), Escaped(volume.build),
                     Escaped(volume.upload), Escaped(volume.format));
}

std::optional<ImageVolume> ParseImageVolume(std::string_view name) {
  std::vector<std::string> fields = FieldsOf(name);
  if (fields.size() != 6 || fields[2] != "image") return std::nullopt;
  return ImageVolume{fields[1], fields[3], fields[4], fields[5]};
}

std::string NameOf(const FetchedVolume& volume) {
  return fmt::format("np.{}.cloud.{}.{}", Escaped(volume.provider), volume.checksum.substr(0, kShownDigits),
                     Escaped(volume.format));
}

std::optional<FetchedVolume> ParseFetchedVolume(std::string_view name) {
  std::vector<std::string> fields = FieldsOf(name);
  if (fields.size() != 5 || fields[2] != "cloud" || fields[3].size() != kShownDigits) return std::nullopt;
  return FetchedVolume{fields[1], fields[3], fields[4]};
}

std::string MarkOf(std::string_view image) { return fmt::format("{}{}", image, kMark); }

std::string_view WithoutMark(std::string_view name) {
  if (name.ends_with(kMark)) name.remove_suffix(kMark.size());
  return name;
}

std::optional<ImageVolume> ParseMark(std::string_view name) {
  return name.ends_with(kMark) ? ParseImageVolume(WithoutMark(name)) : std::nullopt;
}

std::map<std::string, std::string> MetadataOf(const ImageVolume& volume) {
  return {{driver::cloud::kProviderKey, volume.provider},
          {driver::cloud::kBuildKey, volume.build},
          {driver::cloud::kUploadKey, volume.upload}};
}

}  // namespace nodepool::drivers::libvirt
