#include "drivers/kubernetes/api/access.h"

#include <algorithm>

#include "base/encoding.h"
#include "base/small_file.h"
#include "drivers/kubernetes/kubeconfig/entry.h"
#include "drivers/kubernetes/kubeconfig/exec_plugin.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;

namespace {

// Credentials are fetched again five minutes before they expire, those that last for less after half of their
// time: a token file is read each minute.
constexpr Duration kMargin = std::chrono::minutes(5);
constexpr Duration kTokenFileLasts = std::chrono::minutes(2);
// The status that makes the source wait before it asks again.
constexpr int kUnauthorized = 401;

FilesRead ReadAll(const Places& places, const std::optional<std::string>& context) {
  FilesRead read{ReadConnection(places, context), ""};
  const std::string& path = read.connection.user.token_file;
  if (!path.empty()) read.token = ReadTextFile(path);
  return read;
}

void SetBearer(Access& access, std::string token) {
  access.headers.emplace_back("Authorization", "Bearer " + token);
  access.token = std::move(token);
}

}  // namespace

Task<FilesRead> ReadFilesOf(BlockingPool& pool, Places places, std::optional<std::string> context) {
  auto work = [places = std::move(places), context = std::move(context)] { return ReadAll(places, context); };
  FilesRead read = co_await OnBlockingPool(pool, std::move(work));
  co_return read;
}

AccessSource::AccessSource(Loop& loop, process::Runner& runner, process::Environment environment,
                           ReadFiles read_files)
    : loop_(loop),
      runner_(runner),
      environment_(std::move(environment)),
      read_files_(std::move(read_files)),
      source_(
          loop, [this] { return Read(); }, kMargin) {}

Task<std::shared_ptr<const Access>> AccessSource::Get() {
  std::shared_ptr<const Access> access = co_await source_.Get();
  WatchFiles(access);
  co_return access;
}

Task<AccessSource::Renew> AccessSource::Sign(net::HttpCall& call) {
  std::shared_ptr<const Access> access = co_await Get();
  call.url = access->server + call.url;
  call.tls = access->tls;
  call.proxy = access->proxy;
  call.headers.insert(call.headers.end(), access->headers.begin(), access->headers.end());
  co_return [this, access](const net::HttpReply&) { source_.Discard(access); };
}

Task<Access> AccessSource::Read() {
  Task<FilesRead> reading = read_files_();
  FilesRead read = co_await std::move(reading);
  const Connection& connection = read.connection;
  const User& user = connection.user;
  Access access;
  access.server = connection.server;
  access.proxy = connection.proxy;
  access.ca_pem = connection.ca_pem;
  access.files = connection.files;
  access.headers = user.impersonation;
  access.expires = user.certificate_ends;
  net::TlsSettings tls;
  tls.verifies_peer = connection.verifies_tls;
  tls.ca_pem = connection.verifies_tls ? connection.ca_pem : "";
  tls.server_name = connection.server_name;
  tls.certificate_pem = user.certificate_pem;
  tls.key_pem = user.key_pem;
  if (!user.token.empty()) {
    SetBearer(access, user.token);
  } else if (!read.token.empty()) {
    SetBearer(access, read.token);
    access.expires = std::min(access.expires, loop_.Now() + kTokenFileLasts);
  } else if (user.exec) {
    co_await UsePlugin(connection, tls, access);
  } else if (!user.username.empty()) {
    access.headers.emplace_back("Authorization", "Basic " + Base64(user.username + ":" + user.password));
  }
  access.tls = std::make_shared<const net::TlsSettings>(std::move(tls));
  co_return access;
}

Task<> AccessSource::UsePlugin(const Connection& connection, net::TlsSettings& tls, Access& access) {
  Task<PluginCredential> run = RunPlugin(runner_, *connection.user.exec, connection, environment_);
  Outcome<PluginCredential> credential = co_await Attempt(std::move(run));
  if (!credential) throw api::ApiError(Verdict::kRetry, credential.error().message(), kUnauthorized);
  if (!credential->token.empty()) {
    SetBearer(access, std::move(credential->token));
  } else {
    tls.certificate_pem = std::move(credential->certificate_pem);
    tls.key_pem = std::move(credential->key_pem);
  }
  if (credential->expires) access.expires = std::min(access.expires, *credential->expires);
}

// A renamed file may be missing for a moment: what cannot be read then is read again by the next call.
void AccessSource::WatchFiles(const std::shared_ptr<const Access>& access) {
  if (watched_ == access) return;
  watched_ = access;
  watch_.reset();
  if (access->files.empty()) return;
  watch_ = std::make_unique<FileWatch>(loop_, access->files, [this] { source_.Discard(watched_); });
}

}  // namespace nodepool::drivers::kubernetes
