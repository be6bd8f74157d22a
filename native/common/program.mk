# Build a program from its directory and this one. Its Makefile sets PROGRAM and, if needed,
# LIBRARIES, and includes this file.
# make [BUILD=folder], make install [PREFIX=/usr/local] [DESTDIR=], make clean
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BUILD ?= build
WARNINGS = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
STANDARD = -std=gnu11
# The directory of that Makefile, so that `make -f` works from any directory.
HERE := $(dir $(firstword $(MAKEFILE_LIST)))
SOURCES := $(sort $(wildcard $(HERE)*.c $(HERE)../common/*.c))
HEADERS := $(wildcard $(HERE)*.h $(HERE)../common/*.h)

all: $(BUILD)/$(PROGRAM)

$(BUILD)/$(PROGRAM): $(SOURCES) $(HEADERS) | $(BUILD)
	$(CC) $(STANDARD) $(WARNINGS) $(CPPFLAGS) $(CFLAGS) -o $@ $(SOURCES) $(LDFLAGS) $(LIBRARIES)

$(BUILD):
	mkdir -p $@

install: all
	install -D -m 755 $(BUILD)/$(PROGRAM) $(DESTDIR)$(PREFIX)/bin/$(PROGRAM)
	install -D -m 644 $(HERE)$(PROGRAM).1 $(DESTDIR)$(PREFIX)/share/man/man1/$(PROGRAM).1

clean:
	rm -f $(BUILD)/$(PROGRAM)

.PHONY: all install clean
