#include "config/main_schema.h"

#include "config/web_tokens.h"

namespace nodepool::config {
namespace {

Schema WebAppTls() {
  return Schema::Map({
      Setting("cert", Schema::String(),
              "PEM file of the certificate and its chain; read again when it changes.")
          .NeedsRestart(),
      Setting("key", Schema::String(),
              "PEM file of its key, without a pass phrase; read again when it changes.")
          .NeedsRestart(),
      Setting("ca", Schema::String(),
              "PEM file of the authority that signed it, for commands that ask launchers; without it the "
              "system's authorities."),
  });
}

Schema WebApp() {
  return Schema::Map({
      Setting("port", Schema::Int(), "TCP port of the web server.").Default(8005).NeedsRestart(),
      Setting("listen_address", Schema::String(), "Address on which the web server listens.")
          .Default("0.0.0.0")
          .NeedsRestart(),
      Setting("read-needs-token", Schema::Bool(),
              "Ask other hosts for a token for reading, too (webapp-tokens of the secure file).")
          .Default(false),
      Setting("tls", WebAppTls(),
              "Certificate of the web server, which serves HTTPS with it, else plain HTTP."),
  });
}

Schema ZooKeeperServer() {
  return Schema::Map({
      Setting("host", Schema::String(), "Host name or address of a server of the ensemble."),
      Setting("port", Schema::Int(), "Its client port; 2281 with TLS, 2181 without."),
      Setting("chroot", Schema::String(), "Path below which all data is kept, the same for every server.")
          .NeedsRestart(),
  });
}

Schema ZooKeeperTls() {
  return Schema::Map({
      Setting("cert", Schema::String(), "PEM file of the client certificate.").NeedsRestart(),
      Setting("key", Schema::String(), "PEM file of its key.").NeedsRestart(),
      Setting("ca", Schema::String(), "PEM file of the authority that signed the servers' certificates.")
          .NeedsRestart(),
  });
}

Schema EmbeddedTlsSchema() {
  return Schema::Map({
      Setting("listen-address", Schema::String(), "Address on which it listens.")
          .Default("0.0.0.0")
          .NeedsRestart(),
      Setting("port", Schema::Int(), "TCP port.").Default(2281).NeedsRestart(),
      Setting("cert", Schema::String(), "PEM file of the server's certificate.").NeedsRestart(),
      Setting("key", Schema::String(), "PEM file of its key.").NeedsRestart(),
      Setting("ca", Schema::String(), "PEM file of the authority that signed the clients' certificates.")
          .NeedsRestart(),
  });
}

Schema EmbeddedSchema() {
  return Schema::Map({
      Setting("state-dir", Schema::String(), "Directory for its database.")
          .Default("/var/lib/nodepool")
          .NeedsRestart(),
      Setting("port", Schema::Int(), "TCP port for clients on this machine, without TLS.")
          .Default(2181)
          .NeedsRestart(),
      Setting("tls", EmbeddedTlsSchema(), "How clients on other machines reach it; not at all without."),
  });
}

Schema LabelSchema() {
  constexpr const char* kMoved =
      "since version 3 a label's image and sources are under providers[].pools[].labels";
  return Schema::Map({
      Setting("name", Schema::String(), "What node requests ask for.").Required(),
      Setting("min-ready", Schema::Int(), "Ready nodes to keep in stock; 0 or less keeps none.")
          .Default(0)
          .Unit("nodes"),
      Setting("max-ready-age", Schema::Int(), "Ready nodes older than this are deleted; 0 keeps them.")
          .Default(0)
          .Unit("seconds"),
      Setting("image", Schema::Any(), "").Removed(kMoved),
      Setting("providers", Schema::Any(), "").Removed(kMoved),
      Setting("ready-script", Schema::Any(), "")
          .Removed("since version 3 nodes are prepared by jobs or image elements"),
      Setting("subnodes", Schema::Any(), "").Removed("since version 3 one request may ask for several nodes"),
  });
}

Schema DiskImageSchema() {
  Schema texts = Schema::List(Schema::String());
  return Schema::Map({
      Setting("name", Schema::String(), "Name of the image.").Required(),
      Setting("abstract", Schema::Bool(), "Only a parent of others; never built.").Default(false),
      Setting("parent", Schema::String(), "Image whose settings this one starts from."),
      Setting("elements", texts, "Elements of diskimage-builder, added to the parent's."),
      Setting("env-vars", Schema::OpenMap(Schema::String()),
              "Environment of the build, merged over the parent's.")
          .Secret(),
      Setting("release", Schema::OneOf({Schema::String(), Schema::Int()}),
              "Passed to the build as DIB_RELEASE; quote it where it could be read as a number."),
      Setting("formats", texts, "Formats to build even if no provider needs them."),
      Setting("keep-formats", texts, "Formats whose file stays when delete-after-upload is set."),
      Setting("delete-after-upload", Schema::Bool(), "Remove local files once every provider has the image.")
          .Default(false),
      Setting("rebuild-age", Schema::Int(), "A new build starts when the newest is this old.")
          .Default(86400)
          .Unit("seconds"),
      Setting("build-timeout", Schema::Int(), "A build that runs longer is stopped.")
          .Default(28800)
          .Unit("seconds"),
      Setting("pause", Schema::Bool(), "Do not build this image.").Default(false),
      Setting("dib-cmd", Schema::String(), "Command that builds images.").Default("disk-image-create"),
      Setting("username", Schema::String(), "User for logging in to nodes made from the image.")
          .Default("zuul"),
      Setting("python-path", Schema::String(), "Python interpreter on such nodes.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
      Setting("metadata", Schema::OpenMap(Schema::Any()), "Properties of uploads; not inherited."),
  });
}

Schema TenantLimits() {
  return Schema::MapWithOthers(
      {
          Setting("tenant-name", Schema::String(), "Tenant that the limits hold for.").Required(),
          Setting("max-cores", Schema::Int(), "Virtual CPUs in use at a time."),
          Setting("max-servers", Schema::Int(), "Nodes in use at a time.").Unit("nodes"),
          Setting("max-ram", Schema::Int(), "Memory in use at a time.").Unit("MiB"),
          Setting("max-volumes", Schema::Int(), "Volumes in use at a time."),
          Setting("max-volume-gb", Schema::Int(), "Volume space in use at a time.").Unit("GB"),
      },
      Schema::Int());
}

std::vector<Setting> ZooKeeperSettings() {
  return {
      Setting("zookeeper-servers", Schema::List(ZooKeeperServer()), "The ensemble that keeps all state."),
      Setting("zookeeper-tls", ZooKeeperTls(), "Certificate files for the connection to ZooKeeper."),
  };
}

Schema MakeMainSchema() {
  Schema schema = Schema::Map({
      Setting("webapp", WebApp(), "The launcher's web server."),
      Setting("elements-dir", Schema::String(),
              "Directories of image elements, as ELEMENTS_PATH expects them."),
      Setting("images-dir", Schema::String(), "Directory for built images; the builder needs it."),
      Setting("build-log-dir", Schema::String(), "Directory for build logs.")
          .Default("/var/log/nodepool/builds"),
      Setting("build-log-retention", Schema::Int(), "Build logs kept per image; negative keeps all.")
          .Default(7),
      Setting("build-workers", Schema::Int(),
              "Builds at a time in one builder, instead of --build-workers; 0: none begin."),
      Setting("upload-workers", Schema::Int(),
              "Uploads at a time in one builder, instead of --upload-workers; 0: none begin."),
      Setting("max-hold-age", Schema::Int(), "Held nodes are deleted after this time; 0 or less: never.")
          .Unit("seconds"),
      Setting("graceful-stop-timeout", Schema::Number(),
              "How long a launcher that stops in good order may give back requests and finish deletions.")
          .Default(30.0)
          .Unit("seconds"),
      Setting("zookeeper-timeout", Schema::Number(), "Timeout of the ZooKeeper session.")
          .Default(10.0)
          .Unit("seconds")
          .NeedsRestart(),
      Setting("zookeeper-insecure", Schema::Bool(),
              "Allow a connection without TLS to hosts other than this one.")
          .Default(false)
          .NeedsRestart(),
      Setting("embedded-zookeeper", EmbeddedSchema(),
              "The server within `nodepool standalone`, used when there are no zookeeper-servers."),
      Setting("labels", Schema::List(LabelSchema()), "The kinds of nodes that can be asked for."),
      Setting("diskimages", Schema::List(DiskImageSchema()), "Images that the builder makes."),
      Setting("providers", Schema::List(Schema::Any()),
              "Where nodes come from; see the page of each driver."),
      Setting("tenant-resource-limits", Schema::List(TenantLimits()),
              "What the nodes of a tenant may use together."),
      Setting("zmq-publishers", Schema::List(Schema::String()),
              "ZeroMQ endpoints, as tcp://host:8888, that announce jobs; launchers listen to them."),
      Setting("cron", Schema::Any(), "")
          .Removed("periodic work needs no schedule since version 3; remove it"),
      Setting("gearman-servers", Schema::Any(), "")
          .Removed("requests come through ZooKeeper since version 3; remove it"),
      Setting("script-dir", Schema::Any(), "")
          .Removed("snapshot images were removed in version 3; use diskimages[].elements"),
      Setting("targets", Schema::Any(), "")
          .Removed("nodes are handed out through ZooKeeper since version 3; remove it"),
      Setting("dburi", Schema::Any(), "")
          .Removed("all state is in ZooKeeper since version 3; see zookeeper-servers"),
  });
  return schema.With(ZooKeeperSettings());
}

Schema MakeSecureSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "Image that gets the variables.").Required(),
      Setting("env-vars", Schema::OpenMap(Schema::String()), "Merged over those of the main file.")
          .Required()
          .Secret(),
  });
  Schema schema = Schema::Map(
      {Setting("diskimages", Schema::List(image), "Secret build variables."), WebTokensSetting()});
  return schema.With(ZooKeeperSettings());
}

}  // namespace

const Schema& MainSchema() {
  static const Schema schema = MakeMainSchema();
  return schema;
}

const Schema& SecureSchema() {
  static const Schema schema = MakeSecureSchema();
  return schema;
}

Schema WithCommonSettings(const Schema& driver_schema) {
  if (driver_schema.kind() != Schema::Kind::kMap) return driver_schema;
  return driver_schema.With({
      Setting("name", Schema::String(), "Unique name of the provider.").Required(),
      Setting("driver", Schema::String(), "Kind of the provider.").Default("openstack"),
      Setting("max-concurrency", Schema::Int(), "Nodes launched at the same time; 0 or less: no bound.")
          .Default(-1)
          .Unit("nodes"),
      Setting("priority", Schema::Int(), "Priority of its pools; the lowest is asked first."),
  });
}

}  // namespace nodepool::config
