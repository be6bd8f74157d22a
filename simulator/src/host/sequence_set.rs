// SPDX-License-Identifier: GPL-2.0-or-later
//! A set of packet numbers within one window: a ring of bits.

/// A set of packet numbers within one window of each other.
#[derive(Debug, Clone)]
pub(crate) struct SequenceSet {
    words: Box<[u64]>,
    held: u32,
}

impl SequenceSet {
    /// For numbers that differ by at most `span`.
    pub fn new(span: u32) -> Self {
        let bits = (span + 1).next_power_of_two().max(64);
        SequenceSet { words: vec![0; bits as usize / 64].into(), held: 0 }
    }

    pub fn len(&self) -> u32 {
        self.held
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    fn place(&self, number: u32) -> (usize, u64) {
        let word = (number / 64) as usize & (self.words.len() - 1);
        (word, 1 << (number % 64))
    }

    pub fn contains(&self, number: u32) -> bool {
        let (word, bit) = self.place(number);
        self.words[word] & bit != 0
    }

    /// Adds a number; false if it was present.
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = self.place(number);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.held += u32::from(new);
        new
    }

    /// Removes all numbers.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.held = 0;
    }

    /// Removes a number; false if it was absent.
    pub fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = self.place(number);
        let there = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        self.held -= u32::from(there);
        there
    }
}
