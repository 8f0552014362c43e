#include "drivers/libvirt/warm/delete_templates.h"

#include <algorithm>
#include <map>

#include "drivers/libvirt/names/volume_name.h"
#include "drivers/libvirt/warm/make_template.h"
#include "drivers/libvirt/warm/template_id.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::chrono::hours kUnused{24};

using Volumes = std::vector<VolumeInfo>;

// The volumes of each template, by what their names have of its UUID.
std::map<std::string, Volumes> TemplatesIn(const Volumes& volumes) {
  std::map<std::string, Volumes> templates;
  for (const VolumeInfo& volume : volumes) {
    std::optional<MachineVolume> ours = ParseMachineVolume(volume.name);
    if (ours && IsOfTemplate(*ours)) templates[ours->provider + "/" + ours->machine].push_back(volume);
  }
  return templates;
}

bool HasUsers(const Volumes& of_template, const Volumes& all) {
  return std::ranges::any_of(all, [&](const VolumeInfo& volume) {
    return std::ranges::find(of_template, volume.backing_path, &VolumeInfo::path) != of_template.end();
  });
}

bool IsUnused(const Volumes& of_template, WallTime now) {
  auto newest = std::ranges::max_element(of_template, {}, &VolumeInfo::modified);
  return now - FromSeconds(static_cast<double>(newest->modified)) > kUnused;
}

Task<> Delete(Host& host, Volumes of_template) {
  for (const VolumeInfo& volume : of_template) co_await host.Use().DeleteVolume(volume.name);
}

}  // namespace

Task<> DeleteTemplatesOn(Host& host, std::string image) {
  Volumes volumes = co_await host.Use().Volumes();
  auto found = std::ranges::find(volumes, image, &VolumeInfo::name);
  if (found == volumes.end()) co_return;
  for (auto& [id, of_template] : TemplatesIn(volumes)) {
    bool is_on_image =
        std::ranges::find(of_template, found->path, &VolumeInfo::backing_path) != of_template.end();
    if (is_on_image && !HasUsers(of_template, volumes)) co_await Delete(host, std::move(of_template));
  }
}

Task<> DeleteUnusedTemplates(Site& site, Host& host, const Volumes& volumes,
                             const std::vector<DomainInfo>& domains) {
  WallTime now = site.environment.loop.Now();
  for (const DomainInfo& domain : domains) {
    std::int64_t since = MakingSince(domain);
    bool is_left = since != 0 && now - FromSeconds(static_cast<double>(since)) > kMostOfMaking;
    if (is_left) co_await host.Use().DestroyDomain(domain.uuid);
  }
  for (auto& [id, of_template] : TemplatesIn(volumes)) {
    bool is_ours = id.starts_with(site.config->name.str() + "/");
    if (is_ours && IsUnused(of_template, now) && !HasUsers(of_template, volumes)) {
      co_await Delete(host, std::move(of_template));
    }
  }
}

}  // namespace nodepool::drivers::libvirt
