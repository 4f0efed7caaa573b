//! The source of the bytes in a buffer: zeros, random data, a pattern, or a mixture of them.

use crate::compress::Compress;
use crate::pattern::Pattern;
use crate::random::Random;
use crate::{Fill, Spec};

/// Fills buffers with bytes, one after the other.
#[derive(Clone, Debug)]
pub struct Source(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Zeros,
    Random(Random),
    Pattern(Pattern),
    /// Random data, and zeros or a pattern.
    Mixture(Random, Compress, Option<Pattern>),
}

impl Source {
    /// The source that `spec.fill` and `spec.compress` describe, with random data from `spec.seed`. Only
    /// [`Content`](crate::Content) uses the rest of the spec.
    pub fn new(spec: &Spec) -> Source {
        let random = || Random::new(spec.seed);
        let pattern = match &spec.fill {
            Fill::Pattern(pieces) => Some(Pattern::new(pieces)),
            Fill::Zeros | Fill::Random => None,
        };
        Source(match (spec.compress.filter(|compress| compress.percentage > 0), pattern) {
            (Some(compress), pattern) if compress.percentage < 100 => {
                Kind::Mixture(random(), compress, pattern)
            }
            (_, Some(pattern)) => Kind::Pattern(pattern),
            (Some(_), None) => Kind::Zeros,
            (None, None) if spec.fill == Fill::Zeros => Kind::Zeros,
            (None, None) => Kind::Random(random()),
        })
    }

    /// Fills a buffer that is written at `offset` of its file. With `has_fixed`, the buffer was filled from this source
    /// before, and all but its random bytes may stay.
    #[inline]
    pub fn fill(&mut self, buffer: &mut [u8], offset: u64, has_fixed: bool) {
        match &mut self.0 {
            Kind::Zeros => buffer.fill(0),
            Kind::Random(random) => random.fill(buffer),
            Kind::Pattern(pattern) => pattern.fill(buffer, offset),
            Kind::Mixture(random, compress, pattern) => {
                compress.fill_random(buffer, random);
                if !has_fixed || pattern.as_ref().is_some_and(Pattern::has_offset) {
                    compress.fill_fixed(buffer, pattern.as_mut(), offset);
                }
            }
        }
    }

    /// Restarts the random data from this seed.
    #[inline]
    pub fn reseed(&mut self, seed: u64) {
        if let Kind::Random(random) | Kind::Mixture(random, ..) = &mut self.0 {
            *random = Random::new(seed);
        }
    }

    /// The 64-bit word at this place (counted in words) in the output of [`fill`](Self::fill) after
    /// [`reseed`](Self::reseed) with this seed. `None` if the output is not entirely random.
    pub fn random_word(&self, seed: u64, place: usize) -> Option<u64> {
        matches!(self.0, Kind::Random(_)).then(|| Random::word(seed, place))
    }

    /// Whether the output depends on a seed.
    pub fn is_random(&self) -> bool {
        matches!(self.0, Kind::Random(_) | Kind::Mixture(..))
    }

    pub(crate) fn is_pattern(&self) -> bool {
        matches!(self.0, Kind::Pattern(_))
    }

    /// Whether a pattern contains the offset of its block.
    pub(crate) fn has_offset(&self) -> bool {
        match &self.0 {
            Kind::Pattern(pattern) | Kind::Mixture(_, _, Some(pattern)) => pattern.has_offset(),
            _ => false,
        }
    }
}
