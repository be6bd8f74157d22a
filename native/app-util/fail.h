/*
 * Messages of qjau, and its exit codes if it has not run the command.
 */
#ifndef QJAU_FAIL_H
#define QJAU_FAIL_H

/* As env(1) and nohup(1), but with a separate code for a wrong command line. */
enum { EXIT_USAGE = 2, EXIT_CANNOT = 125, EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Print "qjau: MESSAGE" on stderr and exit. */
__attribute__((format(printf, 2, 3), noreturn)) void fail(int status, const char *format, ...);

/* Print a message and continue; drop it if stderr would block or is broken. */
__attribute__((format(printf, 1, 2))) void warn(const char *format, ...);

#endif
