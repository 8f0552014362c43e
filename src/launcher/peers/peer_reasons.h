#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "launcher/context.h"
#include "launcher/peers/peer_answer.h"
#include "model/component.h"

namespace nodepool::launcher {

// Sends GET `target` to the web server of the launcher on the host, and returns the body of a good answer of
// at most kMaxPeerAnswer bytes; throws on any failure.
using AskPeer = std::function<Task<std::string>(std::string hostname, WebServer server, std::string target)>;

// Why requests wait according to the other launchers.
//
// While somebody wants to know, each of them is asked for all its reasons every three seconds, whatever the
// number of requests; what they said is dropped when nobody has wanted it for 15 seconds. A launcher that is
// slow or dead delays nobody: it is asked again when its time-out of two seconds is over, and counts as
// silent meanwhile. At most 64 are asked, those of the first names.
class PeerReasons {
 public:
  // `context` outlives it. `own_path` returns the path of this launcher's own announcement.
  PeerReasons(Context& context, std::function<std::string()> own_path);

  // Until then nobody is asked.
  void AskBy(AskPeer ask) { ask_ = std::move(ask); }
  // Somebody wants to know now.
  void Want();
  // Appends what others say of the request, and that those do not answer which could say it: they offer its
  // labels, or, where it is accepted by another launcher, any of them may have it.
  void AppendTo(std::vector<sched::RequestReason>& reasons, const RequestId& id,
                const NodeRequest& request) const;
  Task<> Stop() { return tasks_.Stop(); }

 private:
  struct Peer {
    std::string hostname;
    PeerAnswer reasons;
    std::string failure;    // why the last question got no answer; empty: it got one, or was the first
    bool is_asked = false;  // a question is under way
  };

  Task<> AskWhileWanted();
  void AskAll();
  Task<> Ask(std::string path, std::string hostname, std::optional<WebServer> server);
  bool CouldServe(const Peer& peer, const NodeRequest& request) const;

  Context& context_;
  std::function<std::string()> own_path_;
  log::Logger logger_;
  AskPeer ask_;
  std::map<std::string, Peer> peers_;  // by path of the announcement
  SteadyTime wanted_until_{};
  bool is_asking_ = false;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
