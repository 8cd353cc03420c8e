//! The formats: detecting each, and finding its records.

mod erf;
mod etherpeek;
mod pcap;
mod pcapng;
mod snoop;
mod tsh;

use std::fmt;

use wire::link::LinkType;

use crate::block::Sink;
use crate::fault::OpenError;

pub(crate) use pcap::{HEADER_LEN as PCAP_HEADER_LEN, MAGIC_MICROS, MAGIC_NANOS};
pub use pcapng::Statistics;

/// Format of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// libpcap's format, in either byte order, in us or ns.
    Pcap,
    /// The successor of pcap: blocks, with several interfaces and sections.
    PcapNg,
    /// Solaris's format (RFC 1761).
    Snoop,
    /// Endace's extensible record format.
    Erf,
    /// NLANR's time sequenced headers.
    Tsh,
    /// EtherPeek's classic format.
    EtherPeek,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Pcap => "pcap",
            Format::PcapNg => "pcapng",
            Format::Snoop => "snoop",
            Format::Erf => "ERF",
            Format::Tsh => "TSH",
            Format::EtherPeek => "EtherPeek",
        })
    }
}

/// The link type of packets on a link without a LINKTYPE number.
pub const UNKNOWN_LINK: LinkType = LinkType(u16::MAX);

/// Token Ring (IEEE 802.5).
const IEEE802_5: LinkType = LinkType(6);

/// The longest packet that is accepted, unless the file announces longer ones. It is libpcap's limit, too.
const PACKET_MAX: u32 = 262_144;

/// Bytes used to detect formats without a magic number, if the file has that many.
pub(crate) const HEAD_LEN: usize = 4096;

/// Bytes used to detect formats with a magic number, including the file header.
pub(crate) const MAGIC_LEN: usize = 24;

/// The progress of a search for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Offset of the first byte that has not been processed.
    pub(crate) used: usize,
    /// Whether the rest of the file cannot be read.
    pub(crate) ended: bool,
}

impl Step {
    fn more_from(used: usize) -> Step {
        let ended = false;
        Step { used, ended }
    }

    fn ended_at(used: usize) -> Step {
        let ended = true;
        Step { used, ended }
    }
}

/// The result of a search for the next record after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It begins at this offset.
    At(usize),
    /// It does not begin before this offset. More bytes are needed.
    NotBefore(usize),
    /// There is none.
    Nothing,
}

/// Whether a record may begin at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chain {
    /// It and the records after it are plausible.
    Whole,
    Broken,
    /// More bytes are needed to tell.
    Unknown,
}

/// Records in a row that must be plausible before the reading resumes there. Fewer if the file ends.
pub(crate) const CHAIN: usize = 3;

/// Finds the first place from `from` on that `chain` finds plausible.
pub(crate) fn search(
    octets: &[u8],
    from: usize,
    drained: bool,
    mut chain: impl FnMut(usize) -> Chain,
) -> Found {
    for at in from..octets.len() {
        match chain(at) {
            Chain::Whole => return Found::At(at),
            Chain::Unknown if !drained => return Found::NotBefore(at),
            Chain::Unknown | Chain::Broken => {}
        }
    }
    match drained {
        true => Found::Nothing,
        false => Found::NotBefore(octets.len()),
    }
}

/// Finds the records of a file of one format.
pub(crate) enum Walker {
    Pcap(pcap::Pcap),
    PcapNg(pcapng::PcapNg),
    Snoop(snoop::Snoop),
    Erf,
    Tsh,
    EtherPeek(etherpeek::EtherPeek),
}

impl Walker {
    /// Whether the first bytes are a known magic number, so that no more bytes are needed.
    pub(crate) fn has_magic(head: &[u8]) -> bool {
        pcap::Pcap::is_magic(head) || pcapng::is_magic(head) || snoop::is_magic(head)
    }

    /// Detects the format by the first bytes, and the length of the file header.
    pub(crate) fn detect(head: &[u8]) -> Result<(Walker, usize), OpenError> {
        if pcap::Pcap::is_magic(head) {
            return Ok((Walker::Pcap(pcap::Pcap::new(head)?), pcap::HEADER_LEN));
        }
        if pcapng::is_magic(head) {
            return Ok((Walker::PcapNg(pcapng::PcapNg::new(head)?), 0));
        }
        if snoop::is_magic(head) {
            return Ok((Walker::Snoop(snoop::Snoop::new(head)?), snoop::HEADER_LEN));
        }
        if let Some(walker) = etherpeek::EtherPeek::detect(head) {
            return Ok((Walker::EtherPeek(walker), etherpeek::HEADER_LEN));
        }
        if erf::plausible(head) {
            return Ok((Walker::Erf, 0));
        }
        if tsh::plausible(head) {
            return Ok((Walker::Tsh, 0));
        }
        Err(OpenError::UnknownFormat)
    }

    pub(crate) fn format(&self) -> Format {
        match self {
            Walker::Pcap(_) => Format::Pcap,
            Walker::PcapNg(_) => Format::PcapNg,
            Walker::Snoop(_) => Format::Snoop,
            Walker::Erf => Format::Erf,
            Walker::Tsh => Format::Tsh,
            Walker::EtherPeek(_) => Format::EtherPeek,
        }
    }

    /// Finds the complete records from `from` on.
    pub(crate) fn walk(&mut self, octets: &[u8], from: usize, sink: &mut Sink<'_>) -> Step {
        match self {
            Walker::Pcap(walker) => walker.walk(octets, from, sink),
            Walker::PcapNg(walker) => walker.walk(octets, from, sink),
            Walker::Snoop(walker) => walker.walk(octets, from, sink),
            Walker::Erf => erf::walk(octets, from, sink),
            Walker::Tsh => tsh::walk(octets, from, sink),
            Walker::EtherPeek(walker) => walker.walk(octets, from, sink),
        }
    }

    /// Whether [`Walker::find`] can find the record after a fault.
    pub(crate) fn can_find(&self) -> bool {
        matches!(self, Walker::Pcap(_) | Walker::PcapNg(_))
    }

    /// After a fault: finds the next record from `from` on. `drained` means that no more bytes follow.
    pub(crate) fn find(&mut self, octets: &[u8], from: usize, drained: bool) -> Found {
        match self {
            Walker::Pcap(walker) => walker.find(octets, from, drained),
            Walker::PcapNg(walker) => walker.find(octets, from, drained),
            _ => Found::Nothing,
        }
    }

    /// The walker of a pcapng file.
    pub(crate) fn pcapng(&mut self) -> Option<&mut pcapng::PcapNg> {
        match self {
            Walker::PcapNg(walker) => Some(walker),
            _ => None,
        }
    }

    /// What the capture counted.
    pub(crate) fn statistics(&self) -> Statistics {
        match self {
            Walker::PcapNg(walker) => walker.statistics(),
            _ => Statistics::default(),
        }
    }

    /// Start of a record that is being skipped and has not ended yet.
    pub(crate) fn unfinished(&self) -> Option<u64> {
        match self {
            Walker::PcapNg(walker) => walker.unfinished(),
            _ => None,
        }
    }
}
