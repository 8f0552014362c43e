#include "builder/build_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::builder {
namespace {

constexpr const char* kQcow2 = "qcow2";
// What disk-image-create makes without qemu-img, or with a tool that ignores the options.
const std::set<std::string>& FormatsWithoutQemuImg() {
  static const std::set<std::string> formats = {"raw", "tar", "tgz", "vhd", "docker", "squashfs", "aci"};
  return formats;
}

void Replace(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t place = text.find(what); place != std::string::npos;
       place = text.find(what, place + by.size())) {
    text.replace(place, what.size(), by);
  }
}

process::Environment EnvironmentOf(const config::Config& config, const config::DiskImage& image,
                                   const std::string& base, process::Environment environment) {
  environment["DIB_RELEASE"] = image.release;
  environment["DIB_IMAGE_NAME"] = image.name.value;
  environment["DIB_IMAGE_FILENAME"] = base;
  if (config.elements_dir) environment["ELEMENTS_PATH"] = *config.elements_dir;
  for (const auto& [key, value] : image.env_vars) environment[key] = value;
  return environment;
}

std::vector<std::string> Words(const std::vector<std::string>& elements) {
  std::vector<std::string> words;
  for (const std::string& element : elements) {
    std::ranges::copy_if(Split(element, ' '), std::back_inserter(words),
                         [](const std::string& word) { return !word.empty(); });
  }
  return words;
}

}  // namespace

std::set<std::string> TemporaryFolders(const config::Config& config,
                                       const process::Environment& environment) {
  auto folder_in = [](const process::Environment& variables) -> std::string {
    for (const char* name : {"TMPDIR", "TMP_DIR"}) {
      auto found = variables.find(name);
      if (found != variables.end() && !found->second.empty()) return found->second;
    }
    return "/tmp";
  };
  std::set<std::string> folders{folder_in(environment)};
  for (const auto& [name, image] : config.diskimages)
    folders.insert(folder_in(EnvironmentOf(config, image, "", environment)));
  return folders;
}

std::string LocalBase(const std::string& images_dir, const store::BuildKey& build) {
  return fmt::format("{}/{}", images_dir, build.str());
}

BuildPlan PlanBuild(const config::Config& config, const config::DiskImage& image,
                    const store::BuildKey& build, const BuildContext& context) {
  std::string base = LocalBase(config.images_dir.value_or("."), build);
  process::Environment environment = EnvironmentOf(config, image, base, context.environment);
  BuildPlan plan;
  std::vector<std::string> formats = image.formats;
  bool has_qcow2 = std::ranges::find(formats, kQcow2) != formats.end();
  if (has_qcow2) {
    std::erase_if(formats, [&](const std::string& format) {
      bool is_later = format != kQcow2 && !FormatsWithoutQemuImg().contains(format);
      if (is_later) plan.without_checksums.push_back(format);
      return is_later;
    });
  }

  process::Command& make = plan.commands.emplace_back();
  std::string command = image.dib_cmd;
  Replace(command, "%p", context.helpers);
  make.argv = process::SplitWords(command);
  if (make.argv.empty()) throw Error(Verdict::kInvalid, "dib-cmd names no program");
  std::ranges::copy(std::vector<std::string>{"-x", "-t", Join(formats, ","), "--checksum", "--no-tmpfs"},
                    std::back_inserter(make.argv));
  bool wants_options = Join(formats, ",").find(kQcow2) != std::string::npos;
  if (wants_options) {
    make.argv.push_back("--qemu-img-options");
    make.argv.push_back("compat=0.10");
  }
  make.argv.push_back("-o");
  make.argv.push_back(base);
  std::ranges::copy(Words(image.elements), std::back_inserter(make.argv));
  make.environment = environment;

  for (const std::string& format : plan.without_checksums) {
    process::Command& convert = plan.commands.emplace_back();
    convert.argv = {"qemu-img",
                    "convert",
                    "-f",
                    kQcow2,
                    "-O",
                    format,
                    fmt::format("{}.{}", base, kQcow2),
                    fmt::format("{}.{}", base, format)};
    convert.environment = environment;
  }
  return plan;
}

}  // namespace nodepool::builder
