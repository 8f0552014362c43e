#include "config/disk_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "config/schema/bindings.h"
#include "config/yaml/value.h"

namespace nodepool::config {

namespace {

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

}  // namespace

std::optional<std::string_view> ImageNameFault(const ImageName& name) {
  const std::string& text = name.value;
  if (text.empty()) return "is empty";
  if (text == "." || text == "..") return "is that of a directory";
  if (text.starts_with('-')) return "begins with '-'";
  if (text.find('/') != std::string::npos) return "contains '/'";
  for (std::string_view rest = text; !rest.empty();) {
    Utf8Character character = FirstCharacter(rest);
    if (IsControl(character.code)) return "contains a control character";
    rest.remove_prefix(character.length);
  }
  return std::nullopt;
}

namespace {

using SectionsByName = std::map<std::string, const Section*>;

// Far more than a real configuration needs; bounds the work for a hostile file.
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

void RefuseNull(const Section& entry, std::string_view key) {
  const Value* value = entry.value().Find(key);
  if (value != nullptr && value->is_null()) throw entry.Fail(key, "has no value; leave the key out instead");
}

// --- One level of inheritance -----------------------------------------------------

void AddElements(const Section& entry, const std::string& key, DiskImage& image) {
  RefuseNull(entry, key);
  std::ranges::move(entry.TextList(key), std::back_inserter(image.elements));
}

void MergeVariables(const Section& entry, const std::string& key, DiskImage& image) {
  RefuseNull(entry, key);
  for (auto& [name, value] : entry.TextMap(key)) image.env_vars[name] = std::move(value);
}

void ReadRelease(const Section& entry, const std::string& key, DiskImage& image) {
  const Value* release = entry.Raw(key);
  if (release == nullptr || entry.Text(key).empty() || IsFalsy(*release)) return;
  image.release = PythonText(*release);
}

// An absent one clears the parent's: existing files rely on it.
void ReplaceMetadata(const Section& entry, const std::string& key, DiskImage& image) {
  image.metadata.clear();
  for (auto& [name, value] : entry.TextMap(key)) image.metadata[name] = std::move(value);
}

// Existing files rely on it that `false` does not undo the parent's true.
void ReadPause(const Section& entry, const std::string& key, DiskImage& image) {
  image.is_paused = image.is_paused || entry.Bool(key);
}

// Sorted, each once; an empty list counts as absent.
Binding<DiskImage> Formats(const char* key, const char* help, std::vector<std::string> DiskImage::*member) {
  return {Setting(key, Schema::List(Schema::String()), help),
          [member](const Section& entry, const std::string& name, DiskImage& image) {
            std::vector<std::string> formats = entry.TextList(name);
            if (formats.empty()) return;
            std::ranges::sort(formats);
            formats.erase(std::ranges::unique(formats).begin(), formats.end());
            image.*member = std::move(formats);
          }};
}

// A value that counts as absent where it is empty or 0.
template <class Member>
Binding<DiskImage> UnlessEmpty(Setting setting, Member DiskImage::*member) {
  Binding<DiskImage> binding(std::move(setting), member);
  binding.read = [member](const Section& entry, const std::string& key, DiskImage& image) {
    if (!entry.IsGiven(key)) return;
    Member value = MemberType<Member>::Read(entry, key);
    if (value != Member()) image.*member = std::move(value);
  };
  return binding;
}

// `true`, `false`, or how.
Binding<DiskImage> Validate() {
  static const Bindings<ImageValidation> settings = {
      {Setting("command",
               "Program with arguments, split by the rules of a shell, that the builder runs when the "
               "machine has "
               "booted; it finds the machine in its environment."),
       &ImageValidation::command},
      {Setting("timeout", Schema::Int().Between(1, 86400), "For all of it, waiting for capacity included."),
       &ImageValidation::timeout},
  };
  return {
      Setting("validate", Schema::OneOf({Schema::Bool(), settings.ToSchema()}),
              "Boot a machine of each upload, and check it, before launchers use the upload. Builders and "
              "launchers need it in their files.")
          .Default(false),
      [](const Section& entry, const std::string& key, DiskImage& image) {
        if (!entry.IsGiven(key)) return;
        image.validation.reset();
        if (entry.IsMapping(key)) {
          settings.Read(entry.Sub(key), image.validation.emplace());
        } else if (entry.Bool(key)) {
          image.validation.emplace();
        }
      }};
}

const Bindings<DiskImage>& DiskImageSettings() {
  static const Bindings<DiskImage> settings = {
      Setting("name", Schema::String(), "Name of the image.").Required(),
      Setting("abstract", Schema::Bool(), "Only a parent of others; never built.").Default(false),
      Setting("parent", Schema::String(), "Image whose settings this one starts from."),
      {Setting("elements", Schema::List(Schema::String()),
               "Elements of diskimage-builder, added to the parent's."),
       AddElements},
      {Setting("env-vars", Schema::OpenMap(Schema::String()),
               "Environment of the build, merged key by key over the parent's.")
           .Secret(),
       MergeVariables},
      {Setting("release", Schema::OneOf({Schema::String(), Schema::Int()}),
               "Passed to the build as DIB_RELEASE; quote it where it could be read as a number."),
       ReadRelease},
      Formats("formats", "Formats to build even if no provider needs them.", &DiskImage::formats),
      Formats("keep-formats", "Formats whose file stays when delete-after-upload is set.",
              &DiskImage::keep_formats),
      {Setting("delete-after-upload",
               "Remove the files of a format, but of keep-formats, once every provider that needs it has the "
               "image."),
       &DiskImage::delete_after_upload},
      UnlessEmpty({"rebuild-age", "A new build starts when the newest is this old."},
                  &DiskImage::rebuild_age),
      UnlessEmpty({"build-timeout", "A build that runs longer is stopped."}, &DiskImage::build_timeout),
      {Setting("pause", Schema::Bool(),
               "Do not build this image; false does not undo a parent's true. Uploads go on.")
           .Default(false),
       ReadPause},
      UnlessEmpty({"dib-cmd",
                   "Command that builds images, with arguments of its own, split by the rules of a shell."},
                  &DiskImage::dib_cmd),
      UnlessEmpty({"username", "User for logging in to nodes made from the image."}, &DiskImage::username),
      UnlessEmpty({"python-path", "Python interpreter on such nodes."}, &DiskImage::python_path),
      UnlessEmpty({"shell-type", "Shell of the user, as Ansible names it."}, &DiskImage::shell_type),
      {Setting("metadata", Schema::OpenMap(Schema::Any()), "Properties of uploads; not inherited."),
       ReplaceMetadata},
      Validate(),
  };
  return settings;
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

Setting DiskImagesSetting() {
  return Setting("diskimages", Schema::List(DiskImageSettings().ToSchema()),
                 "Images that the builder makes.");
}

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
    for (const Section* level : Lineage(entry, by_name)) DiskImageSettings().Read(*level, image);
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
