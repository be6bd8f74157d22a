/*
 * A cgroup of version 2 for a program and what it starts, in which everything goes out at one priority.
 */
#ifndef QJAU_CGROUP_H
#define QJAU_CGROUP_H

#include <stdbool.h>

/*
 * Move this process into a new cgroup "qjau-PID-N" below its own, and mark the sockets that it has inherited. If its own
 * is one of qjau's, the new one stands beside it, so that the innermost qjau wins. The cgroup is removed when the last
 * process in it has ended, by a process that waits for that; by the next qjau if that one was killed. Returns NULL, or
 * why it cannot be, in a sentence; the process then is where it was.
 */
const char *enter_cgroup(int priority, bool verbose);

/* True if this process is in such a cgroup, whose priority no option of a socket moves. */
bool is_in_cgroup(void);

#endif
