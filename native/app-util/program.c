#define _GNU_SOURCE
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "wrapper.h"

#define SCRIPT_LINE 256	 /* BINPRM_BUF_SIZE: bytes of a script's first line that the kernel reads */
#define SCRIPT_DEPTH 5	 /* nested interpreters that the kernel allows (fs/exec.c) */
#define NOTE_MAX 65536	 /* bytes; real note segments are smaller */
#define GO_NOTE "Go"	 /* owner of the note with a Go build id; -ldflags=-buildid= omits it */
#define GO_SECTION ".gopclntab" /* function table of Go's run time; .data.rel.ro.gopclntab in PIE */
#define SECTIONS_MAX 4096 /* in one program */
#define NAMES_MAX (1 << 20) /* bytes of section names */

#define GO_REASON "is written in Go, which calls the kernel past the C library"

static int check_executable(const char *path)
{
	struct stat file;

	if (stat(path, &file) != 0)
		return errno;
	if (!S_ISREG(file.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* Like execvp(): skip a file that may not be run, but return EACCES if there is no other. */
int find_program(const char *name, char path[PATH_MAX])
{
	const char *folder = getenv("PATH");
	int error = ENOENT;

	if (*name == '\0')
		return ENOENT;
	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return ENAMETOOLONG;
		return check_executable(path);
	}
	if (!folder)
		folder = "/bin:/usr/bin";
	for (;;) {
		size_t length = strcspn(folder, ":");
		int written = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folder, length ? "/" : "./",
		    name);
		int result = written < PATH_MAX ? check_executable(path) : ENAMETOOLONG;

		if (result == 0)
			return 0;
		if (result == EACCES)
			error = EACCES;
		if (folder[length] == '\0')
			return error;
		folder += length + 1;
	}
}

__attribute__((format(printf, 3, 4)))
static bool refuse(struct obstacle *why, const char *file, const char *format, ...)
{
	va_list arguments;

	snprintf(why->file, sizeof(why->file), "%s", file);
	va_start(arguments, format);
	vsnprintf(why->reason, sizeof(why->reason), format, arguments);
	va_end(arguments);
	why->never_runs = why->may_not_run = false;
	return false;
}

/*
 * True if the file has capabilities for users other than root (struct vfs_cap_data, little-endian).
 */
static bool has_capabilities(const char *path)
{
	struct vfs_ns_cap_data data = { 0 };

	if (getxattr(path, "security.capability", &data, sizeof(data)) < (ssize_t)XATTR_CAPS_SZ_2)
		return false;
	/*
	 * No byte swapping needed: look at the low byte for the flag, and compare the rest with 0.
	 */
	return (((unsigned char *)&data.magic_etc)[0] & VFS_CAP_FLAGS_EFFECTIVE) ||
	    data.data[0].permitted ||
	       data.data[1].permitted;
}

/* With AT_SECURE the loader ignores LD_PRELOAD; the rule is cap_bprm_creds_from_file()'s. */
static bool check_rights(const char *path, struct obstacle *why)
{
	struct stat file;
	struct statvfs mount;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	bool may_gain = statvfs(path, &mount) != 0 || !(mount.f_flag & ST_NOSUID);

	if (stat(path, &file) != 0)
		return true;
	if (may_gain && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
		if (file.st_mode & S_ISUID)
			uid = file.st_uid;
		if ((file.st_mode & S_ISGID) && (file.st_mode & S_IXGRP))
			gid = file.st_gid;
	}
	if (uid != getuid())
		return refuse(why, path, "runs as another user than its caller (setuid), so the loader ignores LD_PRELOAD");
	if (gid != getgid())
		return refuse(why, path, "runs as another group than its caller (setgid), so the loader ignores LD_PRELOAD");
	if (may_gain && getuid() != 0 && has_capabilities(path))
		return refuse(why, path, "has file capabilities, so the loader ignores LD_PRELOAD unless root runs it");
	return true;
}

/*
 * True if a segment has a Go note. A note is: length of name, length of content, type, name,
 * content.
 */
static bool has_go_note(const char *notes, size_t size)
{
	ElfW(Nhdr) note;

	while (size >= sizeof(note)) {
		size_t name, content;

		memcpy(&note, notes, sizeof(note));
		name = (note.n_namesz + (size_t)3) & ~(size_t)3;
		content = (note.n_descsz + (size_t)3) & ~(size_t)3;
		notes += sizeof(note);
		size -= sizeof(note);
		if (name > size || content > size - name)
			return false;
		if (note.n_namesz >= sizeof(GO_NOTE) && memcmp(notes, GO_NOTE, sizeof(GO_NOTE)) == 0)
			return true;
		notes += name + content;
		size -= name + content;
	}
	return false;
}

static bool is_go(int fd, const ElfW(Phdr) *segment)
{
	bool found = false;
	char *notes;

	if (segment->p_filesz > NOTE_MAX || !(notes = malloc(segment->p_filesz)))
		return false;
	if (pread(fd, notes, segment->p_filesz, (off_t)segment->p_offset) == (ssize_t)segment->p_filesz)
		found = has_go_note(notes, segment->p_filesz);
	free(notes);
	return found;
}

/*
 * True if the file has Go's section. A Go program without section headers (sstrip) goes unnoticed.
 */
static bool has_go_section(int fd, const ElfW(Ehdr) *header)
{
	size_t size = (size_t)header->e_shnum * sizeof(ElfW(Shdr)), end = strlen(GO_SECTION);
	ElfW(Shdr) *sections = NULL, *table;
	char *names = NULL;
	bool found = false;

	if (header->e_shentsize != sizeof(*sections) || header->e_shnum > SECTIONS_MAX ||
	    header->e_shstrndx >= header->e_shnum || !(sections = malloc(size)) ||
	    pread(fd, sections, size, (off_t)header->e_shoff) != (ssize_t)size)
		goto out;
	table = &sections[header->e_shstrndx];
	if (table->sh_size == 0 || table->sh_size > NAMES_MAX || !(names = malloc(table->sh_size)) ||
	    pread(fd, names, table->sh_size, (off_t)table->sh_offset) != (ssize_t)table->sh_size)
		goto out;
	names[table->sh_size - 1] = '\0';
	for (unsigned int i = 0; i < header->e_shnum && !found; i++) {
		const char *name = sections[i].sh_name < table->sh_size ? names + sections[i].sh_name : "";
		size_t length = strlen(name);

		found = length >= end && strcmp(name + length - end, GO_SECTION) == 0;
	}
out:
	free(names);
	free(sections);
	return found;
}

/* True if word size, byte order and machine are those of this program. */
static bool is_native(const ElfW(Ehdr) *header)
{
	ElfW(Ehdr) own = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool known = fd >= 0 && read(fd, &own, sizeof(own)) == (ssize_t)sizeof(own);

	if (fd >= 0)
		close(fd);
	return !known || (header->e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
			  header->e_ident[EI_DATA] == own.e_ident[EI_DATA] && header->e_machine == own.e_machine);
}

static bool check_elf(int fd, const char *path, struct obstacle *why)
{
	ElfW(Ehdr) header;
	bool dynamic = false;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return true;
	if (!is_native(&header))
		return refuse(why, path, "is made for another machine or word size than qjau's library");
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		ElfW(Phdr) segment;
		off_t at = (off_t)(header.e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
			return true;
		if (segment.p_type == PT_NOTE && is_go(fd, &segment))
			return refuse(why, path, GO_REASON);
		if (segment.p_type == PT_INTERP) {
			char loader[PATH_MAX] = "";

			dynamic = true;
			if (segment.p_filesz >= sizeof(loader) ||
			    pread(fd, loader, segment.p_filesz, (off_t)segment.p_offset) != (ssize_t)segment.p_filesz)
				continue;
			if (access(loader, X_OK) != 0) {
				refuse(why, path, "needs the loader %s, which is missing here", loader);
				why->never_runs = true;
				return false;
			}
		}
	}
	if (!dynamic)
		return refuse(why, path, "is statically linked, so that nothing can be preloaded into it");
	if (has_go_section(fd, &header))
		return refuse(why, path, GO_REASON);
	return check_rights(path, why);
}

static bool check_command(char **argv, const char *path, int depth, struct obstacle *why);

/* line: the rest of the first line, after "#!". */
static bool check_script(char *line, int depth, struct obstacle *why)
{
	char *interpreter = line + strspn(line, " \t");
	char *arguments = interpreter + strcspn(interpreter, " \t");
	char *end = arguments + strlen(arguments);
	char *argv[] = { interpreter, NULL, NULL };

	while (end > arguments && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	if (*arguments != '\0') {
		*arguments++ = '\0';
		argv[1] = arguments + strspn(arguments, " \t");
	}
	return check_command(argv, interpreter, depth + 1, why);
}

static bool check_file(const char *path, int depth, struct obstacle *why)
{
	char start[SCRIPT_LINE + 1];
	ssize_t length;
	bool good = true;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return check_rights(path, why);
	length = read(fd, start, SCRIPT_LINE);
	start[length < 0 ? 0 : length] = '\0';
	if (length >= SELFMAG && memcmp(start, ELFMAG, SELFMAG) == 0) {
		good = check_elf(fd, path, why);
	} else if (length >= 2 && start[0] == '#' && start[1] == '!' && depth < SCRIPT_DEPTH) {
		start[strcspn(start, "\n")] = '\0';
		good = check_script(start + 2, depth, why);
	}
	close(fd);
	return good;
}

/* Check the text of sh -c: the shell may not execute all of it, so set why->may_not_run. */
static bool check_text(const char *text, int depth, struct obstacle *why)
{
	char path[PATH_MAX];
	char **argv;

	while ((argv = next_command(&text)))
		if (find_program(argv[0], path) == 0 && !check_command(argv, path, depth, why) &&
		    !why->never_runs) {
			why->may_not_run = true;
			return false;
		}
	return true;
}

static bool check_command(char **argv, const char *path, int depth, struct obstacle *why)
{
	char **inner = unwrap(argv);
	const char *text = find_shell_text(argv);
	char found[PATH_MAX];

	if (!check_file(path, depth, why))
		return false;
	if (inner)
		return find_program(inner[0], found) != 0 || check_command(inner, found, depth, why);
	return !text || check_text(text, depth, why);
}

bool is_text(const char *path)
{
	char start[SCRIPT_LINE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, start, sizeof(start));

	if (fd >= 0)
		close(fd);
	return length >= 0 && !memchr(start, '\0', (size_t)length) &&
	       (length < SELFMAG || memcmp(start, ELFMAG, SELFMAG) != 0);
}

bool is_preloadable(char **argv, const char *path, struct obstacle *why)
{
	return check_command(argv, path, 0, why);
}
