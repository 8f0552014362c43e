#include "drivers/provider_section.h"
#include "drivers/schemas/tables.h"

namespace nodepool::drivers {

using config::Schema;
using config::Setting;

namespace {

// Any other key is accepted: the list may be incomplete.
Schema OpenEnded(std::vector<Setting> settings) {
  return Schema::MapWithOthers(std::move(settings), Schema::Any());
}

std::vector<Setting> LaunchSettings() {
  return {
      Setting("boot-timeout", Schema::Int(), "Time for the host key scan of a new node.").Unit("seconds"),
      Setting("launch-timeout", Schema::Int(), "Time for one attempt to create a node.").Unit("seconds"),
      Setting("launch-retries", Schema::Int(), "Attempts in total.").Default(3),
  };
}

Schema LabelOnInstance(std::vector<Setting> more) {
  Schema label = OpenEnded({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("cloud-image", Schema::String(), "One of the provider's cloud-images."),
      Setting("diskimage", Schema::String(), "Boot an image of the builder."),
      Setting("instance-type", Schema::String(), "Kind of machine."),
      Setting("volume-type", Schema::String(), "Kind of the root volume."),
      Setting("volume-size", Schema::Int(), "Size of the root volume.").Unit("GiB"),
      Setting("flavor-name", Schema::Any(), "").Removed("this driver calls it instance-type"),
      Setting("min-ram", Schema::Any(), "").Removed("this driver needs an instance-type"),
  });
  return label.With(std::move(more));
}

}  // namespace

Schema GceSchema() {
  Schema image = OpenEnded({
      Setting("name", Schema::String(), "What labels call the image.").Required(),
      Setting("image-id", Schema::String(), "Its id in the cloud."),
      Setting("image-project", Schema::String(), "Project that publishes the image."),
      Setting("image-family", Schema::String(), "Family of which the newest image is used."),
      Setting("username", Schema::String(), "User for logging in."),
      Setting("key", Schema::String(), "Public key to put on the node."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
  });
  Schema pool = OpenEnded({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(LabelOnInstance({})), "The labels offered here.").Required(),
      Setting("use-internal-ip", Schema::Bool(), "Reach nodes by their private address.").Default(false),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys.").DaemonOnly(),
  });
  return OpenEnded(
             {
                 Setting("project", Schema::String(), "Project in the cloud.").Required(),
                 Setting("region", Schema::String(), "Region of the cloud.").Required(),
                 Setting("zone", Schema::String(), "Zone of the region.").Required(),
                 Setting("cloud-images", Schema::List(image.With(ConnectionTypeSettings())),
                         "Images that exist in the cloud."),
                 Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.").Required(),
                 Setting("rate", Schema::Number(), "Calls per second.").DaemonOnly(),
             })
      .With(LaunchSettings());
}

}  // namespace nodepool::drivers
