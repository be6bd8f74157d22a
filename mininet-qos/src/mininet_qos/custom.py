"""For ``mn --custom``: hosts qjvlan, links qjwire, qjtbf and qjtc of 10 Mb/s, switch qjprio.

``mn --custom "$(python3 -m mininet_qos)" --host qjvlan --link qjwire --switch qjprio``

``mn`` runs this file and takes every name in it for one of its own, so it defines no others.
"""

import mininet.util

import __main__
import mininet_qos

hosts = {"qjvlan": mininet_qos.VLANHost}
switches = {"qjprio": mininet_qos.PrioritySwitch}
links = {
    "qjwire": mininet.util.specialClass(mininet_qos.WireLink, defaults={"bw": 10}),
    "qjtbf": mininet.util.specialClass(mininet_qos.TbfLink, defaults={"bw": 10}),
    "qjtc": mininet.util.specialClass(mininet_qos.ChildLink, defaults={"bw": 10}),
}
# Mininet 2.3.0 takes no links from a custom file: its list of names lacks a comma after 'links'.
LINKS = {**getattr(__main__, "LINKS", {}), **links}
