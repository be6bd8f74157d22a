# SPDX-License-Identifier: GPL-2.0-or-later
# Figure 9's fabric and a list of flows in ns-2.35: 9 racks of 16 hosts at 10 Gb/s, queues of 150 packets counted in bytes, TCP with
# selective acknowledgements and, as where packets are sprayed, no fast retransmit. One spine of 160 Gb/s stands for four of 40 Gb/s: to
# spray packets ns-2 needs distance vectors, which take it 24 s more before the first flow; the packet-hops are as many.
#
#   ns leafspine.tcl FLOWS count|time|each|open
#
# FLOWS: lines of seconds, source, destination, packets. `count` watches every queue to count packet-hops and drops, which costs time; `time`
# does not, and says 0. It prints one line: words of name=value. `each` prints a line for each flow before that: its number and the seconds
# at its end. So does `open`, where connections are open beforehand: otherwise ns-2's first packet is a SYN.

lassign $argv trace mode

set sim [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags

Queue/DropTail set queue_in_bytes_ true
Queue/DropTail set mean_pktsize_ 1500
Queue set limit_ 150
Agent/TCP set packetSize_ 1460         ;# 40 bytes of header come on top
Agent/TCP set window_ 149
Agent/TCP set windowInit_ 12
Agent/TCP set tcpTick_ 0.000001
Agent/TCP set minrto_ 0.0002
Agent/TCP set rtxcur_init_ 0.0002
Agent/TCP set maxrto_ 2
Agent/TCP set numdupacks_ 1000000
Agent/TCP set singledup_ 0             ;# no limited transmit

if {$mode eq "open"} {
    Agent/TCP set syn_ false
}

set spine [$sim node]
set links {}
for {set rack 0} {$rack < 9} {incr rack} {
    set tor($rack) [$sim node]
    $sim duplex-link $tor($rack) $spine 160Gb 0.2us DropTail
    lappend links $tor($rack) $spine
    for {set slot 0} {$slot < 16} {incr slot} {
        set id [expr {16 * $rack + $slot}]
        set host($id) [$sim node]
        $sim duplex-link $host($id) $tor($rack) 10Gb 2.7us DropTail
        lappend links $host($id) $tor($rack)
    }
}
set monitors {}
if {$mode eq "count"} {
    foreach {a b} $links {
        lappend monitors [$sim monitor-queue $a $b ""] [$sim monitor-queue $b $a ""]
    }
}

set started 0
set finished 0
Agent/TCP instproc done {} {
    global finished started mode number sim
    if {$mode in {each open}} {
        puts "flow $number($self) [$sim now]"
    }
    if {[incr finished] == $started} { finish }
}
proc finish {} {
    global sim monitors started finished
    set hops 0
    set drops 0
    foreach monitor $monitors {
        incr hops [$monitor set pdepartures_]
        incr drops [$monitor set pdrops_]
    }
    set file [open /proc/self/status]
    regexp {VmHWM:\s+(\d+) kB} [read $file] all kilobytes
    puts "finished=$finished/$started end=[$sim now]s hops=$hops dropped=$drops max_rss_MB=[expr {$kilobytes / 1024}]"
    exit 0
}

set file [open $trace]
while {[gets $file line] >= 0} {
    lassign $line seconds source destination packets
    set sender [new Agent/TCP/Sack1]
    set receiver [new Agent/TCPSink/Sack1]
    $sim attach-agent $host($source) $sender
    $sim attach-agent $host($destination) $receiver
    $sim connect $sender $receiver
    set application [new Application/FTP]
    $application attach-agent $sender
    set number($sender) $started
    $sim at $seconds "$application produce $packets"
    incr started
}
$sim at 10.0 "finish"
$sim run
