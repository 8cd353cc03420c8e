//! EtherPeek's classic format, versions 5, 6 and 7, as it was saved on a Macintosh: big-endian, times counted from
//! 1904. A header of 50 octets, then records: in versions 5 and 6 of 26 octets, in ms since the file's date, and the
//! packet; in version 7 of 16 octets, in us, and the packet padded to an even length.

use wire::link::LinkType;

use super::{IEEE802_5, Step, UNKNOWN_LINK};
use crate::block::{Record, Sink};
use crate::fault::Fault;
use crate::octets::Order;

/// Size of the file's header, in bytes.
pub(crate) const HEADER_LEN: usize = 50;

/// From 1904 to 1970.
const MAC_EPOCH_S: i64 = 2_082_844_800;

const SECOND_NS: i64 = 1_000_000_000;

/// Where things are in the file's header.
mod field {
    pub(super) const DATE: usize = 10;
    pub(super) const MEDIA: usize = 22;
    pub(super) const MEDIUM: usize = 26;
    pub(super) const RESERVED: std::ops::Range<usize> = 38..50;
}

/// An EtherPeek file's header.
pub(crate) struct EtherPeek {
    version: u8,
    /// When the file was made, in seconds since 1970.
    date_s: i64,
    link: LinkType,
}

impl EtherPeek {
    /// Reads the header; `None` when it is none: there is no magic number, but a small version, a zero and reserved
    /// fields.
    pub(crate) fn detect(head: &[u8]) -> Option<Self> {
        let header = head.first_chunk::<HEADER_LEN>()?;
        let [version @ 5..=7, 0, ..] = *header else {
            return None;
        };
        let media = Order::Big.u32(header, field::MEDIA);
        let medium = Order::Big.u32(header, field::MEDIUM);
        let reserved = &header[field::RESERVED];
        if media > 1 || medium > 1 || reserved.iter().any(|&octet| octet != 0) {
            return None;
        }
        Some(EtherPeek {
            version,
            date_s: i64::from(Order::Big.u32(header, field::DATE)) - MAC_EPOCH_S,
            link: match (media, medium) {
                (0, 0) => LinkType::ETHERNET,
                (1, 0) => IEEE802_5,
                _ => UNKNOWN_LINK,
            },
        })
    }

    pub(crate) fn walk(&self, octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
        match self.version {
            7 => self.walk_with(octets, from, sink, Self::version_7),
            _ => self.walk_with(octets, from, sink, Self::version_5),
        }
    }

    fn walk_with<const HEADER: usize>(
        &self,
        octets: &[u8],
        from: usize,
        sink: &mut Sink<'_>,
        fields: fn(&Self, &[u8; HEADER]) -> Fields,
    ) -> Step {
        let mut at = from;
        while let Some(header) = octets[at..].first_chunk::<HEADER>() {
            let fields = fields(self, header);
            // A packet that was not sliced has no slice's length.
            let captured = match fields.sliced {
                0 => fields.length,
                sliced => sliced,
            };
            let start = at + HEADER;
            let pad = usize::from(fields.padded && captured % 2 == 1);
            let end = start + usize::from(captured) + pad;
            if end > octets.len() {
                break;
            }
            if fields.time_ns.is_none() {
                sink.fault(at, Fault::BadTime);
            }
            sink.records.push(Record {
                start: start as u32,
                captured: captured.into(),
                length: fields.length.into(),
                time_ns: fields.time_ns.unwrap_or(i64::MAX),
                link: self.link,
                interface: 0,
                offset: sink.base + at as u64,
            });
            at = end;
        }
        Step::more_from(at)
    }

    fn version_5(&self, header: &[u8; 26]) -> Fields {
        let since_date_ms = i64::from(Order::Big.u32(header, 6));
        Fields {
            length: Order::Big.u16(header, 0),
            sliced: Order::Big.u16(header, 2),
            time_ns: Some(self.date_s * SECOND_NS + since_date_ms * 1_000_000),
            padded: false,
        }
    }

    fn version_7(&self, header: &[u8; 16]) -> Fields {
        let since_1904_us = i128::from(Order::Big.u64_of_words(header, 8));
        let time_ns = since_1904_us * 1000 - i128::from(MAC_EPOCH_S * SECOND_NS);
        Fields {
            length: Order::Big.u16(header, 2),
            sliced: Order::Big.u16(header, 4),
            time_ns: time_ns.try_into().ok(),
            padded: true,
        }
    }
}

/// The fields of a record's header.
struct Fields {
    length: u16,
    sliced: u16,
    /// Time since 1970; `None` if it is too large for its type.
    time_ns: Option<i64>,
    padded: bool,
}
