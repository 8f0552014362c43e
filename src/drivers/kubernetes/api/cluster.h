#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/file_watch.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/log/logging.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/credentials.h"
#include "driver/cloud/api/json_calls.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

// An event of a watch (driver-kubernetes.md 4.4).
struct WatchEvent {
  enum class Kind {
    kChanged,   // the object is new or another now
    kDeleted,   // the object as it was last
    kBookmark,  // the object has no more than a version
    kError,     // the watch ends; no object
  };
  Kind kind = Kind::kError;
  Object object;
  std::string version;  // of the cluster, by the object
};

// Reads a line of a watch; none: it is no event. A long one is read in the pool.
Task<std::optional<WatchEvent>> ReadEvent(BlockingPool& pool, std::string line);

// How much a LineQueue holds, in bytes.
struct LineLimits {
  std::size_t line = 4 << 20;
  std::size_t waiting = 16 << 20;  // of all lines together
};

// The lines of an answer that goes on, from pieces as they arrive, for a task that handles them one after the
// other. What waits for it is bounded.
class LineQueue {
 public:
  explicit LineQueue(LineLimits limits = {}) : limits_(limits) {}

  // A piece. False: it exceeds a limit, and no more is wanted.
  bool Add(std::string_view text);
  // No more arrives; `failure`: since the call has failed.
  void Close(std::optional<Failure> failure);

  // The next line that is not empty, without its end; none: the answer has ended. Errors: that of Close, once
  // the lines before it are taken; Error(kFail): a limit was exceeded.
  Task<std::optional<std::string>> Next();

 private:
  bool Refuse(std::string why);

  LineLimits limits_;
  std::deque<std::string> lines_;
  std::string begun_;        // a line whose end has not arrived
  std::size_t waiting_ = 0;  // of lines_ and begun_
  bool is_closed_ = false;
  std::optional<Failure> failure_;
  Event changed_{"a line of the cluster's answer"};
};

// Where the API server is, and what proves to it who we are, for a while. Secret.
struct Access {
  WallTime expires = WallTime::max();
  std::string server;  // base URL
  std::shared_ptr<const net::TlsSettings> tls;
  std::string proxy;
  net::HttpHeaders headers;  // of every call
  // For those whom we give access: the bearer token, or empty; the server's authorities, or empty.
  std::string token;
  std::string ca_pem;
  std::vector<std::string> files;  // what it was read from
};

struct FilesRead {
  Connection connection;
  std::string token;  // in the user's token file, if there is one
};

// Reads the connection of a context on the pool, with its token file.
Task<FilesRead> ReadFilesOf(BlockingPool& pool, Places places, std::optional<std::string> context);

// Adds the API server's address and the credentials of one context to calls, whose URL is a path until then.
// All of it is read when it is first needed, again when a file that it was read from changes, before a
// credential expires, and when the server does not accept it (driver-kubernetes.md 3).
class AccessSource : public driver::cloud::api::Signer {
 public:
  // Reads what files say of the context; Error(kInvalid).
  using ReadFiles = std::function<Task<FilesRead>()>;

  // Everything outlives the source. `environment` is that of plugins.
  AccessSource(Loop& loop, process::Runner& runner, process::Environment environment, ReadFiles read_files);

  // Errors: those of ReadConnection and RunPlugin; a plugin's failure lasts for 15 s.
  Task<std::shared_ptr<const Access>> Get();
  Task<Renew> Sign(net::HttpCall& call) override;

 private:
  Task<Access> Read();
  Task<> UsePlugin(const Connection& connection, net::TlsSettings& tls, Access& access);
  void WatchFiles(const std::shared_ptr<const Access>& access);

  Loop& loop_;
  process::Runner& runner_;
  process::Environment environment_;
  ReadFiles read_files_;
  driver::cloud::api::CredentialSource<Access> source_;
  std::shared_ptr<const Access> watched_;
  std::unique_ptr<FileWatch> watch_;
};

// A list, and the version of the cluster that it shows.
struct ObjectList {
  std::vector<Object> objects;
  std::string version;
};

// The calls of one cluster's API (driver-kubernetes.md 4). Paths are those of api/object.h, with a query
// where one is wanted. Errors: ApiError for a refusal, with the Status' reason as its code; HttpError without
// an answer; what AccessSource throws.
class Cluster {
 public:
  // Everything outlives the cluster. `name` is for messages: "context ci".
  Cluster(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, AccessSource& access,
          std::string name, driver::cloud::api::CallMetrics metrics);

  Task<boost::json::object> Get(std::string path);
  // Creates an object whose body has its name. Repeated when an answer was lost: a creation that succeeded
  // before is refused then, with the reason AlreadyExists.
  Task<boost::json::object> Create(std::string collection, boost::json::object body);
  Task<boost::json::object> MergePatch(std::string path, boost::json::object body);
  // False: there is no such object. `options` is a DeleteOptions; empty: none.
  Task<bool> Delete(std::string path, boost::json::object options);

  // Reads a whole list, page by page, from the start again where the pages have become too old meanwhile;
  // `selector` is a query such as "labelSelector=...", or empty.
  Task<ObjectList> List(std::string collection, std::string selector);

  // Follows a collection until the server, or an ERROR event, ends the watch. `on_event` is called for each
  // event, in turn; what it throws ends the call. Long computations are interrupted and large events
  // read in the pool, so the loop is never held up. Errors also: Error(kFail) for more than LineQueue may
  // hold, Error(kRetry) for a line that is no event.
  using OnEvent = std::function<void(WatchEvent event)>;
  Task<> Watch(std::string path, Duration longest_silence, OnEvent on_event);

  const std::string& name() const { return name_; }

 private:
  Task<boost::json::object> Call(driver::cloud::api::ApiRequest request);
  Task<ObjectList> ListOnce(std::string collection, std::string selector);
  Task<> HandleEvents(LineQueue& lines, std::string path, Duration longest_silence, OnEvent on_event,
                      TaskGroup& tasks);
  // Fills `lines`, and closes them.
  Task<> Receive(std::string path, Duration longest_silence, LineQueue& lines);
  Task<> ReceiveAnswer(std::string path, Duration longest_silence, LineQueue& lines);
  // Sets `version` to that of the list.
  Task<driver::cloud::api::Page<Object>> ReadPage(std::string path, std::string& version);
  driver::cloud::api::ApiRequest Request(std::string method, std::string path,
                                         std::optional<boost::json::object> body) const;

  Loop& loop_;
  BlockingPool& pool_;
  net::HttpClient& http_;
  AccessSource& access_;
  std::string name_;
  log::Logger logger_{"nodepool.driver.kubernetes"};
  driver::cloud::api::ApiClient client_;
};

}  // namespace nodepool::drivers::kubernetes
