#include "drivers/openstack/storage/volumes.h"

#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

Volume ReadVolume(const json::object& entry) {
  Volume volume;
  volume.id = TextIn(entry, "id");
  volume.status = TextIn(entry, "status");
  volume.gigabytes = NumberIn(entry, "size");
  if (const json::object* metadata = ObjectIn(entry, "metadata")) {
    for (const auto& [key, value] : *metadata) volume.metadata[std::string(key)] = TextIn(*metadata, key);
  }
  return volume;
}

ApiCall VolumeCall(std::string method, std::string path) {
  ApiCall call;
  call.service = Service::kBlockStorage;
  call.method = std::move(method);
  call.path = std::move(path);
  return call;
}

}  // namespace

Task<std::vector<Volume>> ListVolumes(Session& session) {
  bool has_volumes = co_await session.Has(Service::kBlockStorage);
  if (!has_volumes) co_return std::vector<Volume>();
  std::vector<Volume> volumes =
      co_await List(session, VolumeCall("GET", "/volumes/detail"), "volumes", &ReadVolume);
  co_return volumes;
}

Task<> MarkVolume(Session& session, std::string id, std::map<std::string, std::string> metadata) {
  ApiCall call = VolumeCall("POST", "/volumes/" + id + "/metadata");
  json::object marks;
  for (const auto& [key, value] : metadata) marks[key] = value;
  call.body = json::object{{"metadata", std::move(marks)}};
  call.may_be_repeated = true;
  co_await session.Call(std::move(call));
}

Task<> DeleteVolume(Session& session, std::string id) {
  co_await session.Delete(Service::kBlockStorage, "/volumes/" + id);
}

}  // namespace nodepool::drivers::openstack
