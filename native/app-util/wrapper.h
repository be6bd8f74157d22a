/*
 * Command lines of programs that start another program: nice, timeout, env, sh -c, ...
 */
#ifndef QJAU_WRAPPER_H
#define QJAU_WRAPPER_H

/*
 * Return the command line that a known wrapper executes; NULL if argv is not a wrapper, or changes
 * PATH or directory.
 */
char **unwrap(char **argv);

/* Return the text of a shell's -c; NULL if the program is not a shell or has no -c. */
const char *find_shell_text(char **argv);

/*
 * Return the next simple command in a shell's text, without keywords and assignments; NULL at the
 * end. Quotes and variables are not expanded. Advances text past the command.
 */
char **next_command(const char **text);

#endif
