"""memcached with memcaslap, the paper's own client."""
