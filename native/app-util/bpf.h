/*
 * BPF programs that give a priority to everything sent from a cgroup (version 2). They are
 * assembled here, so that qjau needs neither a compiler nor a library at run time.
 */
#ifndef QJAU_BPF_H
#define QJAU_BPF_H

/*
 * Load the programs and attach them to an open cgroup. They live as long as the cgroup and every
 * socket created in it, so that data left in socket buffers keeps its priority. Returns NULL on
 * success, otherwise the reason as a sentence.
 */
const char *attach_priority(int cgroup, int priority);

#endif
