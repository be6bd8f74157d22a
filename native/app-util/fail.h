/*
 * What qjau says by itself, and how it ends without having run anything.
 */
#ifndef QJAU_FAIL_H
#define QJAU_FAIL_H

/* env(1)'s and nohup(1)'s codes, but that a wrong command line has one of its own. */
enum { EXIT_USAGE = 2, EXIT_CANNOT = 125, EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* "qjau: SENTENCE" on stderr; the end. */
__attribute__((format(printf, 2, 3), noreturn)) void fail(int status, const char *format, ...);

/* The same, and on it goes: in silence where stderr is full or nobody reads it. */
__attribute__((format(printf, 1, 2))) void tell(const char *format, ...);

#endif
