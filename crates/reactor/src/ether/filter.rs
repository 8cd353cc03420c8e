//! The filter of an [`super::EtherSocket`], as a classic BPF program (Linux's `filter.rst`).

use crate::sys::socket::Instruction;

use super::Spread;

/// Load 32 or 16 bits, or a byte, at an offset of the frame; the remainder of a division; compare; return.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_OCTET: u16 = 0x30;
const REMAINDER: u16 = 0x94;
const EQUAL: u16 = 0x15;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// EtherTypes of VLAN tags: 802.1Q, 802.1ad, and two that were used before 802.1ad.
const TAGS: [u32; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

/// Most EtherTypes that a program can compare within the reach of a jump.
const TYPES_MAX: usize = 16;

/// Instructions that decide by the part of a spread type.
const SPREAD: usize = 5;

/// Accepts frames of these EtherTypes to `mac` or to a group, or to any destination without `mac`, with up to two VLAN
/// tags in the frame. The kernel has removed a third, outermost one.
pub(super) fn program(
    mac: Option<[u8; 6]>,
    types: &[u16],
    spread: Option<Spread>,
) -> Vec<Instruction> {
    let types = &types[..types.len().min(TYPES_MAX)];
    let mut program = mac.map_or_else(Vec::new, to);
    for at in [12, 16, 20] {
        depth(&mut program, at, types, spread);
    }
    program
}

/// Rejects frames that are neither to a group nor to this address.
fn to([a, b, c, d, e, f]: [u8; 6]) -> Vec<Instruction> {
    let (high, low) = (
        u32::from_be_bytes([a, b, c, d]),
        u32::from(u16::from_be_bytes([e, f])),
    );
    vec![
        (LOAD_OCTET, 0, 0, 0),
        (ANY_BIT, 5, 0, 1),
        (LOAD_WORD, 0, 0, 0),
        (EQUAL, 0, 2, high),
        (LOAD_HALF, 0, 0, 4),
        (EQUAL, 1, 0, low),
        (RETURN, 0, 0, 0),
    ]
}

/// Decides by the EtherType at `at`. The order of the instructions: load, types, tags, reject, accept, spread. A tag
/// leads to the first instruction behind all of these, where the next depth starts.
fn depth(program: &mut Vec<Instruction>, at: u32, types: &[u16], spread: Option<Spread>) {
    program.push((LOAD_HALF, 0, 0, at));
    let tags = if at < 20 { TAGS.len() } else { 0 };
    let block = if spread.is_some() { SPREAD } else { 0 };
    for (n, &kind) in types.iter().enumerate() {
        let reject = types.len() - n - 1 + tags;
        // Types that are not spread belong to the first part.
        let to = match spread {
            Some(spread) if spread.kind == kind => reject + 2,
            Some(spread) if spread.part != 0 => reject,
            Some(_) | None => reject + 1,
        };
        program.push((EQUAL, to as u8, 0, u32::from(kind)));
    }
    for (n, tag) in TAGS.iter().take(tags).enumerate() {
        let next = tags - n - 1 + 2 + block;
        program.push((EQUAL, next as u8, 0, *tag));
    }
    program.extend([(RETURN, 0, 0, 0), (RETURN, 0, 0, u32::MAX)]);
    if let Some(spread) = spread {
        let Spread {
            offset,
            parts,
            part,
            ..
        } = spread;
        program.extend([
            (LOAD_HALF, 0, 0, at + 2 + u32::from(offset)),
            (REMAINDER, 0, 0, u32::from(parts.max(1))),
            (EQUAL, 0, 1, u32::from(part)),
            (RETURN, 0, 0, u32::MAX),
            (RETURN, 0, 0, 0),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel does: a load beyond the frame rejects it.
    fn passes(program: &[Instruction], frame: &[u8]) -> bool {
        let (mut at, mut a) = (0_usize, 0_u32);
        loop {
            let (code, yes, no, k) = program[at];
            at += 1;
            let start = k as usize;
            let load = |length: usize| {
                let bytes = frame.get(start..start + length)?;
                Some(
                    bytes
                        .iter()
                        .fold(0, |sum, &byte| sum << 8 | u32::from(byte)),
                )
            };
            let loaded = match code {
                LOAD_OCTET => load(1),
                LOAD_HALF => load(2),
                LOAD_WORD => load(4),
                REMAINDER => Some(a % k),
                EQUAL | ANY_BIT => {
                    let is_true = if code == EQUAL { a == k } else { a & k != 0 };
                    at += usize::from(if is_true { yes } else { no });
                    continue;
                }
                RETURN => return k != 0,
                _ => panic!("unknown instruction {code:#x}"),
            };
            match loaded {
                Some(value) => a = value,
                None => return false,
            }
        }
    }

    #[test]
    fn frames_pass_by_destination_and_type_under_up_to_two_tags() {
        let mac = [2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee];
        let program = program(Some(mac), &[0x8863, 0x8864], None);
        let any = super::program(None, &[0x8863, 0x8864], None);
        let other = [2, 0xaa, 0xbb, 0xcc, 0xdd, 0xef];
        let near = [3, 0, 0, 0, 0, 1];
        for (to, is_ours) in [(mac, true), ([0xff; 6], true), (near, true), (other, false)] {
            for tags in 0..4 {
                for (kind, is_wanted) in [(0x8863_u16, true), (0x8864, true), (0x0800, false)] {
                    let mut frame = to.to_vec();
                    frame.extend([2, 0, 0, 0, 0, 9]);
                    for tag in [0x88a8_u16, 0x8100, 0x9100].iter().take(tags) {
                        frame.extend(tag.to_be_bytes());
                        frame.extend([0, 7]);
                    }
                    frame.extend(kind.to_be_bytes());
                    frame.extend([0x11, 9, 0, 0, 0, 0]);
                    let expected = is_ours && is_wanted && tags < 3;
                    assert_eq!(
                        passes(&program, &frame),
                        expected,
                        "{to:x?} {tags} {kind:x}"
                    );
                    assert_eq!(passes(&any, &frame), is_wanted && tags < 3);
                    assert!(!passes(&program, &frame[..13]), "a short frame");
                }
            }
        }
    }

    #[test]
    fn frames_of_a_spread_type_pass_in_one_part_and_others_in_the_first() {
        let mac = [2, 0, 0, 0, 0, 7];
        for tags in 0..3 {
            for id in [0_u16, 1, 2, 3, 4, 65_535] {
                for (kind, is_spread) in [(0x8863_u16, false), (0x8864, true)] {
                    let mut frame = mac.to_vec();
                    frame.extend([2, 0, 0, 0, 0, 9]);
                    for _ in 0..tags {
                        frame.extend([0x81, 0, 0, 7]);
                    }
                    frame.extend(kind.to_be_bytes());
                    frame.extend([0x11, 0]);
                    frame.extend(id.to_be_bytes());
                    let passed: Vec<u16> = (0..3)
                        .filter(|&part| {
                            let spread = Spread {
                                kind: 0x8864,
                                offset: 2,
                                parts: 3,
                                part,
                            };
                            passes(&program(Some(mac), &[0x8863, 0x8864], Some(spread)), &frame)
                        })
                        .collect();
                    let expected = if is_spread { id % 3 } else { 0 };
                    assert_eq!(passed, [expected], "{tags} {id} {kind:x}");
                }
            }
        }
    }
}
