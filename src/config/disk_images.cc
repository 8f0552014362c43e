#include "config/disk_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "config/yaml/scalar.h"

namespace nodepool::config {
namespace {

using SectionsByName = std::map<std::string, const Section*>;

// Far more than anybody needs; bounds the work for a hostile file.
constexpr std::size_t kMaxAncestors = 100;

// The entry's ancestors from the root down, then the entry itself.
std::vector<const Section*> Lineage(const Section& entry, const SectionsByName& by_name) {
  std::vector<const Section*> lineage = {&entry};
  while (true) {
    const Section& youngest = *lineage.back();
    std::string parent = youngest.Text("parent");
    if (parent.empty()) break;
    auto found = by_name.find(parent);
    if (found == by_name.end()) {
      std::vector<std::string> names;
      for (const auto& [name, section] : by_name) names.push_back(name);
      std::optional<std::string> nearest = NearestSpelling(parent, names);
      throw youngest.Fail("parent",
                          fmt::format("there is no diskimage '{}'{}", Excerpt(parent),
                                      nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
    }
    if (std::ranges::find(lineage, found->second) != lineage.end()) {
      throw youngest.Fail("parent", fmt::format("'{}' is its own ancestor", Excerpt(parent)));
    }
    if (lineage.size() > kMaxAncestors) throw entry.Fail("parent", "has too many ancestors");
    lineage.push_back(found->second);
  }
  std::ranges::reverse(lineage);
  return lineage;
}

void RefuseNull(const Section& entry, std::string_view key) {
  const Value* value = entry.value().Find(key);
  if (value != nullptr && value->is_null()) throw entry.Fail(key, "has no value; leave the key out instead");
}

void ApplyText(const Section& entry, std::string_view key, std::string& target) {
  if (std::string text = entry.OptionalText(key).value_or(""); !text.empty()) target = std::move(text);
}

void ApplySeconds(const Section& entry, std::string_view key, Duration& target) {
  if (double seconds = entry.OptionalFloat(key).value_or(0); seconds != 0)
    target = SecondsToDuration(seconds);
}

void ApplyFormats(const Section& entry, std::string_view key, std::vector<std::string>& target) {
  std::vector<std::string> formats = entry.TextList(key);
  if (formats.empty()) return;
  std::ranges::sort(formats);
  formats.erase(std::ranges::unique(formats).begin(), formats.end());
  target = std::move(formats);
}

bool IsFalsy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return !value.bool_value();
    case Value::Kind::kInt:
      return value.int_value() == 0;
    case Value::Kind::kFloat:
      return value.float_value() == 0;
    default:
      return false;
  }
}

// One level of inheritance. That an absent `metadata` clears the parent's and that
// `pause: false` does not undo the parent's true is how existing files are read.
void Apply(const Section& entry, DiskImage& image) {
  RefuseNull(entry, "elements");
  RefuseNull(entry, "env-vars");
  std::ranges::move(entry.TextList("elements"), std::back_inserter(image.elements));
  for (auto& [key, value] : entry.TextMap("env-vars")) image.env_vars[key] = std::move(value);
  if (const Value* release = entry.Raw("release");
      release != nullptr && !entry.Text("release").empty() && !IsFalsy(*release)) {
    image.release = PythonText(*release);
  }
  ApplyFormats(entry, "formats", image.formats);
  ApplyFormats(entry, "keep-formats", image.keep_formats);
  if (std::optional<bool> flag = entry.OptionalBool("delete-after-upload")) image.delete_after_upload = *flag;
  ApplySeconds(entry, "rebuild-age", image.rebuild_age);
  ApplySeconds(entry, "build-timeout", image.build_timeout);
  image.is_paused = image.is_paused || entry.Bool("pause");
  ApplyText(entry, "dib-cmd", image.dib_cmd);
  ApplyText(entry, "username", image.username);
  ApplyText(entry, "python-path", image.python_path);
  if (std::string shell = entry.Text("shell-type"); !shell.empty()) image.shell_type = std::move(shell);
  image.metadata.clear();
  for (auto& [key, value] : entry.TextMap("metadata")) image.metadata[key] = std::move(value);
}

boost::json::value Sorted(const Value& value) {
  if (value.kind() == Value::Kind::kList) {
    boost::json::array array;
    for (const Value& item : value.list()) array.push_back(Sorted(item));
    return array;
  }
  if (value.kind() != Value::Kind::kMap) return value.ToJson();
  std::map<std::string_view, const Value*> sorted;
  for (const auto& [key, entry] : value.map()) sorted[key] = &entry;
  boost::json::object object;
  for (const auto& [key, entry] : sorted) object.emplace(key, Sorted(*entry));
  return object;
}

boost::json::object MapToJson(const std::map<std::string, std::string>& map) {
  boost::json::object object;
  for (const auto& [key, value] : map) object.emplace(key, value);
  return object;
}

boost::json::array ListToJson(const std::vector<std::string>& list) {
  boost::json::array array;
  for (const std::string& item : list) array.emplace_back(item);
  return array;
}

}  // namespace

std::map<ImageName, DiskImage> ReadDiskImages(const Section& root) {
  std::vector<Section> entries = root.Sections("diskimages");
  SectionsByName by_name;
  for (const Section& entry : entries) by_name[entry.Text("name")] = &entry;
  std::map<ImageName, DiskImage> images;
  int position = 0;
  for (const Section& entry : entries) {
    if (entry.Bool("abstract")) continue;
    DiskImage image;
    image.position = position++;
    for (const Section* level : Lineage(entry, by_name)) Apply(*level, image);
    image.name = ImageName(entry.Text("name"));
    images[image.name] = std::move(image);
  }
  return images;
}

std::vector<const DiskImage*> AsListed(const std::map<ImageName, DiskImage>& images) {
  std::vector<const DiskImage*> listed;
  for (const auto& [name, image] : images) listed.push_back(&image);
  std::ranges::stable_sort(listed, {}, &DiskImage::position);
  return listed;
}

std::string Fingerprint(const DiskImage& image) {
  return boost::json::serialize(boost::json::object{
      {"name", image.name.value},
      {"build-timeout", image.build_timeout.count()},
      {"dib-cmd", image.dib_cmd},
      {"elements", ListToJson(image.elements)},
      {"env-vars", MapToJson(image.env_vars)},
      {"formats", ListToJson(image.formats)},
      {"pause", image.is_paused},
      {"python-path", image.python_path},
      {"shell-type", image.shell_type.value_or("")},
      {"rebuild-age", image.rebuild_age.count()},
      {"release", image.release},
      {"username", image.username},
      {"metadata", MapToJson(image.metadata)},
  });
}

std::string CanonicalJson(const Value& value) { return boost::json::serialize(Sorted(value)); }

}  // namespace nodepool::config
