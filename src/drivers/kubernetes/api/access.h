#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/blocking_pool.h"
#include "async/file_watch.h"
#include "base/log/logging.h"
#include "driver/cloud/api/credential_source.h"
#include "driver/cloud/api/signer.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

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

}  // namespace nodepool::drivers::kubernetes
