/*
 * Programs on disk: finding one as execvp() does, and telling beforehand whether the dynamic loader will preload a
 * library into it.
 */
#ifndef QJAU_PROGRAM_H
#define QJAU_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Why nothing can be preloaded: "FILE REASON" is a clause of a sentence. */
struct obstacle {
	char file[PATH_MAX];
	char reason[PATH_MAX + 100];
	bool never_runs; /* by nobody, marked or not */
	bool perhaps;	 /* in a shell's text, which may not come to it */
};

/* Fill path with the file that execvp(name) would run. Returns 0, or ENOENT, EACCES, ... with path undefined. */
int find_program(const char *name, char path[PATH_MAX]);

/* True if the file may be given to the shell, when the kernel does not know what it is. */
bool is_text(const char *path);

/*
 * False, with the reason, if the loader will not preload into the command's program, or in vain: static, made for
 * another machine, gaining rights by the exec (AT_SECURE), or written in Go. Of a script the interpreter is judged; of
 * a known wrapper or a shell's -c also what that starts. A file that may be run but not read is judged by its mode
 * alone.
 */
bool is_preloadable(char **argv, const char *path, struct obstacle *why);

#endif
