#define _GNU_SOURCE
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf.h"
#include "fail.h"

#define PREFIX "qjau-"
#define LOOKS_MS 1000 /* poll interval of the watch, in case it misses an event */
#define VERSION_2 "0::" /* prefix of the cgroup2 line in /proc/PID/cgroup */

/* Format an error message in a static buffer. */
__attribute__((format(printf, 1, 2))) static const char *format_error(const char *format, ...)
{
	static char text[PATH_MAX + 256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return text;
}

/* Fill path with the cgroup of this process, "" for the root; return false if there is none. */
static bool read_own(char path[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, VERSION_2, strlen(VERSION_2)) == 0;
	}
	if (file)
		fclose(file);
	if (!found)
		return false;
	snprintf(path, PATH_MAX, "%s", line + strlen(VERSION_2));
	if (strcmp(path, "/") == 0)
		*path = '\0';
	return true;
}

/* Return the last component of a path, with its slash, if it is a cgroup made by qjau. */
static char *find_ours(char *path)
{
	char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, PREFIX, strlen(PREFIX)) == 0 ? slash : NULL;
}

bool is_in_cgroup(void)
{
	char own[PATH_MAX];

	return read_own(own) && find_ours(own);
}

/* Open a detached cgroup2 mount: the one at /sys/fs/cgroup may be missing or read-only. */
static const char *mount_tree(int *tree)
{
	int filesystem = fsopen("cgroup2", FSOPEN_CLOEXEC);

	*tree = -1;
	if (filesystem >= 0 && fsconfig(filesystem, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		*tree = fsmount(filesystem, FSMOUNT_CLOEXEC, 0);
	if (*tree < 0 && errno == ENODEV)
		return "this kernel has no cgroup2 (CONFIG_CGROUPS), which --cgroup needs";
	if (*tree < 0 && errno == EPERM)
		return "--cgroup needs CAP_SYS_ADMIN to see the cgroups; run qjau as root";
	if (*tree < 0)
		return format_error("cannot open cgroup2 (%s), which --cgroup needs", strerror(errno));
	close(filesystem);
	return NULL;
}

/* Open and lock the parent of our cgroup, so that nobody removes ours before we have entered it. */
static const char *open_parent(char path[PATH_MAX], int *parent)
{
	int tree;
	const char *why = mount_tree(&tree);
	char *ours;

	if (why)
		return why;
	if (!read_own(path))
		return "/proc/self/cgroup has no cgroup of version 2, which --cgroup needs; mount /proc";
	ours = find_ours(path);
	if (ours)
		*ours = '\0';
	*parent = openat(tree, *path ? path + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*parent < 0 || flock(*parent, LOCK_EX) != 0)
		return format_error("cannot open the cgroup %s: %s", *path ? path : "/", strerror(errno));
	close(tree);
	return NULL;
}

/* Remove leftover cgroups of killed watches; the kernel refuses while a process is in one. */
static void sweep(int parent)
{
	int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
			unlinkat(parent, entry->d_name, AT_REMOVEDIR);
	if (folder)
		closedir(folder);
}

/* Create our cgroup. Two pid namespaces may have the same pid, hence the second number. */
static const char *make(int parent, const char *path, char name[NAME_MAX])
{
	unsigned int number = 0;

	do {
		snprintf(name, NAME_MAX, PREFIX "%d-%u", (int)getpid(), number++);
		if (mkdirat(parent, name, 0755) == 0)
			return NULL;
	} while (errno == EEXIST);
	return format_error("cannot create a cgroup below %s/: %s%s", path, strerror(errno),
			    errno == EACCES || errno == EPERM || errno == EROFS ? "; run qjau as root" : "");
}

/* Descriptor 0: cgroup.events, 1: the parent, 2: a pipe that qjau closes once it has entered. */
__attribute__((noreturn)) static void watch(const char *name)
{
	struct pollfd change = { .fd = 0, .events = POLLPRI };
	char text[64];
	ssize_t length;

	while (read(2, text, 1) < 0 && errno == EINTR)
		;
	while ((length = pread(0, text, sizeof(text) - 1, 0)) > 0) {
		text[length] = '\0';
		if (strstr(text, "populated 0"))
			break;
		/*
		 * The kernel delays events by 10 ms (cgroup_file_notify()). If another qjau removes
		 * the cgroup in that time, the event never comes, but pread() fails and ends the
		 * watch.
		 */
		poll(&change, 1, LOOKS_MS);
	}
	unlinkat(1, name, AT_REMOVEDIR); /* fails if another qjau has removed it */
	_exit(0);
}

/*
 * Start a process that waits for the last process in the cgroup to end. It must not be visible to
 * the program: it is reparented, has its own session, keeps no descriptors of the program, and gets
 * no signals to the program's process group. Returns the pipe to close after entering, or -1.
 */
static int start_watch(int parent, int cgroup, const char *name)
{
	int events = openat(cgroup, "cgroup.events", O_RDONLY | O_CLOEXEC), entered[2];
	pid_t between;

	if (events < 0 || pipe2(entered, O_CLOEXEC) != 0 || (between = fork()) < 0)
		return -1;
	if (between == 0) {
		if (fork() != 0)
			_exit(0);
		setsid();
		/* Move above 2 first: if 0, 1 or 2 was closed, our descriptors may be there. */
		events = fcntl(events, F_DUPFD, 3);
		parent = fcntl(parent, F_DUPFD, 3);
		if (dup2(fcntl(entered[0], F_DUPFD, 3), 2) != 2 || dup2(parent, 1) != 1 || dup2(events, 0) != 0 ||
		    close_range(3, ~0U, 0) != 0 || chdir("/") != 0)
			_exit(1);
		prctl(PR_SET_NAME, "qjau-watch");
		watch(name);
	}
	while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	close(events);
	close(entered[0]);
	return entered[1];
}

static const char *join(int cgroup)
{
	int members = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (members < 0 || write(members, "0", 1) != 1)
		return format_error("cannot enter the cgroup that it created: %s", strerror(errno));
	close(members);
	return NULL;
}

/*
 * A socket belongs to the cgroup in which it was created, so inherited sockets get their priority
 * by SO_PRIORITY. Refuse an inherited listener: the connections that it accepts would not inherit
 * that.
 */
static const char *mark_inherited(int priority)
{
	DIR *folder = opendir("/proc/self/fd");
	const char *why = NULL;
	struct dirent *entry;

	if (!folder)
		return format_error("cannot list inherited sockets (/proc/self/fd: %s); mount /proc",
		    strerror(errno));
	while (!why && (entry = readdir(folder))) {
		int fd = atoi(entry->d_name), listens = 0, domain = AF_UNSPEC;
		socklen_t length = sizeof(int);

		if (*entry->d_name == '.' || (fcntl(fd, F_GETFD) & FD_CLOEXEC) ||
		    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
		    (domain != AF_INET && domain != AF_INET6 && domain != AF_PACKET))
			continue;
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
		if (listens)
			why = format_error("descriptor %d is an inherited listening socket, whose connections would be sent "
					   "at 0; put qjau --cgroup before the program that creates it",
					   fd);
		else if (setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) != 0)
			why = format_error("cannot mark descriptor %d, a socket: %s", fd, strerror(errno));
	}
	closedir(folder);
	return why;
}

/* Create a cgroup below an open one, and enter it. */
static const char *enter_below(int parent, const char *path, int priority, char name[NAME_MAX])
{
	const char *why = make(parent, path, name);
	int cgroup, entered;

	if (why)
		return why;
	cgroup = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	why = cgroup < 0 ? format_error("cannot open the cgroup that it created: %s", strerror(errno)) :
			   attach_priority(cgroup, priority);
	if (!why && (entered = start_watch(parent, cgroup, name)) < 0)
		why = "cannot start the process that removes the cgroup (fork)";
	if (why) {
		unlinkat(parent, name, AT_REMOVEDIR);
		return why;
	}
	why = join(cgroup);
	close(entered); /* from now on the watch removes the cgroup when it is empty */
	close(cgroup);
	return why;
}

const char *enter_cgroup(int priority, bool verbose)
{
	char path[PATH_MAX], name[NAME_MAX];
	int parent;
	const char *why = open_parent(path, &parent);

	if (why)
		return why;
	sweep(parent);
	why = mark_inherited(priority);
	if (!why)
		why = enter_below(parent, path, priority, name);
	flock(parent, LOCK_UN); /* closing it would not unlock: the watch shares the open file */
	close(parent);
	if (verbose && !why)
		warn("process %d, cgroup %s/%s: priority %d", (int)getpid(), path, name, priority);
	return why;
}
