/*
 * libqjau.so: gives the sockets of an unmodified program a priority and, if asked, a window.
 *
 * Loaded by LD_PRELOAD, it stands before the C library's socket(), accept(), accept4(), setsockopt() and getsockopt():
 *
 *   socket()             SO_PRIORITY on AF_INET, AF_INET6 and AF_PACKET; SO_SNDBUF and SO_RCVBUF on the first two,
 *                        before connect() or listen(), since TCP chooses its window scale then.
 *   accept(), accept4()  the same. Linux gives an accepted socket priority 0 whatever its listener has (sk_clone_lock),
 *                        but the listener's buffers; so these are set only if nobody has chosen them (SO_BUF_LOCK).
 *   setsockopt()         IP_TOS moves a socket's priority by a table in the kernel (rt_tos2prio: 0x08 to 2, 0x10 to 6);
 *                        the priority from before is put back. A program's own SO_PRIORITY wins.
 *   getsockopt()         SO_PRIORITY is never the one that IP_TOS has moved for a moment.
 *
 * A program under it must not be able to tell, except by asking for the options: no failure is passed on, errno is
 * kept, nothing is allocated, no descriptor is held. All state is constant once start() is done, but for the lock that
 * makes IP_TOS and what puts the priority back one step.
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
	bool active;	    /* QJAU_PRIORITY was there and right */
	int priority;	    /* 0 to 7 */
	int window;	    /* bytes as given to setsockopt (the kernel doubles them); 0: leave the buffers alone */
	bool verbose;	    /* and stderr was open when the program started */
	dev_t stderr_dev;   /* which file stderr was then: a program may */
	ino_t stderr_inode; /* close it and be given 2 for a file of its own */
} settings;

/* The next library's functions; NULL if there is none, and then the system call is made directly. */
static __typeof__(socket) *next_socket;
static __typeof__(accept) *next_accept;
static __typeof__(accept4) *next_accept4;
static __typeof__(getsockopt) *next_getsockopt;
static __typeof__(setsockopt) *next_setsockopt;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool started;
/* True while this thread starts: a malloc() called by dlsym() may make sockets. */
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

/* True if there is a priority to set. Called first by the constructor, or by a hook if a library starts earlier. */
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

/* The value of a socket option of SOL_SOCKET, or -1: none of those asked for here is ever negative. */
static int get_option(int fd, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return call_getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

/* A line for stderr, built without stdio, which is not safe in a signal handler. Cut off at its end if too long. */
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
 * Write the line if stderr still is what it was when the program started and takes it at once. No SIGPIPE or SIGXFSZ
 * reaches the program, and the write is no cancellation point, as socket() and setsockopt() are none.
 */
static void write_line(struct line *line)
{
	static const struct timespec now = { 0, 0 };
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	sigset_t raised, pending, before;
	struct stat file;
	int cancel;

	if (fstat(STDERR_FILENO, &file) != 0 || file.st_dev != settings.stderr_dev || file.st_ino != settings.stderr_inode)
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

/* The buffers are what the kernel made of the window: twice as much, within its limits. */
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

/* chosen: which buffers somebody has set already (SNDBUF_LOCKED, RCVBUF_LOCKED). */
static void mark(const char *call, int fd, int domain, int chosen)
{
	int refusal = set_option(fd, SO_PRIORITY, settings.priority) == 0 ? 0 : errno;

	/* A packet socket captures; a small buffer would lose what it is to see. */
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
	int fd = next_socket ? next_socket(domain, type, protocol) : (int)syscall(SYS_socket, domain, type, protocol);

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
 * The process that changes or reads a priority, or 0. Signals are blocked meanwhile: a handler in the same thread would
 * wait for ever. A fork may copy a lock that a thread held which the child does not have; it names another process
 * there, and is taken over.
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

/* error: what errno is to be afterwards. */
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
	/* 7 is refused to a program that has given up its rights; nothing can be done about it then. */
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

EXPORTED int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict length)
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
