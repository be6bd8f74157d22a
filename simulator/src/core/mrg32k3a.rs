// SPDX-License-Identifier: GPL-2.0-or-later
//! MRG32k3a, the random number generator of ns-2, for traffic that was published as an ns-2 script.

/// `MRG32k3a` (L'Ecuyer, Operations Research 47, 1999): two recurrences of order three, combined.
///
/// `x[n] = (1403580 x[n-2] - 810728 x[n-3]) mod (2^32 - 209)`, `y[n] = (527612 y[n-1] - 1370589
/// y[n-3]) mod (2^32 - 22853)`.
#[derive(Debug, Clone)]
pub struct Mrg32k3a {
    x: [u64; 3],
    y: [u64; 3],
}

const M1: u64 = (1 << 32) - 209;
const M2: u64 = (1 << 32) - 22_853;

impl Mrg32k3a {
    /// As ns-2's `seed` command starts it: all six numbers of the state are the seed. Neighbouring
    /// seeds have nearly equal first draws, for these are linear in the seed.
    pub fn new(seed: u32) -> Self {
        Mrg32k3a { x: [u64::from(seed); 3], y: [u64::from(seed); 3] }
    }

    /// Uniform in (0, 1): at least 1/(2^32 - 208), and below 1 by as much.
    pub fn unit(&mut self) -> f64 {
        let x = (1_403_580 * self.x[1] + (M1 - self.x[0]) * 810_728) % M1;
        let y = (527_612 * self.y[2] + (M2 - self.y[0]) * 1_370_589) % M2;
        self.x = [self.x[1], self.x[2], x];
        self.y = [self.y[1], self.y[2], y];
        let difference = if x > y { x - y } else { x + M1 - y };
        // The published constant, 1/(m1 + 1) in so many digits.
        difference as f64 * 2.328_306_549_295_728e-10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draws_are_those_of_ns_2() {
        // What ns-2.35 prints for `bench/ns2/draws.tcl`: draws times 2^31, rounded down.
        let known = [
            (1, [729_236, 1_193_744_747, 30_504_276, 189_241_995]),
            (2, [1_447_151, 240_005_848, 60_997_230, 378_472_669]),
            (17, [12_215_869, 966_228_631, 518_436_836, 1_069_494_414]),
            (1_244, [893_097_003, 1_101_016_110, 1_429_851_519, 1_330_829_534]),
            (4_369, [989_096_276, 1_358_542_377, 93_216_466, 2_127_682_663]),
            (180_000, [376_005_000, 230_429_436, 318_867_675, 801_413_779]),
        ];
        for (seed, draws) in known {
            let mut rng = Mrg32k3a::new(seed);
            assert_eq!(
                draws,
                [(); 4].map(|()| (rng.unit() * (1u64 << 31) as f64) as u64),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn it_is_even() {
        let mut rng = Mrg32k3a::new(12_345);
        let mut counts = [0u32; 16];
        for _ in 0..160_000 {
            counts[(rng.unit() * 16.0) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 500), "{counts:?}");
    }
}
