#include "config/main_schema.h"

#include "config/disk_images.h"
#include "config/runner_services.h"
#include "config/web_tokens.h"
#include "config/zookeeper_settings.h"

namespace nodepool::config {
namespace {

const Bindings<WebAppSettings>& WebApp() {
  using Tls = WebAppSettings::Tls;
  static const Bindings<Tls> tls = {
      {Setting("cert", "PEM file of the certificate and its chain; read again when it changes.")
           .NeedsRestart(),
       &Tls::cert},
      {Setting("key", "PEM file of its key, without a pass phrase; read again when it changes.")
           .NeedsRestart(),
       &Tls::key},
      {Setting("ca",
               "PEM file of the authority that signed it, for commands that ask launchers; without it the "
               "system's "
               "authorities."),
       &Tls::ca},
  };
  static const Bindings<WebAppSettings> settings = {
      {Setting("port", Schema::Int().Between(0, 65535), "TCP port of the web server; 0: any free one.")
           .NeedsRestart(),
       &WebAppSettings::port},
      {Setting("listen_address", "Address on which the web server listens.").NeedsRestart(),
       &WebAppSettings::listen_address},
      {Setting("read-needs-token",
               "Ask other hosts for a token for reading, too (webapp-tokens of the secure file)."),
       &WebAppSettings::read_needs_token},
      {Setting("tls", "Certificate of the web server, which serves HTTPS with it, else plain HTTP."),
       &WebAppSettings::tls, tls},
  };
  return settings;
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

Setting Removed(const char* key, const char* instead) {
  return Setting(key, Schema::Any(), "").Removed(instead);
}

}  // namespace

const Bindings<Config>& TopLevelSettings() {
  static const Schema workers = Schema::Int().Between(0, 1000);
  static const Bindings<Config> settings = {
      {Setting("webapp", "The launcher's web server."), &Config::webapp, WebApp()},
      {Setting("elements-dir", "Directories of image elements, as ELEMENTS_PATH expects them."),
       &Config::elements_dir},
      {Setting("images-dir",
               "Directory for built images and the builder's id, builder_id.txt; the builder needs it."),
       &Config::images_dir},
      {Setting("build-log-dir", "Directory for build logs."), &Config::build_log_dir},
      {Setting("build-log-retention",
               "Build logs kept per image beside the newest; 0 counts as 1, negative keeps all."),
       &Config::build_log_retention},
      {Setting("build-workers", workers,
               "Builds at a time in one builder, instead of --build-workers; 0: none begin."),
       &Config::build_workers},
      {Setting("upload-workers", workers,
               "Uploads at a time in one builder, instead of --upload-workers; 0: none begin."),
       &Config::upload_workers},
      {Setting("max-hold-age", "Held nodes are deleted after this time; 0 or less: never."),
       &Config::max_hold_age},
      {Setting("graceful-stop-timeout", Schema::Number().AtLeast(0),
               "How long a launcher that stops in good order may give back requests and finish deletions."),
       &Config::graceful_stop},
      {Setting("zmq-publishers",
               "ZeroMQ endpoints, as tcp://host:8888, that announce jobs; launchers listen to them."),
       &Config::zmq_publishers},
  };
  return settings;
}

const Bindings<Label>& MainLabelSettings() {
  constexpr const char* kMoved =
      "since version 3 a label's image and sources are under providers[].pools[].labels";
  static const Bindings<Label> settings = {
      {Setting("name", "What node requests ask for.").Required(), &Label::name},
      {Setting("min-ready", "Ready nodes to keep in stock; 0 or less keeps none.").Unit("nodes"),
       &Label::min_ready},
      {Setting("max-ready-age", "Ready nodes older than this are deleted; 0 keeps them.").Default(0),
       &Label::max_ready_age},
      Removed("image", kMoved),
      Removed("providers", kMoved),
      Removed("ready-script", "since version 3 nodes are prepared by jobs or image elements"),
      Removed("subnodes", "since version 3 one request may ask for several nodes"),
  };
  return settings;
}

namespace {

Schema MakeMainSchema() {
  Schema schema = TopLevelSettings().ToSchema().With({
      EmbeddedZooKeeperSetting(),
      Setting("labels", Schema::List(MainLabelSettings().ToSchema()),
              "The kinds of nodes that can be asked for."),
      DiskImagesSetting(),
      Setting("providers", Schema::List(Schema::Any()),
              "Where nodes come from; see the page of each driver."),
      Setting("tenant-resource-limits", Schema::List(TenantLimits()),
              "What the nodes of a tenant may use together."),
      RunnersSetting(),
      Removed("cron", "periodic work needs no schedule since version 3; remove it"),
      Removed("gearman-servers", "requests come through ZooKeeper since version 3; remove it"),
      Removed("script-dir", "snapshot images were removed in version 3; use diskimages[].elements"),
      Removed("targets", "nodes are handed out through ZooKeeper since version 3; remove it"),
      Removed("dburi", "all state is in ZooKeeper since version 3; see zookeeper-servers"),
  });
  return schema.With(MainConnectionSettings().ToSchema().settings());
}

Schema MakeSecureSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "Image that gets the variables.").Required(),
      Setting("env-vars", Schema::OpenMap(Schema::String()), "Merged over those of the main file.")
          .Required()
          .Secret(),
  });
  Schema schema = Schema::Map({Setting("diskimages", Schema::List(image), "Secret build variables."),
                               WebTokensSetting(), RunnerSecretsSetting()});
  return schema.With(ConnectionSettings().ToSchema().settings());
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

}  // namespace nodepool::config
