//! The order in which to make runs that will be compared.
//!
//! The state of a machine changes over time: a flash device fills, a processor gets warm, another tenant starts a
//! job. If all runs of one kind came before all runs of another kind, such changes would look like a difference
//! between the kinds. So runs come in rounds. Each round has one run of every kind, in random order. This is a
//! randomised block design (R. A. Fisher, "The Design of Experiments", 1935); for measurements of computers it is
//! known as "randomized multiple interleaved trials" (A. Abedi and T. Brecht, "Conducting Repeatable Experiments in
//! Highly Variable Cloud Computing Environments", ICPE 2017). Rounds spread slow changes evenly over all kinds, and
//! the random order within a round keeps periodic changes from favouring one kind.
//!
//! The order is shuffled with Durstenfeld's algorithm (R. Durstenfeld, Algorithm 235, Communications of the ACM 7,
//! 1964) and random numbers from SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom
//! number generators", OOPSLA 2014), so that a seed gives the same order on every machine.

/// The order of the runs of `things` kinds in `rounds` rounds: the round and the kind of each run, both counted from
/// 0.
pub fn order(things: usize, rounds: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut state = seed;
    let mut runs = Vec::with_capacity(things * rounds);
    for round in 0..rounds {
        let mut these: Vec<usize> = (0..things).collect();
        for last in (1..things).rev() {
            these.swap(last, below(&mut state, last + 1));
        }
        runs.extend(these.into_iter().map(|thing| (round, thing)));
    }
    runs
}

/// A random number below `end`. (The numbers are equally likely up to about 2⁻⁵⁰.)
fn below(state: &mut u64, end: usize) -> usize {
    let product = u128::from(next(state)) * end as u128;
    (product >> 64) as usize
}

/// The next number of SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_round_has_everything_once() {
        for seed in 0..50 {
            let runs = order(4, 7, seed);
            assert_eq!(runs, order(4, 7, seed));
            for (round, these) in runs.chunks(4).enumerate() {
                let mut things: Vec<usize> = these.iter().map(|(_, thing)| *thing).collect();
                assert!(these.iter().all(|(of, _)| *of == round));
                things.sort_unstable();
                assert_eq!(things, [0, 1, 2, 3]);
            }
        }
        assert_eq!(order(1, 3, 9), [(0, 0), (1, 0), (2, 0)]);
        assert_ne!(order(3, 9, 1), order(3, 9, 2));
    }

    /// The reference values of the generator, from its authors' code for seed 1234567.
    #[test]
    fn numbers_are_those_of_the_generator() {
        let mut state = 1_234_567;
        let numbers = [next(&mut state), next(&mut state), next(&mut state)];
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    /// All six orders of three kinds are about equally frequent.
    #[test]
    fn no_order_is_preferred() {
        let mut found: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for these in order(3, 6000, 42).chunks(3) {
            *found.entry(these.iter().map(|(_, thing)| *thing).collect()).or_default() += 1;
        }
        assert_eq!(found.len(), 6);
        // Four standard deviations of the binomial distribution with n = 6000 and p = 1/6.
        assert!(found.values().all(|count| count.abs_diff(1000) < 116), "{found:?}");
    }
}
