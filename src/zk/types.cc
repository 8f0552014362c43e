#include "zk/types.h"

namespace nodepool::zk {

std::string_view ToString(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kSystemError:
      return "system error";
    case Code::kRuntimeInconsistency:
      return "runtime inconsistency";
    case Code::kDataInconsistency:
      return "data inconsistency";
    case Code::kConnectionLoss:
      return "connection loss";
    case Code::kMarshallingError:
      return "marshalling error";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kOperationTimeout:
      return "operation timeout";
    case Code::kBadArguments:
      return "bad arguments";
    case Code::kApiError:
      return "API error";
    case Code::kNoNode:
      return "no node";
    case Code::kNoAuth:
      return "not authorized";
    case Code::kBadVersion:
      return "bad version";
    case Code::kNoChildrenForEphemerals:
      return "no children for ephemerals";
    case Code::kNodeExists:
      return "node exists";
    case Code::kNotEmpty:
      return "not empty";
    case Code::kSessionExpired:
      return "session expired";
    case Code::kInvalidCallback:
      return "invalid callback";
    case Code::kInvalidAcl:
      return "invalid ACL";
    case Code::kAuthFailed:
      return "authentication failed";
    case Code::kSessionMoved:
      return "session moved";
    case Code::kNotReadOnly:
      return "not read only";
    case Code::kNoWatcher:
      return "no watcher";
    case Code::kQuotaExceeded:
      return "quota exceeded";
  }
  return "unknown code";
}

std::string_view ToString(SessionState state) {
  switch (state) {
    case SessionState::kConnecting:
      return "connecting";
    case SessionState::kConnected:
      return "connected";
    case SessionState::kSuspended:
      return "suspended";
    case SessionState::kLost:
      return "lost";
    case SessionState::kClosed:
      return "closed";
  }
  return "unknown state";
}

}  // namespace nodepool::zk
