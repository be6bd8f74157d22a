"""Pack a run into one file (a bundle), and check the bundles of others."""
