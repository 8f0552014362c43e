// Preloaded into libvirtd: the kernel's list of neighbours ends as before Linux 6.9, with a message of its own. libvirt
// reads the list in one piece, and before version 10.1 takes an end in the same piece for an error ("wrong nlmsg len").
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <sys/socket.h>

static ssize_t without_end(const void* answer, ssize_t length) {
  int rest = (int)length;
  const struct nlmsghdr* item = answer;
  if (!NLMSG_OK(item, rest) || item->nlmsg_type != RTM_NEWNEIGH) return length;
  for (; NLMSG_OK(item, rest); item = NLMSG_NEXT(item, rest)) {
    if (item->nlmsg_type == NLMSG_DONE) return (const char*)item - (const char*)answer;
  }
  return length;
}

ssize_t recvmsg(int socket, struct msghdr* message, int flags) {
  ssize_t (*next)(int, struct msghdr*, int) = dlsym(RTLD_NEXT, "recvmsg");
  ssize_t length = next(socket, message, flags);
  const struct sockaddr* from = message->msg_name;
  const struct iovec* piece = message->msg_iov;
  int is_netlink = length > 0 && from != NULL && from->sa_family == AF_NETLINK;
  int is_whole = is_netlink && piece->iov_base != NULL && (size_t)length <= piece->iov_len;
  return is_whole ? without_end(piece->iov_base, length) : length;
}
