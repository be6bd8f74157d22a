// SPDX-License-Identifier: GPL-2.0-or-later
//! SplitMix64, the random number generator of a run: the same numbers on every machine and in every
//! version of the crate.

use crate::core::time::Ps;

/// `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014): a counter and a mixer, 2^64 numbers a stream.
#[derive(Debug, Clone)]
pub struct Rng(u64);

/// The increment: 2^64 over the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes 64 bits so that each of them depends on all (variant 13 of Stafford's).
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// Stream `stream` of the run with this seed: streams of one seed start at unrelated places.
    pub fn new(seed: u64, stream: u64) -> Self {
        Rng(mix(seed.wrapping_add(mix(stream.wrapping_add(GOLDEN)))))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n, for n > 0; the bias is below n/2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with this mean, rounded to a whole number. The only operations are IEEE 754's
    /// exact ones and `libm`'s logarithm, which is made of them: the same bits on every machine.
    pub fn exponential(&mut self, mean: f64) -> Ps {
        let positive = ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-libm::log(positive) * mean + 0.5) as Ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // First numbers of SplitMix64 from state 1234567, as its reference code prints them.
        let mut rng = Rng(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
    }

    #[test]
    fn exponential_has_its_moments() {
        let mut rng = Rng::new(1, 2);
        let n = 1_000_000;
        let draws: Vec<f64> = (0..n).map(|_| rng.exponential(1e6) as f64).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let second = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!((mean / 1e6 - 1.0).abs() < 0.003, "{mean}");
        assert!((second / 2e12 - 1.0).abs() < 0.01, "{second}");
    }

    #[test]
    fn exponential_is_pinned() {
        // A change of these is a change of every run with Poisson arrivals. The same come out in
        // Python.
        let mut rng = Rng::new(1, 0);
        let draws: Vec<Ps> = (0..4).map(|_| rng.exponential(1e9)).collect();
        assert_eq!(draws, [4_937_447_957, 1_639_669_525, 858_402_663, 555_383_528]);
    }
}
