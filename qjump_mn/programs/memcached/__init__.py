"""The program memcached, loaded by memload (native/memload)."""
