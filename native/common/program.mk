# How a program is built of its folder and of this one: its Makefile sets PROGRAM, and LIBRARIES if it needs any, and includes this.
# make [BUILD=folder], make install [PREFIX=/usr/local] [DESTDIR=], make clean
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BUILD ?= build
WARNINGS = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
STANDARD = -std=gnu11
# Where that Makefile is, so that `make -f` works from any folder.
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
