#include "drivers/libvirt/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "driver/cloud/metadata.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsPlain(unsigned char c) { return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-'; }

}  // namespace

std::string Escaped(std::string_view field) {
  std::string text;
  for (char c : field) {
    if (IsPlain(static_cast<unsigned char>(c))) {
      text += c;
    } else {
      text += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::optional<std::string> Unescaped(std::string_view text) {
  std::string field;
  while (!text.empty()) {
    if (text.front() != '%') {
      field += text.front();
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 3) return std::nullopt;
    std::size_t high = kHexDigits.find(text[1]), low = kHexDigits.find(text[2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    field += static_cast<char>(high * 16 + low);
    text.remove_prefix(3);
  }
  return field;
}

namespace {

bool IsUuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  auto fits = [](char form, char c) {
    bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    return form == 'x' ? is_digit : c == form;
  };
  return std::ranges::equal(kForm, text, fits);
}

}  // namespace

std::optional<MachineId> ParseMachineId(std::string_view text) {
  std::size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos) return std::nullopt;
  std::string_view uuid = text.substr(slash + 1);
  if (!IsUuid(uuid)) return std::nullopt;
  return MachineId{std::string(text.substr(0, slash)), std::string(uuid)};
}

std::string MacAddressOf(const MachineId& id, std::size_t interface) {
  const std::string& uuid = id.uuid;
  return fmt::format("52:54:{:02x}:{}:{}:{}", interface & 0xff, uuid.substr(0, 2), uuid.substr(2, 2),
                     uuid.substr(4, 2));
}

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
