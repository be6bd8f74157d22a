"""The program memcaslap: memcached, loaded by the paper's own client."""
