// The imposter's images and volumes.
#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "drivers/openstack/testing/openstack_imposter.h"

namespace nodepool::testing {

namespace json = boost::json;
using net::HttpRequest;
using net::HttpResponse;
using namespace openstack;

namespace {

// `filter`: a name, or in:"name","other".
bool IsNamed(const std::string& name, const std::string& filter) {
  if (!filter.starts_with("in:")) return name == filter;
  return ("," + filter.substr(3) + ",").find(",\"" + name + "\",") != std::string::npos;
}

}  // namespace

std::string OpenstackImposter::AddImage(std::string name) {
  std::string id = NewId();
  Image image;
  image.record = {{"id", id}, {"name", std::move(name)}, {"status", "active"}, {"visibility", "public"}};
  images[id] = std::move(image);
  return id;
}

HttpResponse OpenstackImposter::ImageService(const HttpRequest& request, const std::string& path) {
  if (path == "" || path == "/") {
    json::array links;
    links.push_back(json::object{{"rel", "self"}, {"href", "http://wrong.example/v2/"}});
    json::array versions;
    versions.push_back(json::object{{"id", "v2.16"}, {"status", "CURRENT"}, {"links", std::move(links)}});
    return Json({{"versions", std::move(versions)}}, 300);
  }
  if (path == "/v2/images" && request.method == "POST") {
    Image image;
    image.record = json::parse(request.body).as_object();
    std::string id = NewId();
    image.record["id"] = id;
    image.record["status"] = "queued";
    images[id] = image;
    return Json(image.record, 201);
  }
  if (path == "/v2/images") {
    json::array items;
    for (auto& [id, image] : images) {
      const std::string& name = request.Parameter("name");
      const std::string& status = request.Parameter("status");
      if (!name.empty() && !IsNamed(Text(image.record, "name"), name)) continue;
      if (!status.empty() && Text(image.record, "status") != status) continue;
      const std::string& provider = request.Parameter("nodepool_provider_name");
      if (!provider.empty() && Text(image.record, "nodepool_provider_name") != provider) continue;
      items.push_back(image.record);
    }
    return Json({{"images", std::move(items)}});
  }
  std::string id = path.substr(std::min(path.size(), std::string("/v2/images/").size()));
  id = id.substr(0, id.find('/'));
  auto found = images.find(id);
  if (found == images.end()) return NovaFault(404, "error", "No image found with ID " + id);
  if (request.method == "DELETE") {
    images.erase(found);
    return Empty(204);
  }
  if (request.method == "PUT") {
    found->second.contents = request.body;
    found->second.record["status"] = path.ends_with("/stage") ? "uploading" : "saving";
    return Empty(204);
  }
  if (path.ends_with("/import")) {
    if (Text(found->second.record, "status") != "uploading")
      return NovaFault(409, "error", "It is not staged.");
    found->second.record["status"] = fails_imports ? "uploading" : "saving";
    found->second.record["os_glance_failed_import"] = fails_imports ? "file" : "";
    return Empty(202);
  }
  if (Text(found->second.record, "status") == "saving" && IsDue(found->second.reads_until_active)) {
    found->second.record["status"] = "active";
  }
  return Json(found->second.record);
}

HttpResponse OpenstackImposter::Volumes(const HttpRequest& request, const std::string& path) {
  if (path == "/v3" || path == "/v3/") {
    json::array versions;
    versions.push_back(
        json::object{{"id", "v3.0"}, {"status", "CURRENT"}, {"version", "3.70"}, {"min_version", "3.0"}});
    return Json({{"versions", std::move(versions)}}, 300);
  }
  const std::string base = std::string("/v3/") + kProject;
  if (path == base + "/limits") {
    return Json({{"limits", {{"absolute", Whole(volume_limits)}}}});
  }
  if (path == base + "/volumes/detail") {
    json::array items;
    for (const auto& [id, volume] : volumes) {
      items.push_back(json::object{{"id", id},
                                   {"name", ""},
                                   {"status", volume.status},
                                   {"size", volume.gigabytes},
                                   {"metadata", volume.metadata},
                                   {"attachments", json::array()}});
    }
    return Json({{"volumes", std::move(items)}});
  }
  std::string rest = path.substr(std::min(path.size(), base.size() + std::string("/volumes/").size()));
  auto found = volumes.find(rest.substr(0, rest.find('/')));
  if (found == volumes.end())
    return NovaFault(404, "itemNotFound", "Volume " + rest + " could not be found.");
  if (request.method == "POST") {
    const json::object wanted = json::parse(request.body).as_object().at("metadata").as_object();
    for (const auto& [key, value] : wanted) found->second.metadata[key] = value;
    return Json({{"metadata", found->second.metadata}});
  }
  if (found->second.status == "in-use") {
    return NovaFault(400, "badRequest", "Volume status must be available or error or error_restoring.");
  }
  volumes.erase(found);
  return Empty(202);
}

void OpenstackImposter::AddBootVolume(const json::object& wanted, Server& server) {
  const json::value* devices = wanted.if_contains("block_device_mapping_v2");
  if (devices == nullptr) return;
  std::string id = NewId();
  volumes[id] = {"in-use", std::stoi(Text(devices->as_array().front().as_object(), "volume_size")), {}};
  json::array attached;
  attached.push_back(json::object{{"id", id}});
  server.record[kAttached] = std::move(attached);
}

}  // namespace nodepool::testing
