#include "config/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/main_schema.h"
#include "config/provider_settings.h"
#include "config/repeated_names.h"

namespace nodepool::config {
namespace {

constexpr std::string_view kSchemaFailed = "Schema validation failed: ";

// The entries of the list under a key; none if it is not a list.
const Value::List& Entries(const Value& map, std::string_view key) {
  static const Value::List none;
  const Value* found = map.Find(key);
  return found != nullptr && found->kind() == Value::Kind::kList ? found->list() : none;
}

// The scalar under the key, as text; nothing if there is none.
std::optional<std::string> Text(const Value& map, std::string_view key) {
  const Value* found = map.Find(key);
  if (found == nullptr || found->is_null() || found->kind() == Value::Kind::kList ||
      found->kind() == Value::Kind::kMap) {
    return std::nullopt;
  }
  return found->text();
}

class Validator {
 public:
  explicit Validator(const LoadOptions& options) : options_(options) {}

  ValidationReport Run(const Document& document) {
    CheckContent(document.root);
    for (const RepeatedKey& repeated : document.repeated) {
      if (repeated.is_content_lost) AddError(repeated.ToString());
    }
    return std::move(report_);
  }

 private:
  void CheckContent(const Value& document) {
    for (const Problem& problem : Validate(document, MainSchema())) {
      AddError(fmt::format("{}{}", kSchemaFailed, problem.ToString()));
    }
    if (report_.exit_status() != 0) return;
    for (const Value& provider : Entries(document, "providers")) CheckProvider(provider);
    if (report_.exit_status() != 0) return;
    CheckReferences(document);
    CheckDiskImages(document);
    for (const RepeatedName& repeated : RepeatedNames(document)) AddError(repeated.ToString());
    HintAtFloats(document);
  }

  void AddError(std::string message) {
    report_.findings.push_back({Finding::Level::kError, std::move(message)});
  }
  void Add(Finding::Level level, const Value& place, std::string_view message) {
    std::string text =
        fmt::format("line {}, column {}: {}", place.position().line, place.position().column, message);
    report_.findings.push_back({level, std::move(text)});
  }

  void HintAtFloats(const Value& document) {
    const Value* timeout = document.Find("zookeeper-timeout");
    if (timeout == nullptr || timeout->kind() != Value::Kind::kInt) return;
    Add(Finding::Level::kHint, *timeout,
        fmt::format("zookeeper-timeout: the Python implementation takes only a float: write {}.0 if the file "
                    "is to be good for both",
                    timeout->text()));
  }

  void CheckProvider(const Value& provider) {
    std::string name = Text(provider, "name").value_or("");
    std::string driver = DriverOf(name, provider);
    const Schema* schema = options_.drivers ? options_.drivers(driver) : nullptr;
    if (schema == nullptr) {
      AddError(fmt::format("{}{}: unknown driver (provider {}, line {}){}", kSchemaFailed, Excerpt(driver),
                           Excerpt(name), provider.position().line,
                           DriverHint(driver, options_.driver_names)));
      return;
    }
    for (Problem& problem : Validate(provider, WithCommonSettings(*schema))) {
      problem.detail =
          fmt::format("provider {}{}{}", Excerpt(name), problem.detail.empty() ? "" : ": ", problem.detail);
      AddError(fmt::format("{}{}", kSchemaFailed, problem.ToString()));
    }
    const Value* concurrency = provider.Find("max-concurrency");
    if (concurrency != nullptr && concurrency->kind() == Value::Kind::kInt && concurrency->int_value() == 0) {
      Add(Finding::Level::kWarning, *concurrency,
          fmt::format("provider {}: max-concurrency 0 means no bound here; other implementations "
                      "take no request with it. Leave it out",
                      name));
    }
  }

  static std::set<std::string> Names(const Value::List& entries) {
    std::set<std::string> names;
    for (const Value& entry : entries) {
      if (std::optional<std::string> name = Text(entry, "name")) names.insert(*name);
    }
    return names;
  }

  void CheckReferences(const Value& document) {
    std::set<std::string> images = Names(Entries(document, "diskimages"));
    std::set<std::string> labels = Names(Entries(document, "labels"));
    for (const Value& provider : Entries(document, "providers")) {
      std::string name = Text(provider, "name").value_or("");
      if (DriverOf(name, provider) != "openstack") continue;
      for (const Value& image : Entries(provider, "diskimages")) {
        std::string image_name = Text(image, "name").value_or("");
        if (images.contains(image_name)) continue;
        AddError(fmt::format("diskimage {} in provider {} is not defined in the main diskimages list{}",
                             image_name, name, Where(image)));
      }
      for (const Value& pool : Entries(provider, "pools")) {
        for (const Value& label : Entries(pool, "labels")) CheckPoolLabel(name, label, images, labels);
      }
    }
  }

  void CheckPoolLabel(const std::string& provider, const Value& label, const std::set<std::string>& images,
                      const std::set<std::string>& labels) {
    std::string name = Text(label, "name").value_or("");
    if (!labels.contains(name)) {
      AddError(
          fmt::format("label {} in provider {} not in top-level labels{}", name, provider, Where(label)));
    }
    std::optional<std::string> image = Text(label, "diskimage");
    if (image && !images.contains(*image)) {
      AddError(
          fmt::format("label {} in provider {} uses diskimage {} which is not defined in the main diskimages "
                      "list{}",
                      name, provider, *image, Where(label)));
    }
  }

  void CheckDiskImages(const Value& document) {
    const Value::List& entries = Entries(document, "diskimages");
    std::set<std::string> all = Names(entries);
    std::set<std::string> seen;
    for (const Value& entry : entries) {
      std::string name = Text(entry, "name").value_or("");
      if (!seen.insert(name).second)
        AddError(fmt::format("diskimage {} already defined{}", name, Where(entry)));
    }
    for (const Value& entry : entries) {
      std::optional<std::string> parent = Text(entry, "parent");
      if (!parent || parent->empty() || all.contains(*parent)) continue;
      AddError(fmt::format("diskimage {} has non-existant parent: {}{}", Text(entry, "name").value_or(""),
                           *parent, Where(entry)));
    }
  }

  static std::string Where(const Value& value) { return fmt::format(" (line {})", value.position().line); }

  const LoadOptions& options_;
  ValidationReport report_;
};

}  // namespace

std::size_t ValidationReport::Count(Finding::Level level) const {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

ValidationReport ValidateDocument(const Document& document, const LoadOptions& options) {
  return Validator(options).Run(document);
}

ValidationReport ValidateDocument(const Expected<Document>& document, const LoadOptions& options) {
  if (document) return ValidateDocument(*document, options);
  return {{{Finding::Level::kError, fmt::format("YAML parsing failed: {}", document.error().message())}}};
}

ValidationReport ValidateFile(const std::string& path, const LoadOptions& options) {
  return ValidateDocument(ReadDocument(path, options.environment), options);
}

}  // namespace nodepool::config
