// SPDX-License-Identifier: GPL-2.0-or-later
//! Packet queues that need no memory of their own: an XOR-linked list through the packet pool.

use crate::packet::Pool;

/// No packet; a packet is its handle plus one.
const NONE: u32 = 0;

/// A doubly ended list of waiting packets. The pool stores one number for each packet: the previous
/// packet xor the next one. A port has nine such lists, and a large network tens of thousands of
/// ports: eight bytes a list stay in the processor's caches, where a vector's 32 bytes and its heap
/// would not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    #[inline]
    pub fn is_empty(self) -> bool {
        self.first == NONE
    }

    #[inline]
    pub fn first(self) -> Option<u32> {
        self.first.checked_sub(1)
    }

    #[inline]
    pub fn push(&mut self, handle: u32, pool: &mut Pool) {
        let new = handle + 1;
        *pool.beside(new) = self.last;
        *pool.beside(self.last) ^= new;
        self.first = if self.last == NONE { new } else { self.first };
        self.last = new;
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        take(&mut self.first, &mut self.last, pool)
    }

    /// Takes the last.
    pub fn pop_last(&mut self, pool: &mut Pool) -> Option<u32> {
        take(&mut self.last, &mut self.first, pool)
    }

    /// From the first to the last.
    pub fn iter(self, pool: &Pool) -> impl Iterator<Item = u32> + '_ {
        let (mut before, mut at) = (NONE, self.first);
        std::iter::from_fn(move || {
            let handle = at.checked_sub(1)?;
            (before, at) = (at, pool.besides(at) ^ before);
            Some(handle)
        })
    }
}

/// Takes the packet at one end.
#[inline]
fn take(end: &mut u32, other: &mut u32, pool: &mut Pool) -> Option<u32> {
    let handle = end.checked_sub(1)?;
    let next = *pool.beside(*end);
    *pool.beside(next) ^= *end;
    *other = if next == NONE { NONE } else { *other };
    *end = next;
    Some(handle)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::core::rng::Rng;
    use crate::packet::Packet;

    /// Beside vectors: three chains whose packets lie in the pool as they come.
    #[test]
    fn a_chain_is_a_line_with_two_ends() {
        let (mut pool, mut rng) = (Pool::default(), Rng::new(3, 0));
        let mut chains = [Chain::default(); 3];
        let mut model: [VecDeque<u32>; 3] = Default::default();
        for round in 0..30_000 {
            let of = rng.below(3) as usize;
            let (chain, line) = (&mut chains[of], &mut model[of]);
            let push = rng.below(100) < if round % 5_000 < 2_500 { 60 } else { 40 };
            let taken = if push {
                let handle = pool.add(Packet::datagram(0, 0, 0, 1500));
                chain.push(handle, &mut pool);
                line.push_back(handle);
                None
            } else if rng.below(2) == 0 {
                let taken = chain.pop(&mut pool);
                assert_eq!(taken, line.pop_front());
                taken
            } else {
                let taken = chain.pop_last(&mut pool);
                assert_eq!(taken, line.pop_back());
                taken
            };
            if let Some(handle) = taken {
                pool.remove(handle);
            }
            assert_eq!(chain.is_empty(), line.is_empty());
            if round % 100 == 0 {
                assert!(chain.iter(&pool).eq(line.iter().copied()), "round {round}");
            }
        }
    }
}
