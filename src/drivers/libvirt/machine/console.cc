#include "drivers/libvirt/machine/console.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "drivers/libvirt/machine/delete_machine.h"
#include "drivers/libvirt/names/volume_name.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::uint64_t kMost = 256 * 1024;
constexpr std::size_t kMostInMessage = 300;

}  // namespace

std::string ConsoleText(const std::string& bytes) {
  static const re2::RE2 escapes(R"(\x1b(\[[0-9;?=]*[A-Za-z]|[()][A-Za-z0-9]|[=>78cM]))", re2::RE2::Latin1);
  std::string text = bytes;
  re2::RE2::GlobalReplace(&text, escapes, "");
  std::erase(text, '\r');
  return Visible(text, "\n\t");
}

Task<std::string> ReadConsole(Site& site, MachineId id) {
  co_await site.Connected();
  Host& host = site.At(id.host);
  std::vector<std::string> names = co_await FindVolumes(site, id);
  for (const std::string& name : names) {
    std::optional<MachineVolume> volume = ParseMachineVolume(name);
    if (!volume || volume->part != kConsolePart) continue;
    std::string bytes = co_await host.Use().ReadVolumeEnd(name, kMost);
    host.NoteFailedBoot(bytes);
    if (!bytes.empty()) co_return ConsoleText(bytes);
    co_return fmt::format(
        "the console is empty: no serial console in the image, or it never started ({} KVM)",
        host.uses_kvm() ? "with" : "without");
  }
  throw Error(Verdict::kNotFound, fmt::format("machine {} has no console", id.ToText()));
}

std::string LastLines(const std::string& text) {
  std::string end = text.substr(text.size() - std::min(text.size(), kMostInMessage));
  return Excerpt(end, kMostInMessage);
}

}  // namespace nodepool::drivers::libvirt
