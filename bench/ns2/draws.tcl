# SPDX-License-Identifier: GPL-2.0-or-later
# What ns-2.35 draws: the oracle of the tests of `simulator/src/core/mrg.rs` and `simulator/tests/published.rs`.
#
#   ns draws.tcl                   the first draws of some seeds, times 2^31
#   ns draws.tcl GAP COUNT SIZES   the first COUNT flows of every pair of twelve hosts, in the order of their start: seconds, source,
#                                  destination, packets; a pair has one every GAP seconds on average, with sizes of the table SIZES

proc first_draws {} {
    foreach seed {1 2 17 1244 4369 180000} {
        set generator [new RNG]
        $generator seed $seed
        puts "$seed [lmap _ {1 2 3 4} {$generator next-random}]"
    }
}

proc variable_of {class seed} {
    set generator [new RNG]
    $generator seed $seed
    set variable [new RandomVariable/$class]
    $variable use-rng $generator
    return $variable
}

proc flows {gap count table} {
    for {set destination 0} {$destination < 12} {incr destination} {
        for {set source 0} {$source < 12} {incr source} {
            if {$source == $destination} continue
            set gaps [variable_of Exponential [expr {17 * $source + 1244 * $destination}]]
            $gaps set avg_ $gap
            set sizes [variable_of Empirical [expr {33 * $source + 4369 * $destination}]]
            $sizes set interpolation_ 2
            $sizes loadCDF $table
            set start 1.0
            for {set flow 0} {$flow < $count} {incr flow} {
                set start [expr {$start + [$gaps value]}]
                lappend found [list $start $source $destination [expr {int([$sizes value])}]]
            }
        }
    }
    foreach flow [lrange [lsort -real -index 0 $found] 0 [expr {$count - 1}]] {
        lassign $flow start source destination packets
        puts "[format %.12f [expr {$start - 1.0}]] $source $destination $packets"
    }
}

if {$argc} { flows {*}$argv } else { first_draws }
