"""memcached with memload (native/memload)."""
