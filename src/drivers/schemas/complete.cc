#include "drivers/provider_section.h"
#include "drivers/schemas/tables.h"

namespace nodepool::drivers {

using config::Schema;
using config::Setting;

Schema MetastaticSchema() {
  Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("backing-label", Schema::String(), "Label of the nodes that are cut into slots.").Required(),
      Setting("max-parallel-jobs", Schema::Int(), "Slots of each backing node.").Default(1),
      Setting("grace-time", Schema::Int(), "An idle backing node is released after this.")
          .Default(60)
          .Unit("seconds"),
      Setting("min-retention-time", Schema::Int(), "A younger backing node is kept.")
          .Default(0)
          .Unit("seconds"),
      Setting("max-age", Schema::Int(), "An older backing node gives out no more slots.").Unit("seconds"),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys; default the pool's."),
  });
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(label), "The labels offered here.").Required(),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys.").Default(false),
  });
  return Schema::Map({
      Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.").Required(),
      Setting("boot-timeout", Schema::Int(), "Time for the host key scan of a new node.")
          .Default(120)
          .Unit("seconds"),
      Setting("launch-timeout", Schema::Int(), "Time for a launch, that of a backing node included.")
          .Default(3600)
          .Unit("seconds"),
      Setting("launch-retries", Schema::Int(), "Attempts in total.").Default(3),
      Setting("rate", Schema::Number(), "Without effect.").DaemonOnly(),
  });
}

Schema ExampleSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "What labels call the image."),
      Setting("image-id", Schema::String(), "Its id in the cloud."),
      Setting("username", Schema::String(), "User for logging in."),
      Setting("key", Schema::String(), "Public key to put on the node."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
  });
  Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("cloud-image", Schema::String(), "One of the provider's cloud-images.").Required(),
      Setting("instance-type", Schema::String(), "Kind of machine.").Required(),
  });
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(label), "The labels offered here.").Required(),
      Setting("use-internal-ip", Schema::Bool(), "Reach nodes by their private address.").Default(false),
  });
  return Schema::Map({
      Setting("region", Schema::String(), "Region of the cloud.").Required(),
      Setting("project", Schema::String(), "Project in the cloud.").Required(),
      Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.").Required(),
      Setting("cloud-images", Schema::List(image.With(ConnectionTypeSettings())),
              "Images that exist in the cloud."),
      Setting("boot-timeout", Schema::Int(), "Time for the host key scan of a new node.")
          .Default(60)
          .Unit("seconds"),
      Setting("launch-retries", Schema::Int(), "Attempts in total.").Default(3),
      Setting("rate-limit", Schema::Int(), "Calls per second.").Default(1),
  });
}

Schema TestSchema() {
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool."),
      Setting("labels", Schema::List(Schema::String()), "The labels offered here."),
  });
  return Schema::Map({Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.")});
}

}  // namespace nodepool::drivers
