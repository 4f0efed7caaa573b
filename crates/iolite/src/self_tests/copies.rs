//! `--memcpytest`: the speed of copying memory, by the size of a copy.

use super::{Write, black_box, chosen, speed};

/// A way to copy.
type Copy = fn(&mut [u8], &[u8]);

const WAYS: &[(&str, Copy)] =
    &[("memcpy", memcpy), ("memmove", memmove), ("simple", simple), ("hybrid", hybrid)];

/// The sizes that are measured.
const SIZES: [usize; 11] = [8, 16, 96, 128, 256, 512, 2048, 8192, 131_072, 262_144, 524_288];

/// The table.
pub fn measure(names: &[String]) -> Result<String, String> {
    let source: Vec<u8> = (0..SIZES[SIZES.len() - 1]).map(|byte| byte as u8).collect();
    let mut target = vec![0; source.len()];
    let mut text = String::new();
    for (name, copy) in chosen("--memcpytest", WAYS, names)? {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name}");
        for size in SIZES {
            let rate = speed(size, || copy(black_box(&mut target[..size]), black_box(&source[..size])));
            let _ = writeln!(text, "\t{size} bytes:\t{rate:8.2} MiB/sec");
        }
    }
    Ok(text)
}

fn memcpy(target: &mut [u8], source: &[u8]) {
    target.copy_from_slice(source);
}

/// The copy for overlapping memory; here it does not overlap.
fn memmove(target: &mut [u8], source: &[u8]) {
    let length = target.len().min(source.len());
    // SAFETY: both are valid for this length, whatever their distance.
    unsafe { std::ptr::copy(source.as_ptr(), target.as_mut_ptr(), length) };
}

/// Byte by byte, in a naive loop: the copies are hidden from the optimiser.
fn simple(target: &mut [u8], source: &[u8]) {
    for (to, from) in target.iter_mut().zip(source) {
        *to = black_box(*from);
    }
}

/// Byte by byte for short copies, the library's function for long ones.
fn hybrid(target: &mut [u8], source: &[u8]) {
    /// From this size on, the call pays off.
    const LONG: usize = 64;
    if target.len() < LONG { simple(target, source) } else { memcpy(target, source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_copies() {
        let source: Vec<u8> = (0..200).collect();
        for (name, copy) in WAYS {
            for size in [0, 8, 63, 64, 200] {
                let mut target = vec![0xff; size];
                copy(&mut target, &source[..size]);
                assert_eq!(target, source[..size], "{name} {size}");
            }
        }
        let unknown = measure(&["nope".into()]).unwrap_err();
        assert!(unknown.contains("nope") && unknown.contains("memmove"), "{unknown}");
    }
}
