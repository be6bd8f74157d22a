"""The programs that run on hosts, a folder for each, and the registry through which everything else
uses them."""
