//! Why the kernel refused direct I/O, and what to change.

use iolite_host::DirectIo;

/// Whether misalignment is why the kernel refused this I/O, and what to change.
pub fn advice(demands: Option<DirectIo>, offset: u64, length: u64, memory: u64) -> String {
    const ELSE: &str = "use direct=0";
    let multiples = match demands {
        Some(DirectIo::Unsupported) => return format!("the file does not support it; {ELSE}"),
        Some(DirectIo::Aligned { memory, offset }) => Some((memory, offset)),
        None => None,
    };
    let mut found = Vec::new();
    let mut remedies = Vec::new();
    if let Some((of_memory, of_offset)) = multiples {
        let odd_length = !length.is_multiple_of(of_offset);
        if odd_length {
            found.push(format!("the length {length} is not a multiple of {of_offset}"));
            remedies.push("bs");
        }
        // If the length is not a multiple, offsets that are multiples of the length are wrong only for that reason.
        let follows = odd_length && offset.is_multiple_of(length);
        if !offset.is_multiple_of(of_offset) && !follows {
            found.push(format!("the offset {offset} is not a multiple of {of_offset}"));
            remedies.extend(["offset", "ba"]);
        }
        if !memory.is_multiple_of(of_memory) {
            found.push(format!("the buffer is not aligned to {of_memory} bytes"));
            remedies.push("iomem_align");
        }
    }
    if found.is_empty() {
        return format!(
            "its file system or device may not support it, or not with these blocks; change bs, or {ELSE}"
        );
    }
    format!("{}; change {}, or {ELSE}", found.join(", "), remedies.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misaligned_ios_are_reported_with_a_remedy() {
        let told = |offset, length, memory| {
            let alignment = DirectIo::Aligned { memory: 4, offset: 512 };
            advice(Some(alignment), offset, length, memory)
        };
        assert_eq!(
            told(512, 1000, 4),
            "the length 1000 is not a multiple of 512; change bs, or use direct=0"
        );
        assert_eq!(told(3000, 1000, 4), told(0, 1000, 4));
        assert_eq!(
            told(100, 1000, 4),
            "the length 1000 is not a multiple of 512, the offset 100 is not a multiple of 512; change bs, offset, ba, or use direct=0"
        );
        assert_eq!(
            told(100, 512, 4),
            "the offset 100 is not a multiple of 512; change offset, ba, or use direct=0"
        );
        assert_eq!(
            told(0, 100, 6),
            "the length 100 is not a multiple of 512, the buffer is not aligned to 4 bytes; change bs, iomem_align, or use direct=0"
        );
        assert!(told(0, 512, 4).starts_with("its file system or device may not support"));
        assert!(advice(None, 1, 1, 1).starts_with("its file system or device may not support"));
        assert_eq!(
            advice(Some(DirectIo::Unsupported), 0, 512, 0),
            "the file does not support it; use direct=0"
        );
    }
}
