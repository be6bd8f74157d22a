"""One module a program: how it is started, when it is ready, how it is stopped, how its output is read."""
