/*
 * Command lines whose program only starts another one: nice, timeout, env, sh -c, ...
 */
#ifndef QJAU_WRAPPER_H
#define QJAU_WRAPPER_H

/* The command line that a known wrapper will execute; NULL if the program is none, or if PATH or the folder change. */
char **unwrap(char **argv);

/* The text that a shell is given with -c; NULL if the program is no shell, or has none. */
const char *find_shell_text(char **argv);

/*
 * The next simple command of a shell's text, without keywords and assignments; NULL at its end. Nothing is expanded: a
 * word that is quoted or has a variable stays as it is. Moves text behind the command.
 */
char **next_command(const char **text);

#endif
