/*
 * A cgroup (version 2) for a program and its descendants, in which all packets have one priority.
 */
#ifndef QJAU_CGROUP_H
#define QJAU_CGROUP_H

#include <stdbool.h>

/*
 * Move this process into a new cgroup "qjau-PID-N" below its own, and set the priority of inherited
 * sockets. If its own cgroup was made by qjau, the new one becomes a sibling, so that the innermost
 * qjau wins. A background process removes the cgroup after its last process has ended; if that was
 * killed, the next qjau does. Returns NULL on success, otherwise the reason as a sentence, with the
 * process still in its old cgroup.
 */
const char *enter_cgroup(int priority, bool verbose);

/* True if this process is in such a cgroup, whose priority no socket option can change. */
bool is_in_cgroup(void);

#endif
