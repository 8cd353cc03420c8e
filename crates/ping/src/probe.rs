//! The contents of our packets, by which replies are recognised.
//!
//! An echo request's data starts with a tag if there is room: 8 bytes, or 16 with the packet's number. A UDP probe
//! starts with a header of 48 bytes. The rest counts up byte by byte, as ping's does. All fields are in network byte
//! order.
//!
//! The tag of an echo request:
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | the experiment's nonce, chosen at random |
//! | 4-7 | the stream's number |
//! | 8-15 | the packet's number, from 1; only with 16 bytes or more of data |
//!
//! A UDP probe, and its reply of the same length:
//!
//! | bytes | what | in a request | in a reply |
//! |---|---|---|---|
//! | 0-3 | magic, `hPng` | | |
//! | 4 | version, 1 | | |
//! | 5 | kind | 1 | 2 |
//! | 6-7 | reserved | 0 | 0 |
//! | 8-15 | the stream's nonce, chosen at random | | as it came |
//! | 16-23 | the packet's number, from 1 | | as it came |
//! | 24-31 | arrival at the responder, nanoseconds since 1970 | 0 | set |
//! | 32-39 | departure from there, likewise | 0 | set |
//! | 40-43 | packets of this stream received there, this one included; 0 unknown | 0 | set |
//! | 44-47 | the stream's number | | as it came |
//!
//! A host that does not see the requests cannot forge a reply: it would have to guess the nonce.

/// The fewest bytes of a UDP probe.
pub const UDP_MIN: u16 = 48;

/// Bytes of the tag, without and with the packet's number.
const TAG: usize = 8;
const TAG_NUMBERED: usize = 16;

const MAGIC: [u8; 4] = *b"hPng";
const VERSION: u8 = 1;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// The tag in an echo message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The experiment's nonce.
    pub nonce: u32,
    /// The stream.
    pub stream: u32,
    /// The packet's number, where there is room.
    pub sequence: Option<u64>,
}

impl Tag {
    /// Whether `size` bytes of data have room for a tag.
    #[must_use]
    pub fn fits(size: u16) -> bool {
        usize::from(size) >= TAG
    }

    /// Appends `size` bytes of data: the tag as far as it fits, then a pattern.
    pub fn emit(nonce: u32, stream: u32, sequence: u64, size: u16, out: &mut Vec<u8>) {
        let start = out.len();
        let size = usize::from(size);
        if size >= TAG {
            out.extend_from_slice(&nonce.to_be_bytes());
            out.extend_from_slice(&stream.to_be_bytes());
        }
        if size >= TAG_NUMBERED {
            out.extend_from_slice(&sequence.to_be_bytes());
        }
        fill(start, size, out);
    }

    /// Reads the tag; `None` if there is no room for one.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Tag> {
        let (nonce, rest) = data.split_first_chunk()?;
        let (stream, rest) = rest.split_first_chunk()?;
        Some(Tag {
            nonce: u32::from_be_bytes(*nonce),
            stream: u32::from_be_bytes(*stream),
            sequence: rest.first_chunk().map(|octets| u64::from_be_bytes(*octets)),
        })
    }
}

/// A UDP probe or its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The stream's nonce.
    pub nonce: u64,
    /// The packet's number.
    pub sequence: u64,
    /// The stream's number.
    pub stream: u32,
    /// The responder's fields; `None` in a request.
    pub reply: Option<Stamps>,
}

/// The fields that a responder adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// Arrival at the responder, in nanoseconds since 1970 by its clock.
    pub arrived_ns: u64,
    /// Departure from the responder, by the same clock.
    pub departed_ns: u64,
    /// Packets of this stream received; 0 if the responder does not know.
    pub count: u32,
}

impl Probe {
    /// Appends a request of `size` bytes, at least [`UDP_MIN`].
    pub fn emit(&self, size: u16, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        let kind = if self.reply.is_some() { REPLY } else { REQUEST };
        out.extend_from_slice(&[VERSION, kind, 0, 0]);
        out.extend_from_slice(&self.nonce.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        let stamps = self.reply.unwrap_or(Stamps {
            arrived_ns: 0,
            departed_ns: 0,
            count: 0,
        });
        out.extend_from_slice(&stamps.arrived_ns.to_be_bytes());
        out.extend_from_slice(&stamps.departed_ns.to_be_bytes());
        out.extend_from_slice(&stamps.count.to_be_bytes());
        out.extend_from_slice(&self.stream.to_be_bytes());
        fill(start, usize::from(size), out);
    }

    /// Reads a probe; `None` if it is no probe of this version.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Probe> {
        let head: &[u8; UDP_MIN as usize] = octets.first_chunk()?;
        if head[..4] != MAGIC || head[4] != VERSION {
            return None;
        }
        let long = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| head[at + i]));
        let short = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| head[at + i]));
        let stamps = Stamps {
            arrived_ns: long(24),
            departed_ns: long(32),
            count: short(40),
        };
        let reply = match head[5] {
            REQUEST => None,
            REPLY => Some(stamps),
            _ => return None,
        };
        Some(Probe {
            nonce: long(8),
            sequence: long(16),
            stream: short(44),
            reply,
        })
    }
}

fn fill(start: usize, size: usize, out: &mut Vec<u8>) {
    let from = out.len() - start;
    out.extend((from..size).map(|place| place as u8));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tag_is_cut_to_the_room_there_is() {
        for size in [0, 7, 8, 15, 16, 56, 1_400] {
            let mut out = vec![9];
            Tag::emit(1, 2, 3, size, &mut out);
            assert_eq!(out.len(), 1 + usize::from(size));
            let sequence = (size >= 16).then_some(3);
            let tag = Tag {
                nonce: 1,
                stream: 2,
                sequence,
            };
            let expected = Tag::fits(size).then_some(tag);
            assert_eq!(Tag::parse(&out[1..]), expected);
        }
        let mut out = Vec::new();
        Tag::emit(0, 0, 0, 20, &mut out);
        assert_eq!(out[16..], [16, 17, 18, 19], "ping's pattern");
    }

    #[test]
    fn a_probe_is_laid_out_as_documented() {
        let probe = Probe {
            nonce: 0x0102_0304_0506_0708,
            sequence: 9,
            stream: 10,
            reply: None,
        };
        let mut out = Vec::new();
        probe.emit(49, &mut out);
        assert_eq!(out[..8], *b"hPng\x01\x01\x00\x00");
        assert_eq!(out[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((out[23], out[47], out[48], out.len()), (9, 10, 48, 49));
        assert_eq!(out[24..44], [0; 20]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            nonce: u64, sequence: u64, stream: u32,
            stamps in prop::option::of((any::<u64>(), any::<u64>(), any::<u32>())),
            size in UDP_MIN..2_000,
        ) {
            let reply = stamps.map(|(arrived_ns, departed_ns, count)| Stamps {
                arrived_ns, departed_ns, count,
            });
            let probe = Probe { nonce, sequence, stream, reply };
            let mut out = Vec::new();
            probe.emit(size, &mut out);
            prop_assert_eq!(out.len(), usize::from(size));
            prop_assert_eq!(Probe::parse(&out), Some(probe));
        }

        #[test]
        fn no_bytes_make_it_panic(octets: Vec<u8>) {
            let _ = (Tag::parse(&octets), Probe::parse(&octets));
        }
    }
}
