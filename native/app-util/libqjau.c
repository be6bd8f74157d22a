/*
 * libqjau.so: give the sockets of an unmodified program a priority and, optionally, a window.
 *
 * Preloaded by LD_PRELOAD, it wraps these functions of the C library:
 *
 *   socket()             Set SO_PRIORITY on AF_INET, AF_INET6 and AF_PACKET sockets. On the first
 *                        two also set SO_SNDBUF and SO_RCVBUF, before connect() or listen(), as TCP
 *                        chooses its window scale then.
 *   accept(), accept4()  Likewise. Linux gives an accepted socket priority 0, whatever its listener
 *                        has (sk_clone_lock), but the listener's buffers. So set buffers only if
 *                        nobody has chosen them (SO_BUF_LOCK).
 *   setsockopt()         IP_TOS changes the priority by a table in the kernel (rt_tos2prio: 0x08 to
 *                        2, 0x10 to 6), so restore the previous one. The program's own SO_PRIORITY
 *                        wins.
 *   getsockopt()         Never return the priority that IP_TOS has set for a moment.
 *
 * The program must not notice any of this, except by reading the options: failures are ignored,
 * errno is preserved, and no memory or descriptor is allocated. All state is constant once start()
 * has returned, except for the lock that makes IP_TOS and the restored priority one atomic step.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"

#ifndef SO_BUF_LOCK /* Linux 5.15; absent from older headers */
#define SO_BUF_LOCK 72
#endif
#define SNDBUF_LOCKED 1
#define RCVBUF_LOCKED 2

#define EXPORTED __attribute__((visibility("default")))

static struct {
	bool active;	    /* QJAU_PRIORITY was set and valid */
	int priority;	    /* 0 to 7 */
	int window;	    /* bytes for setsockopt (doubled by the kernel); 0: keep buffers */
	bool verbose;	    /* QJAU_VERBOSE was set, and stderr was open at the start */
	dev_t stderr_dev;   /* identify the file that stderr was then: the program */
	ino_t stderr_inode; /* may close it and reuse descriptor 2 for its own file */
} settings;

/* The wrapped functions; if NULL, make the system call directly. */
static __typeof__(socket) *next_socket;
static __typeof__(accept) *next_accept;
static __typeof__(accept4) *next_accept4;
static __typeof__(getsockopt) *next_getsockopt;
static __typeof__(setsockopt) *next_setsockopt;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool started;
/* True while this thread is in start(): dlsym() may call a malloc() that creates sockets. */
static __thread bool starting __attribute__((tls_model("initial-exec")));

static void start_once(void)
{
	const char *priority = getenv(QJAU_PRIORITY);
	const char *window = getenv(QJAU_WINDOW);
	struct stat file;
	int saved = errno;

	next_socket = (__typeof__(next_socket))dlsym(RTLD_NEXT, "socket");
	next_accept = (__typeof__(next_accept))dlsym(RTLD_NEXT, "accept");
	next_accept4 = (__typeof__(next_accept4))dlsym(RTLD_NEXT, "accept4");
	next_getsockopt = (__typeof__(next_getsockopt))dlsym(RTLD_NEXT, "getsockopt");
	next_setsockopt = (__typeof__(next_setsockopt))dlsym(RTLD_NEXT, "setsockopt");

	settings.active = priority && parse_number(priority, 0, QJAU_PRIORITY_MAX, &settings.priority);
	if (window && !parse_number(window, 1, QJAU_WINDOW_MAX, &settings.window))
		settings.window = 0;
	if (getenv(QJAU_VERBOSE) && fstat(STDERR_FILENO, &file) == 0) {
		settings.verbose = true;
		settings.stderr_dev = file.st_dev;
		settings.stderr_inode = file.st_ino;
	}
	errno = saved;
}

/* True if there is a priority to set. Called by the constructor, or by an earlier wrapper. */
static bool start(void)
{
	if (started)
		return settings.active;
	if (starting)
		return false;
	starting = true;
	pthread_once(&once, start_once);
	starting = false;
	started = true;
	return settings.active;
}

__attribute__((constructor)) static void construct(void)
{
	start();
}

static int call_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	if (next_setsockopt)
		return next_setsockopt(fd, level, option, value, length);
	return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
}

static int call_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	if (next_getsockopt)
		return next_getsockopt(fd, level, option, value, length);
	return (int)syscall(SYS_getsockopt, fd, level, option, value, length);
}

static int set_option(int fd, int option, int value)
{
	return call_setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value));
}

/* Return the value of a SOL_SOCKET option, or -1: none of the options used here can be negative. */
static int get_option(int fd, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return call_getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

/* A line for stderr, truncated if too long; stdio is not safe in a signal handler. */
struct line {
	size_t length;
	char text[160];
};

static void add_text(struct line *line, const char *text)
{
	while (*text != '\0' && line->length < sizeof(line->text))
		line->text[line->length++] = *text++;
}

static void add_number(struct line *line, int number)
{
	char digits[16];
	char *first = digits + sizeof(digits) - 1;
	unsigned int rest = number < 0 ? -(unsigned int)number : (unsigned int)number;

	*first = '\0';
	do {
		*--first = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest != 0);
	if (number < 0)
		*--first = '-';
	add_text(line, first);
}

/*
 * Write the line if stderr is still the original file and would not block. Keep SIGPIPE and SIGXFSZ
 * from the program, and disable cancellation: socket() and setsockopt() are not cancellation
 * points.
 */
static void write_line(struct line *line)
{
	static const struct timespec now = { 0, 0 };
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	sigset_t raised, pending, before;
	struct stat file;
	int cancel;

	if (fstat(STDERR_FILENO, &file) != 0 || file.st_dev != settings.stderr_dev ||
	    file.st_ino != settings.stderr_inode)
		return;
	add_text(line, "\n");
	line->text[line->length - 1] = '\n';
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigemptyset(&raised);
	sigaddset(&raised, SIGPIPE);
	sigaddset(&raised, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &raised, &before);
	sigpending(&pending);
	if (poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT &&
	    write(STDERR_FILENO, line->text, line->length) < 0 && (errno == EPIPE || errno == EFBIG)) {
		int signal = errno == EPIPE ? SIGPIPE : SIGXFSZ;
		sigset_t ours;

		sigemptyset(&ours);
		sigaddset(&ours, signal);
		if (!sigismember(&pending, signal))
			sigtimedwait(&ours, NULL, &now);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancel, NULL);
}

static void begin_line(struct line *line, const char *call, int fd)
{
	line->length = 0;
	add_text(line, "qjau: process ");
	add_number(line, (int)getpid());
	add_text(line, ", ");
	add_text(line, call);
	add_text(line, " ");
	add_number(line, fd);
	add_text(line, ": ");
}

/* Report the buffers that the kernel chose: twice the window, within its limits. */
static void report_mark(const char *call, int fd, int domain, int refusal)
{
	struct line line;

	begin_line(&line, call, fd);
	add_text(&line, domain == AF_INET ? "IPv4" : domain == AF_INET6 ? "IPv6" : "packet");
	add_text(&line, ", priority ");
	add_number(&line, get_option(fd, SO_PRIORITY));
	if (refusal != 0) {
		add_text(&line, " (");
		add_number(&line, settings.priority);
		add_text(&line, refusal == EPERM ? " refused: not permitted)" : " refused)");
	}
	add_text(&line, ", send buffer ");
	add_number(&line, get_option(fd, SO_SNDBUF));
	add_text(&line, ", receive buffer ");
	add_number(&line, get_option(fd, SO_RCVBUF));
	write_line(&line);
}

static bool is_marked(int domain)
{
	return domain == AF_INET || domain == AF_INET6 || domain == AF_PACKET;
}

/* chosen: buffers that are already set explicitly (SNDBUF_LOCKED, RCVBUF_LOCKED). */
static void mark(const char *call, int fd, int domain, int chosen)
{
	int refusal = set_option(fd, SO_PRIORITY, settings.priority) == 0 ? 0 : errno;

	/* Packet sockets keep their buffers: a capture with small ones would lose packets. */
	if (settings.window != 0 && domain != AF_PACKET) {
		if (!(chosen & SNDBUF_LOCKED))
			set_option(fd, SO_SNDBUF, settings.window);
		if (!(chosen & RCVBUF_LOCKED))
			set_option(fd, SO_RCVBUF, settings.window);
	}
	if (settings.verbose)
		report_mark(call, fd, domain, refusal);
}

static void mark_accepted(const char *call, int fd)
{
	int domain = get_option(fd, SO_DOMAIN);
	int chosen;

	if (!is_marked(domain))
		return;
	chosen = get_option(fd, SO_BUF_LOCK);
	mark(call, fd, domain, chosen < 0 ? 0 : chosen);
}

EXPORTED int socket(int domain, int type, int protocol)
{
	bool active = start();
	int saved = errno;
	int fd = next_socket ? next_socket(domain, type, protocol)
	    : (int)syscall(SYS_socket, domain, type, protocol);

	if (active && fd >= 0 && is_marked(domain)) {
		mark("socket", fd, domain, 0);
		errno = saved;
	}
	return fd;
}

EXPORTED int accept4(int listener, __SOCKADDR_ARG address, socklen_t *restrict length, int flags)
{
	bool active = start();
	int saved = errno;
	int fd = next_accept4 ? next_accept4(listener, address, length, flags) :
				(int)syscall(SYS_accept4, listener, address.__sockaddr__, length, flags);

	if (active && fd >= 0) {
		mark_accepted("accept4", fd);
		errno = saved;
	}
	return fd;
}

EXPORTED int accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict length)
{
	bool active = start();
	int saved = errno;
	int fd = next_accept ? next_accept(listener, address, length) :
			       (int)syscall(SYS_accept4, listener, address.__sockaddr__, length, 0);

	if (active && fd >= 0) {
		mark_accepted("accept", fd);
		errno = saved;
	}
	return fd;
}

static void report_move(int fd, int before, int after)
{
	struct line line;

	begin_line(&line, "socket", fd);
	add_text(&line, "IP_TOS moved priority ");
	add_number(&line, before);
	add_text(&line, " to ");
	add_number(&line, after);
	add_text(&line, ", and putting it back was refused");
	write_line(&line);
}

/*
 * Lock for changing and reading priorities: the pid of the holder, or 0. Signals are blocked while
 * it is held, as a handler in the same thread would wait for ever. A fork may copy the lock while
 * another thread holds it, which does not exist in the child; then it contains the parent's pid,
 * and the child takes it over.
 */
static _Atomic int holder;

static void lock_priorities(sigset_t *before)
{
	int self = (int)getpid(), seen = 0;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
	while (!atomic_compare_exchange_strong(&holder, &seen, self))
		if (seen == self) {
			syscall(SYS_futex, &holder, FUTEX_WAIT_PRIVATE, self, NULL, NULL, 0);
			seen = 0;
		}
}

/* error: the value to leave in errno. */
static void unlock_priorities(const sigset_t *before, int error)
{
	atomic_store(&holder, 0);
	syscall(SYS_futex, &holder, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_sigmask(SIG_SETMASK, before, NULL);
	errno = error;
}

static int set_tos(int fd, const void *value, socklen_t length)
{
	int before = get_option(fd, SO_PRIORITY), after;
	int result = call_setsockopt(fd, IPPROTO_IP, IP_TOS, value, length);

	if (result != 0)
		return result;
	after = get_option(fd, SO_PRIORITY);
	/* A program that has dropped its rights may not set 7 again; then only report it. */
	if (before >= 0 && after != before && set_option(fd, SO_PRIORITY, before) != 0 && settings.verbose)
		report_move(fd, before, after);
	return 0;
}

EXPORTED int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	bool tos = level == IPPROTO_IP && option == IP_TOS;
	bool active = start();
	sigset_t before;
	int saved = errno, result;

	if (!active || (!tos && (level != SOL_SOCKET || option != SO_PRIORITY)))
		return call_setsockopt(fd, level, option, value, length);
	lock_priorities(&before);
	result = tos ? set_tos(fd, value, length) : call_setsockopt(fd, level, option, value, length);
	unlock_priorities(&before, result == 0 ? saved : errno);
	return result;
}

EXPORTED int getsockopt(int fd, int level, int option, void *restrict value,
    socklen_t *restrict length)
{
	bool active = start();
	sigset_t before;
	int saved = errno, result;

	if (!active || level != SOL_SOCKET || option != SO_PRIORITY)
		return call_getsockopt(fd, level, option, value, length);
	lock_priorities(&before);
	result = call_getsockopt(fd, level, option, value, length);
	unlock_priorities(&before, result == 0 ? saved : errno);
	return result;
}
