"""What a process needs of its operating system: signals, children, privileges, temporary
folders."""
