//! Reads and writes capture files: pcap, pcapng, snoop, ERF, TSH and EtherPeek, and MRT files of BGP routes and
//! messages ([`mrt`]). They may be compressed with gzip, zstd, bzip2, xz or lz4.
//!
//! [`Reader`] detects compression and format by content. It returns the packets of a file in [`Block`]s, each about 512
//! KiB of the file and the [`Record`]s in it, without an allocation or a copy per packet. A faulty file causes no panic
//! and no allocation of memory that it only claims to need: [`Faults`] counts the faults and has the place of the
//! first. After a fault in a pcap or pcapng file, it looks for the next record ([`Reader::set_resync`]). [`PcapWriter`] writes pcap, and [`PcapngWriter`] pcapng.
//!
//! Sources:
//! - pcap and pcapng: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and what libpcap does with files older than
//!   these; link types by their LINKTYPE numbers (tcpdump.org/linktypes.html).
//! - snoop: RFC 1761. ERF: Endace's *ERF types* reference. TSH: NLANR's time sequenced headers, 44 octets a packet.
//!   EtherPeek: the classic format, versions 5 to 7.
//! - gzip: RFC 1951 and 1952. zstd: RFC 8878. bzip2 and xz: the formats of their own libraries. lz4: the LZ4 frame
//!   format.
//! - MRT: RFC 6396 and 8050.
//!
//! Left out: pcapng's name resolution and decryption blocks, and all options but those of time and of what the capture
//! dropped (skipped by length); snoop of versions other than 2; ERF's meta-data; file formats that only tcptrace reads (NetMetrix,
//! NetScout, ns); lz4 and the like (named in the error).
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod block;
mod fault;
mod format;
pub mod mrt;
mod octets;
mod pcapng_writer;
mod reader;
mod source;
mod writer;

pub use block::{Block, Record};
pub use fault::{Effect, Fault, Faults, Gap, OpenError};
pub use format::{Format, Statistics, UNKNOWN_LINK};
pub use pcapng_writer::{PcapngWriter, Way};
pub use reader::{Division, Reader, find_block, first_time};
pub use source::Compression;
pub use writer::{PcapWriter, Resolution};
