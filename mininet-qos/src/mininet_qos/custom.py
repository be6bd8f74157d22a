"""For ``mn --custom``: hosts qjvlan, links qjwire, qjtbf and qjtc, switch qjprio.

``mn --custom "$(python3 -m mininet_qos)" --host qjvlan --link qjwire,bw=10 --switch qjprio``

``mn`` runs this file and takes every name in it for one of its own, so that there are no others.
"""

import __main__
import mininet_qos

hosts = {"qjvlan": mininet_qos.VLANHost}
switches = {"qjprio": mininet_qos.PrioritySwitch}
links = {"qjwire": mininet_qos.WireLink, "qjtbf": mininet_qos.TbfLink, "qjtc": mininet_qos.ChildLink}
# Mininet 2.3.0 takes no links from a custom file: its list of names lacks a comma behind 'links'.
LINKS = {**getattr(__main__, "LINKS", {}), **links}
