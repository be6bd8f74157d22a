#define _GNU_SOURCE
#include "wrapper.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

#define WORDS_MAX 64 /* words kept of one command in a shell's text */

/* options: getopt string; operands: words before the command. */
static const struct wrapper {
	const char *name, *options;
	int operands;
} wrappers[] = {
	{ "chrt", "+T:P:D:", 1 }, { "env", "+u:C:S:", 0 }, { "ionice", "+c:n:p:P:u:", 0 },
	{ "nice", "+n:", 0 },	  { "nohup", "+", 0 },	   { "setsid", "+", 0 },
	{ "stdbuf", "+i:o:e:", 0 }, { "taskset", "+", 1 }, { "timeout", "+k:s:", 1 },
};

/*
 * For all wrappers. The value of a long option that is missing here would be taken for the command.
 */
static const struct option long_options[] = {
	{ "adjustment", required_argument, NULL, 'v' },	    { "chdir", required_argument, NULL, 'C' },
	{ "class", required_argument, NULL, 'v' },	    { "classdata", required_argument, NULL, 'v' },
	{ "error", required_argument, NULL, 'v' },	    { "input", required_argument, NULL, 'v' },
	{ "kill-after", required_argument, NULL, 'v' },	    { "output", required_argument, NULL, 'v' },
	{ "sched-deadline", required_argument, NULL, 'v' },
	{ "sched-period", required_argument, NULL, 'v' },
	{ "sched-runtime", required_argument, NULL, 'v' },  { "signal", required_argument, NULL, 'v' },
	{ "split-string", required_argument, NULL, 'S' },   { "unset", required_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

static const char *const shells[] = { "ash", "bash", "dash", "ksh", "mksh", "sh", "zsh", NULL };
static const char *const keywords[] = { "!",  "command", "do",	 "elif",  "else",  "eval", "exec",
					"if", "then",	 "time", "until", "while", "{",	   NULL };

static bool is_among(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		fail(EXIT_CANNOT, "out of memory");
	return memory;
}

static int count_words(char **argv)
{
	int count = 0;

	while (argv[count])
		count++;
	return count;
}

/* Turn `env -S "words" rest` into `env words rest`. */
static char **split(const char *words, char **rest)
{
	char *copy = strdup(words), *word, *next = NULL;
	char **argv;
	int count = 1;

	if (!copy)
		fail(EXIT_CANNOT, "out of memory");
	argv = allocate(strlen(words) + (size_t)count_words(rest) + 2, sizeof(*argv));
	argv[0] = (char *)"env";
	for (word = strtok_r(copy, " \t", &next); word; word = strtok_r(NULL, " \t", &next))
		argv[count++] = word;
	while (*rest)
		argv[count++] = *rest++;
	return argv;
}

char **unwrap(char **argv)
{
	const struct wrapper *wrapper = wrappers, *end = wrappers + sizeof(wrappers) / sizeof(*wrappers);
	int option, count = count_words(argv);

	while (wrapper < end && strcmp(wrapper->name, base_name(argv[0])) != 0)
		wrapper++;
	if (wrapper == end)
		return NULL;
	optind = 0; /* reset getopt */
	while ((option = getopt_long(count, argv, wrapper->options, long_options, NULL)) != -1)
		if (option == 'S')
			return unwrap(split(optarg, argv + optind));
		else if (option == 'C')
			return NULL;
	argv += optind;
	for (int i = 0; i < wrapper->operands && *argv; i++)
		argv++;
	if (strcmp(wrapper->name, "env") == 0)
		for (; *argv && (strcmp(*argv, "-") == 0 || strchr(*argv, '=')); argv++)
			if (strncmp(*argv, "PATH=", strlen("PATH=")) == 0)
				return NULL;
	return *argv ? argv : NULL;
}

const char *find_shell_text(char **argv)
{
	bool has_text = false;
	int option;

	if (!is_among(shells, base_name(argv[0])))
		return NULL;
	optind = 0;
	while ((option = getopt(count_words(argv), argv, "+co:O:")) != -1)
		has_text |= option == 'c';
	return has_text ? argv[optind] : NULL;
}

/* Return the length up to an unquoted blank or command separator. */
static size_t word_length(const char *text)
{
	const char *end = text;

	for (char quote = '\0'; *end && (quote || !strchr(" \t\n;&|()`", *end)); end++)
		if (*end == '\\' && quote != '\'' && end[1])
			end++;
		else if (quote ? *end == quote : *end == '\'' || *end == '"')
			quote = quote ? '\0' : *end;
	return (size_t)(end - text);
}

/* Not true for PATH=, so that no program is looked up in the wrong PATH. */
static bool is_assignment(const char *word)
{
	return strchr(word, '=') && strncmp(word, "PATH=", strlen("PATH=")) != 0;
}

char **next_command(const char **text)
{
	char **argv = allocate(WORDS_MAX + 1, sizeof(*argv));
	int count = 0;

	for (;;) {
		size_t length;
		char *word;

		*text += strspn(*text, " \t");
		length = word_length(*text);
		if (length == 0 && (count > 0 || **text == '\0'))
			return count > 0 ? argv : NULL;
		if (length == 0) {
			++*text;
			continue;
		}
		word = strndup(*text, length);
		if (!word)
			fail(EXIT_CANNOT, "out of memory");
		*text += length;
		if (count < WORDS_MAX && (count > 0 || (!is_among(keywords, word) && !is_assignment(word))))
			argv[count++] = word;
	}
}
