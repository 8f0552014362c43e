#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "cli/abbreviations.h"
#include "cli/aliens.h"
#include "cli/change_node.h"
#include "cli/durations.h"
#include "cli/erase.h"
#include "cli/image_changes.h"
#include "cli/image_data.h"
#include "cli/image_requests.h"
#include "cli/info.h"
#include "cli/jobs.h"
#include "cli/listing_arguments.h"
#include "cli/migrate.h"
#include "cli/record_listings.h"
#include "cli/release.h"
#include "cli/request.h"
#include "cli/request_list.h"
#include "cli/version.h"

namespace nodepool::cli {
namespace {

// The tool's parser. Subcommands write what they were given into `invocation`; the
// values that options are bound to live here.
class Parser {
 public:
  Parser();
  CLI::App& app() { return app_; }
  Invocation& invocation() { return invocation_; }

 private:
  CLI::App* Add(const std::string& name, const std::string& help) { return app_.add_subcommand(name, help); }
  CLI::App* AddListing(const std::string& name, const std::string& help,
                       std::function<ListingCommand()> make);
  void AddListings();
  void AddImageChanges();
  void AddImageData();
  void AddNodeChanges();
  void AddErase();
  void AddJobs();
  void AddRequest();
  void AddRelease();
  void AddMigrate();

  std::optional<ProviderName> optional_provider() const {
    return target_.empty() ? std::nullopt : std::optional(ProviderName(target_));
  }
  static constexpr const char* kAllProviders = "all";
  static std::optional<ProviderName> ProviderOrAll(const std::string& name) {
    return name == kAllProviders ? std::nullopt : std::optional(ProviderName(name));
  }

  CLI::App app_{"Looks at nodes and requests, changes them, and asks for nodes.", "nodepool"};
  Invocation invocation_;
  ListingArguments listing_;
  bool is_json_ = false;  // of `request`
  bool is_detailed_ = false;
  bool is_now_ = false;
  bool is_forced_ = false;
  std::string target_;
  std::vector<std::string> targets_;
  std::string hold_for_;
  std::optional<std::string> reason_;
  std::optional<std::int64_t> hold_on_failure_;
  std::string provider_;
  RequestOptions request_;
  MigrateOptions migrate_;
  std::string image_, build_, upload_;
  bool is_waiting_ = false;
};

// Of what is written to a record. Empty: it can be.
std::string RefuseBadText(const std::string& text) {
  constexpr std::size_t kLongest = 1000;
  if (!IsValidUtf8(text)) return "it is not UTF-8";
  return text.size() > kLongest ? "it is longer than 1000 bytes" : "";
}

Parser::Parser() {
  app_.set_version_flag("--version", fmt::format("Nodepool version: {}", Version()));
  app_.add_option("-c", invocation_.config_path, "configuration file")
      ->type_name("FILE")
      ->capture_default_str();
  app_.add_option("-s", invocation_.secure_path, "secure file, merged into the configuration")
      ->type_name("FILE");
  app_.add_option("-l", invocation_.logging_path, "logging configuration file")->type_name("FILE");
  app_.add_option("--drivers-dir", invocation_.drivers_dirs,
                  "directory of drivers that are no part of the program; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app_.add_flag("--debug", invocation_.is_debug, "log at DEBUG to standard error");
  app_.require_subcommand(0, 1);
  app_.failure_message([](const CLI::App* app, const CLI::Error& error) {
    return fmt::format("{}{}: error: {}\n", app->help(), app->get_name(), error.what());
  });
  AddListings();
  AddImageChanges();
  AddImageData();
  AddNodeChanges();
  AddErase();
  AddJobs();
  AddRequest();
  AddRelease();
  AddMigrate();
  Add("standalone", "run everything in one process, see nodepool standalone --help")->callback([] {
    throw CLI::ValidationError("standalone", "write it first: nodepool standalone -c FILE");
  });
  Add("config-validate", "check the configuration file; needs no ZooKeeper")->callback([this] {
    invocation_.is_validation = true;
  });
}

// A command that lists what `make` says once the arguments are known.
CLI::App* Parser::AddListing(const std::string& name, const std::string& help,
                             std::function<ListingCommand()> make) {
  CLI::App* command = Add(name, help);
  listing_.AddTo(*command, make());  // its columns are the same with all arguments
  command->callback([this, command, make = std::move(make)] {
    ListingCommand listing = make();
    View view = listing_.ViewOf(*command, listing);
    invocation_.command = [listing, view](Context& context) { return ShowListing(context, listing, view); };
  });
  return command;
}

void Parser::AddListings() {
  AddListing("list", "list nodes", [this] {
    return NodeListing(is_detailed_ ? listing::NodeColumns::kDetail : listing::NodeColumns::kBrief);
  })->add_flag("--detail", is_detailed_, "show all columns");
  AddListing("request-list", "list node requests", [this] {
    return RequestListing(is_detailed_ ? RequestColumns::kDetail : RequestColumns::kBrief, listing_.output());
  })->add_flag("--detail", is_detailed_, "also say why requests wait; asks the launchers");
  AddListing("provider-list", "list providers and how their launchers say they are", &ProviderListing);
  AddListing("dib-image-list", "list builds of images", &BuildListing);
  AddListing("image-list", "list uploads of images", &UploadListing);
  AddListing("image-status", "show what is paused or asked for", &ImageStatusListing);

  CLI::App* info = AddListing("info", "show what ZooKeeper knows about a provider",
                              [this] { return InfoListing(ProviderName(target_)); });
  info->add_option("provider", target_, "name of the provider")->required()->type_name("");
  CLI::App* aliens = AddListing("alien-list", "list machines in clouds that no node names",
                                [this] { return AlienListing(optional_provider(), is_detailed_); });
  aliens->add_option("provider", target_, "only this provider")->type_name("");
  aliens->add_flag("--nodepool-metadata", is_detailed_, "only those that carry the mark of Nodepool");
  CLI::App* images = AddListing("alien-image-list", "list images in clouds that are no upload of ours",
                                [this] { return AlienImageListing(optional_provider()); });
  images->add_option("provider", target_, "only this provider")->type_name("");
}

void Parser::AddImageChanges() {
  struct ImageChange {
    const char* name;
    const char* help;
    Task<int> (*change)(Context&, ImageName);
  };
  for (ImageChange change : {ImageChange{"image-pause", "build an image no more", &PauseImage},
                             ImageChange{"image-unpause", "build an image again", &UnpauseImage}}) {
    CLI::App* command = Add(change.name, change.help);
    command->add_option("image", target_, "name of the image")->required()->type_name("");
    command->callback([this, change = change.change] {
      invocation_.command = [change, image = ImageName(target_)](Context& context) {
        return change(context, image);
      };
    });
  }
  CLI::App* build = Add("image-build", "ask for a build of an image");
  build->add_option("image", target_, "name of the image")->required()->type_name("");
  build->add_flag("--wait", is_waiting_, "wait until it is ready");
  build->callback([this] {
    invocation_.command = [image = ImageName(target_), wait = is_waiting_](Context& context) {
      return RequestBuild(context, image, wait);
    };
  });
  CLI::App* upload = Add("image-upload", "upload the newest build of an image anew");
  upload
      ->add_option("[provider] image", targets_,
                   "the provider, or all, which is the default; name of the image")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  upload->add_flag("--wait", is_waiting_, "wait until it is uploaded");
  upload->callback([this] {
    std::string provider = targets_.size() == 2 ? targets_.front() : kAllProviders;
    invocation_.command = [provider = ProviderOrAll(provider), image = ImageName(targets_.back()),
                           wait = is_waiting_](Context& context) {
      return RequestUpload(context, provider, image, wait);
    };
  });
  CLI::App* update = Add("image-update", "ask for a build of an image and its upload");
  update->add_option("provider", provider_, "the provider, or all")->required()->type_name("");
  update->add_option("image", target_, "name of the image")->required()->type_name("");
  update->add_flag("--wait", is_waiting_, "wait until it is uploaded");
  update->callback([this] {
    invocation_.command = [provider = ProviderOrAll(provider_), image = ImageName(target_),
                           wait = is_waiting_](Context& context) {
      return RequestUpdate(context, provider, image, wait);
    };
  });
  CLI::App* delete_build = Add("dib-image-delete", "delete a build of an image, with its uploads");
  delete_build->add_option("id", target_, "IMAGE-BUILD, as dib-image-list shows it")
      ->required()
      ->type_name("");
  delete_build->callback([this] {
    invocation_.command = [name = target_](Context& context) { return DibImageDelete(context, name); };
  });
  CLI::App* delete_upload =
      Add("image-delete",
          "delete an upload of an image; that of the newest build is made again, so to go back to the image "
          "before use dib-image-delete");
  CLI::Option* provider =
      delete_upload->add_option("--provider", provider_, "the provider")->type_name("NAME");
  CLI::Option* image = delete_upload->add_option("--image", image_, "the image")->type_name("NAME");
  CLI::Option* build_id = delete_upload->add_option("--build-id", build_, "the build")->type_name("ID");
  CLI::Option* number = delete_upload->add_option("--upload-id", upload_, "the upload")->type_name("ID");
  provider->needs(image)->needs(build_id)->needs(number);
  for (CLI::Option* option : {image, build_id, number}) option->needs(provider);
  delete_upload
      ->add_option("id", target_, "in place of these: number of the upload, or id of the image in the cloud")
      ->type_name("")
      ->excludes(provider);
  delete_upload->add_flag("--force", is_forced_,
                          "forget it at once; what the cloud has is deleted by a launcher, as a leak");
  delete_upload->callback([this, provider] {
    if (target_.empty() && provider->count() == 0) {
      throw CLI::RequiredError("id, or --provider, --image, --build-id and --upload-id");
    }
    store::UploadKey key{{ImageName(image_), BuildId(build_)}, ProviderName(provider_), UploadId(upload_)};
    invocation_.command = [key, id = target_, is_forced = is_forced_](Context& context) {
      return id.empty() ? ImageDelete(context, key, is_forced) : ImageDeleteById(context, id, is_forced);
    };
  });
}

void Parser::AddImageData() {
  struct DataCommand {
    const char* name;
    const char* help;
    Task<int> (*run)(Context&, std::string);
  };
  for (DataCommand data :
       {DataCommand{"export-image-data", "write the records of images to a file", &ExportImageData},
        DataCommand{"import-image-data", "read them back; all daemons rest", &ImportImageData}}) {
    CLI::App* command = Add(data.name, data.help);
    command->add_option("path", target_, "the file")->required()->type_name("FILE");
    command->callback([this, run = data.run] {
      invocation_.command = [run, path = target_](Context& context) { return run(context, path); };
    });
  }
}

void Parser::AddNodeChanges() {
  struct Change {
    const char* name;
    const char* help;
    NodeState state;
  };
  for (Change change : {Change{"delete", "delete a node", NodeState::kDeleting},
                        Change{"hold", "keep a node for inspection", NodeState::kHold}}) {
    CLI::App* command = Add(change.name, change.help);
    command->add_option("id", target_, "id of the node")->required()->type_name("");
    if (change.state == NodeState::kDeleting) {
      command->add_flag("--now", is_now_,
                        "delete machine and record from here, and wait until they are gone; "
                        "a launcher registers the slot of a static host again");
    }
    if (change.state == NodeState::kHold) {
      command->add_option("--reason", reason_, "comment in the node's record")
          ->check(&RefuseBadText)
          ->type_name("TEXT");
    }
    command->callback([this, state = change.state] {
      invocation_.command = [id = target_, state, is_now = is_now_, reason = reason_](Context& context) {
        return is_now ? DeleteNow(context, id) : ChangeNode(context, id, state, reason);
      };
    });
  }
}

void Parser::AddErase() {
  CLI::App* command = Add("erase", "forget uploads and nodes of a provider, whoever works with them");
  command->add_option("provider", target_, "name of the provider")->required()->type_name("");
  command->add_flag("--force", is_forced_, "do not ask");
  command->callback([this] {
    invocation_.command = [provider = ProviderName(target_), is_forced = is_forced_](Context& context) {
      return Erase(context, provider, is_forced);
    };
  });
}

void Parser::AddJobs() {
  AddListing("job-list", "list the rules about jobs whose nodes are held when they fail",
             [this] { return JobListing(listing_.output()); });
  CLI::App* create = Add("job-create", "hold nodes on which a job fails");
  create->add_option("name", target_, "name of the job, or a regular expression that begins with ^")
      ->required()
      ->check(&RefuseBadJobName)
      ->type_name("");
  create->add_option("--hold-on-failure", hold_on_failure_, "how many nodes at most; without it none")
      ->type_name("N");
  create->callback([this] {
    JobRule rule{target_, hold_on_failure_, {}};
    invocation_.command = [rule](Context& context) { return CreateJob(context, rule); };
  });
  CLI::App* remove = Add("job-delete", "delete a rule about a job");
  remove->add_option("id", target_, "id of the rule, as job-list shows it")->required()->type_name("");
  remove->callback(
      [this] { invocation_.command = [id = target_](Context& context) { return DeleteJob(context, id); }; });
}

void Parser::AddRequest() {
  CLI::App* command = Add("request", "ask for nodes, as a CI system does");
  command->add_option("label", targets_, "label of a node; one for each node")->required()->type_name("");
  command->add_flag("--wait", request_.wait, "wait for the nodes and keep them while this command runs");
  command
      ->add_option("--hold-for", hold_for_,
                   "with --wait: give the nodes back after this time, e.g. 90s or 2h")
      ->type_name("TIME");
  command->add_option("--priority", request_.priority, "0 to 999; smaller is served first")
      ->check(CLI::Range(0, 999))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--tenant", request_.tenant, "count the nodes against this tenant's limits")
      ->type_name("NAME");
  command->add_option("--requestor", request_.requestor, "who asks, for statistics")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--provider", provider_, "prefer this provider")->type_name("NAME");
  command->add_flag("--json", is_json_, "print JSON instead of text");
  command->callback([this] {
    if (!hold_for_.empty() && !request_.wait) throw CLI::RequiresError("--hold-for", "--wait");
    if (!hold_for_.empty()) {
      Expected<Duration> duration = ParseDuration(hold_for_);
      if (!duration) throw CLI::ValidationError("--hold-for", duration.error().message());
      request_.hold_for = *duration;
    }
    for (const std::string& label : targets_) request_.labels.emplace_back(label);
    request_.provider = ProviderName(provider_);
    request_.output = is_json_ ? Output::kJson : Output::kTable;
    invocation_.command = [options = request_](Context& context) { return Request(context, options); };
  });
}

void Parser::AddRelease() {
  CLI::App* command = Add("release", "give back what `nodepool request` got");
  command->add_option("name", targets_, "request or node ids")->required()->type_name("");
  command->callback([this] {
    invocation_.command = [names = targets_](Context& context) { return Release(context, names); };
  });
}

void Parser::AddMigrate() {
  static const std::map<std::string, MigrateTo> directions = {{"to-ensemble", MigrateTo::kEnsemble},
                                                              {"to-embedded", MigrateTo::kEmbedded},
                                                              {"to-chroot", MigrateTo::kChroot}};
  CLI::App* command = Add("migrate",
                          "copy the records between the embedded server and zookeeper-servers, or "
                          "move them to the chroot");
  command
      ->add_option("direction", target_,
                   "to-ensemble, to-embedded, or to-chroot: from where the Python implementation has them")
      ->required()
      ->check(CLI::IsMember({"to-ensemble", "to-embedded", "to-chroot"}))
      ->type_name("");
  command->add_flag("--dry-run", migrate_.is_dry_run, "only tell what there is to copy");
  command->add_flag("--all", migrate_.takes_everything, "also what others keep beside Nodepool's records");
  command->add_flag("--force", migrate_.is_forced, "although launchers, builders or clients are connected");
  command->add_flag("--replace", migrate_.replaces, "delete what the other side has, first");
  command->callback([this] {
    migrate_.to = directions.at(target_);
    invocation_.needs_ensemble = true;
    invocation_.command = [options = migrate_](Context& context) { return Migrate(context, options); };
  });
}

}  // namespace

void DescribeTool(const std::function<void(const CLI::App&)>& describe) {
  Parser parser;
  describe(parser.app());
}

std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err) {
  Parser parser;
  ExpandAbbreviations(parser.app(), arguments);
  std::ranges::reverse(arguments);  // the order in which CLI11 takes them
  try {
    parser.app().parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return parser.app().exit(error, out, err) == 0 ? 0 : 2;
  }
  if (parser.app().get_subcommands().empty()) {
    out << parser.app().help();
    return 1;
  }
  return std::move(parser.invocation());
}

}  // namespace nodepool::cli
