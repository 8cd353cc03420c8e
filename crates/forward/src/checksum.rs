//! Updates an Internet checksum after a change of one word, without reading the packet again (RFC 1624).

/// The checksum of a header or segment whose checksum was `checksum` and one of whose words was changed from `old` to
/// `new` (RFC 1624 section 3, equation 3). The word must be at an even offset. A wrong checksum stays wrong.
#[inline]
#[must_use]
pub fn changed(checksum: u16, old: u16, new: u16) -> u16 {
    let total = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let total = (total >> 16) + (total & 0xffff);
    !((total >> 16) + total) as u16
}

#[cfg(test)]
mod tests {
    use super::changed;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1624_section_4_gives_zero_and_not_its_negative() {
        assert_eq!(changed(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn a_changed_word_gives_the_checksum_of_the_whole(
            mut words in prop::collection::vec(any::<[u8; 2]>(), 1..40),
            place: prop::sample::Index,
            new: [u8; 2],
        ) {
            // A header or a segment with its pseudo header is never all zeros, the one case with two checksums.
            words.push([0x45, 0]);
            let full = |words: &[[u8; 2]]| !wire::checksum::sum(words.as_flattened());
            let before = full(&words);
            let at = place.index(words.len() - 1);
            let old = std::mem::replace(&mut words[at], new);
            let after = changed(before, u16::from_be_bytes(old), u16::from_be_bytes(new));
            prop_assert_eq!(after, full(&words));
        }
    }
}
