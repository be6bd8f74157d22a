"""One module a program: the processes it is made of (``launches``), and how what they print is read (``COLUMNS``, ``columns``)."""
