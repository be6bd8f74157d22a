/*
 * Programs for the kernel that give a priority to whatever is in a cgroup of version 2. Their instructions are written
 * here: neither a compiler nor a library is needed where qjau runs.
 */
#ifndef QJAU_BPF_H
#define QJAU_BPF_H

/*
 * Load the programs and attach them to an open cgroup. They go with the cgroup, or with the last socket that was made
 * in it, if that comes later: what a program leaves in its sockets' buffers keeps its priority. Returns NULL, or why
 * it cannot be, in a sentence.
 */
const char *attach_priority(int cgroup, int priority);

#endif
