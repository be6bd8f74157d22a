"""fanin (native/fanin), many senders of small datagrams."""
