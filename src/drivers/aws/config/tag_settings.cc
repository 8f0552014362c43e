#include "drivers/aws/config/tag_settings.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/text.h"

namespace nodepool::drivers::aws {
namespace {

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// As Python's str() writes the value.
std::string PythonText(const config::Value& value) {
  using Kind = config::Value::Kind;
  switch (value.kind()) {
    case Kind::kNull:
      return "None";
    case Kind::kBool:
      return value.bool_value() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.int_value());
    case Kind::kList:
    case Kind::kMap:
      return boost::json::serialize(value.ToJson());
    default:
      return value.text();
  }
}

}  // namespace

std::string CutToCharacters(std::string_view text, std::size_t limit) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (BeginsCharacter(text[i]) && ++characters > limit) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

TagSettings ReadTagSettings(const config::Section& section, std::string_view key) {
  TagSettings result;
  const config::Value* found = section.Raw(key);
  if (found == nullptr || found->kind() != config::Value::Kind::kMap) return result;
  for (const auto& [name, value] : found->map()) {
    auto warn = [&result, &name = name](const std::string& what) {
      result.warnings.push_back(fmt::format("tag {} {}", Excerpt(name), what));
    };
    if (name.starts_with("aws:") || CutToCharacters(name, kMaxTagKey) != name) {
      warn(
          fmt::format("is left out: AWS permits no key that begins with aws: or is longer than {} characters",
                      kMaxTagKey));
      continue;
    }
    std::string text = PythonText(value);
    if (value.kind() != config::Value::Kind::kString)
      warn(fmt::format("is not text; it is sent as {}", Excerpt(text)));
    result.tags[name] = std::move(text);
  }
  return result;
}

}  // namespace nodepool::drivers::aws
