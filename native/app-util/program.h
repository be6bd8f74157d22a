/*
 * Programs on disk: find one as execvp() does, and predict whether the dynamic loader will preload
 * a library into it.
 */
#ifndef QJAU_PROGRAM_H
#define QJAU_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Why nothing can be preloaded; "FILE REASON" is a clause for a message. */
struct obstacle {
	char file[PATH_MAX];
	char reason[PATH_MAX + 100];
	bool never_runs; /* it cannot run at all, marked or not */
	bool may_not_run; /* it is in a shell's text, and may not be executed */
};

/*
 * Fill path with the file that execvp(name) would run. Returns 0, or an error with path undefined.
 */
int find_program(const char *name, char path[PATH_MAX]);

/* True if the file looks like a script for the shell, after the kernel returned ENOEXEC. */
bool is_text(const char *path);

/*
 * Return false, with the reason, if the loader will not preload into the command's program or if
 * that has no effect: it is static, made for another machine, gains rights by exec (AT_SECURE), or
 * is written in Go. For a script, check the interpreter; for a known wrapper or sh -c, also the
 * program that it starts. A file that may be run but not read is checked by its mode only.
 */
bool is_preloadable(char **argv, const char *path, struct obstacle *why);

#endif
