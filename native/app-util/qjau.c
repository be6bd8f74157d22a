/*
 * qjau: run a program with its sockets at a QJump level. It checks what can be checked beforehand,
 * then execs the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cgroup.h"
#include "fail.h"
#include "program.h"
#include "settings.h"

static const char usage[] = "usage: qjau -p PRIORITY [-w BYTES] [--cgroup | --library] [-v] [--] COMMAND [ARGUMENT]...\n";

static const char help[] =
	"Run COMMAND, and what it starts, with all its IP packets at a priority, and if asked with a window. They are not\n"
	"changed otherwise; their output is the same.\n"
	"\n"
	"  -p PRIORITY  0 to 7, as in 802.1Q: 7 is the most urgent and needs CAP_NET_ADMIN\n"
	"  -w BYTES     send and receive buffer as given to setsockopt; the kernel doubles it\n"
	"  --cgroup     exit with a message if the kernel cannot mark the packets\n"
	"  --library    let the library mark alone, as without root's rights\n"
	"  -v           one line per socket on stderr, and one for the cgroup\n"
	"  -h, --help   this text\n"
	"\n"
	"As root the kernel marks every packet, by a cgroup: no option of the program's moves that. Otherwise a preloaded\n"
	"library marks IPv4, IPv6 and packet sockets: IP_TOS does not move that, and a program's own SO_PRIORITY wins. See\n"
	"qjau(1) for what is not seen then.\n"
	"\n"
	"Exit code: COMMAND's, or 2 wrong command line, 125 qjau cannot do it here (right, limit, library or kernel),\n"
	"126 COMMAND cannot be run, or cannot be marked (as a user: static, setuid, capabilities, other machine, Go),\n"
	"127 COMMAND not found. Nothing has been started then.\n";

void fail(int status, const char *format, ...)
{
	va_list arguments;

	fputs("qjau: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	if (status == EXIT_USAGE)
		fputs(usage, stderr);
	exit(status);
}

void warn(const char *format, ...)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT &&
	    vasprintf(&text, format, arguments) >= 0)
		dprintf(STDERR_FILENO, "qjau: %s\n", text);
	va_end(arguments);
}

/*
 * Try the options on an unconnected local socket: the kernel's check is the same for all families,
 * and only the kernel knows which right its version needs and which limits apply.
 */
static void check_options(int priority, int window)
{
	static const struct {
		int option;
		const char *limit;
	} buffers[] = { { SO_SNDBUF, "net.core.wmem_max" }, { SO_RCVBUF, "net.core.rmem_max" } };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) != 0)
		fail(EXIT_CANNOT, "priority %d needs CAP_NET_ADMIN; run qjau as root, or ask for 6 or less",
		    priority);
	for (size_t i = 0; window != 0 && i < sizeof(buffers) / sizeof(buffers[0]); i++) {
		int got = INT_MAX;
		socklen_t length = sizeof(got);

		setsockopt(fd, SOL_SOCKET, buffers[i].option, &window, sizeof(window));
		getsockopt(fd, SOL_SOCKET, buffers[i].option, &got, &length);
		if (got / 2 < window)
			fail(EXIT_CANNOT, "window %d is more than this machine's %s, %d; ask for less, or raise that by sysctl",
			     window, buffers[i].limit, got / 2);
	}
	close(fd);
}

/* Find the library beside qjau (in a build directory) or in ../lib/qjump-mn (installed). */
static void find_library(char library[PATH_MAX])
{
	static const char *const places[] = { QJAU_LIBRARY, "../lib/qjump-mn/" QJAU_LIBRARY };
	char self[PATH_MAX], candidate[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (length < 0)
		fail(EXIT_CANNOT, "cannot find qjau's own path (/proc/self/exe: %s); mount /proc",
		    strerror(errno));
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s", self, places[i]);
		if (!realpath(candidate, library))
			continue;
		if (strpbrk(library, ": \t\n"))
			fail(EXIT_CANNOT, "LD_PRELOAD does not allow blanks or colons in paths: install %s in another folder", library);
		if (!dlopen(library, RTLD_NOW | RTLD_LOCAL))
			fail(EXIT_CANNOT, "its library does not load (%s); build it again on this machine", dlerror());
		return;
	}
	fail(EXIT_CANNOT, "%s is neither in %s nor in %s/../lib/qjump-mn; run make install", QJAU_LIBRARY,
	    self, self);
}

static void set_variable(const char *name, const char *value)
{
	if ((value ? setenv(name, value, 1) : unsetenv(name)) != 0)
		fail(EXIT_CANNOT, "cannot set %s: %s", name, strerror(errno));
}

/* Put the library first, so that it wraps other preloaded ones; not twice if qjau runs qjau. */
static void prepend_preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	size_t length = strlen(library);
	char *both;

	if (!others || *others == '\0') {
		set_variable("LD_PRELOAD", library);
		return;
	}
	if (strncmp(others, library, length) == 0 && strchr(": ", others[length]))
		return;
	if (asprintf(&both, "%s:%s", library, others) < 0)
		fail(EXIT_CANNOT, "out of memory");
	set_variable("LD_PRELOAD", both);
	free(both);
}

/* Exec the program. Like execvp(), run a file without "#!" by the shell, but only if it is text. */
__attribute__((noreturn)) static void run(const char *path, char **command, int count)
{
	int error;

	execv(path, command);
	error = errno;
	if (error == ENOEXEC && is_text(path)) {
		char **shell = calloc((size_t)count + 2, sizeof(*shell));

		if (shell) {
			shell[0] = (char *)"sh";
			shell[1] = (char *)path;
			/* including the final NULL */
			memcpy(shell + 2, command + 1, (size_t)count * sizeof(*shell));
			execv("/bin/sh", shell);
		}
	}
	fail(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN, "cannot run %s: %s", path, strerror(error));
}

struct request {
	const char *priority_text, *window_text;
	int priority, window;
	bool cgroup, library, verbose;
};

static void check_request(struct request *request)
{
	if (!request->priority_text)
		fail(EXIT_USAGE, "give a priority, -p 0 to -p 7");
	if (!parse_number(request->priority_text, 0, QJAU_PRIORITY_MAX, &request->priority))
		fail(EXIT_USAGE, "priority '%s' is not a number from 0 to %d", request->priority_text,
		    QJAU_PRIORITY_MAX);
	if (request->cgroup && request->library)
		fail(EXIT_USAGE, "--cgroup and --library exclude each other; leave one out");
	if (request->window_text && !parse_number(request->window_text, 1, QJAU_WINDOW_MAX,
	    &request->window))
		fail(EXIT_USAGE, "window '%s' is not a number of bytes from 1 to %d", request->window_text,
		    QJAU_WINDOW_MAX);
}

/* Parse the options before the command, which then starts at optind. */
static void read_options(int argc, char **argv, struct request *request)
{
	static const struct option long_options[] = { { "cgroup", no_argument, NULL, 'c' },
						      { "library", no_argument, NULL, 'l' },
						      { "help", no_argument, NULL, 'h' },
						      { NULL, 0, NULL, 0 } };
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:p:w:vh", long_options, NULL)) != -1) {
		switch (option) {
		case 'p':
			request->priority_text = optarg;
			break;
		case 'w':
			request->window_text = optarg;
			break;
		case 'c':
			request->cgroup = true;
			break;
		case 'l':
			request->library = true;
			break;
		case 'v':
			request->verbose = true;
			break;
		case 'h':
			printf("%s\n%s", usage, help);
			exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_CANNOT);
		case ':':
			fail(EXIT_USAGE, "option -%c needs a value", optopt);
		default:
			if (optopt > ' ' && optopt != 'c' && optopt != 'l')
				fail(EXIT_USAGE, "unknown option -%c", optopt);
			fail(EXIT_USAGE, "unknown option %s", argv[optind - 1]);
		}
	}
}

static void find_command(const char *name, char path[PATH_MAX])
{
	int error = find_program(name, path);

	if (error == ENOENT || error == ENOTDIR)
		fail(EXIT_NOT_FOUND, "%s: not found%s", name, strchr(name, '/') ? "" : " in PATH");
	if (error != 0)
		fail(EXIT_NOT_RUN, "%s cannot be run: %s", name, strerror(error));
}

/* Only the library can set a window, so refuse one, or warn, if it cannot be preloaded. */
static void check_window(const struct request *request, const struct obstacle *why)
{
	if (request->window_text && !why->may_not_run)
		fail(EXIT_NOT_RUN, "%s %s, so -w cannot be used", why->file, why->reason);
	if (request->window_text)
		warn("%s %s: its window is not set", why->file, why->reason);
}

/* cause: why the kernel does not mark its packets. */
static void check_unmarked(const struct request *request, const struct obstacle *why,
    const char *cause)
{
	if (!why->may_not_run)
		fail(EXIT_NOT_RUN,
		     "%s %s; its packets can be marked by the program's own option, by \"tc filter ... action skbedit priority "
		     "%d\" on a clsact qdisc (qjau(1)), or in the kernel, but %s",
		     why->file, why->reason, request->priority, cause);
	warn("%s %s: it runs unmarked (%s)", why->file, why->reason, cause);
}

/* Mark packets in the kernel if possible, otherwise by the library alone. */
static void mark(const struct request *request, char **command, const char *path)
{
	struct obstacle why;
	bool preloadable = is_preloadable(command, path, &why);
	const char *cause;

	if (!preloadable && why.never_runs)
		fail(EXIT_NOT_RUN, "%s cannot be run: it %s", why.file, why.reason);
	if (!preloadable)
		check_window(request, &why);
	cause = request->library ? "--library was given"
	    : enter_cgroup(request->priority, request->verbose);
	if (!cause)
		return;
	if (request->cgroup)
		fail(EXIT_CANNOT, "%s", cause);
	if (is_in_cgroup())
		fail(EXIT_CANNOT, "it runs under another qjau, whose priority sockets cannot override, and %s",
		    cause);
	if (!preloadable)
		check_unmarked(request, &why, cause);
}

int main(int argc, char **argv)
{
	struct request request = { 0 };
	char library[PATH_MAX], path[PATH_MAX];
	char **command;

	read_options(argc, argv, &request);
	check_request(&request);
	if (optind == argc)
		fail(EXIT_USAGE, "give a command to run");
	command = argv + optind;
	check_options(request.priority, request.window);
	find_library(library);
	find_command(command[0], path);
	mark(&request, command, path);

	prepend_preload(library); /* even in a cgroup: for the window and for packet sockets */
	set_variable(QJAU_PRIORITY, request.priority_text);
	set_variable(QJAU_WINDOW, request.window_text);
	set_variable(QJAU_VERBOSE, request.verbose ? "1" : NULL);
	run(path, command, (int)(argv + argc - command));
}
