//! One rule and its matching. The compiled form must agree with [`Rule::matches`] on every packet.

use wire::ip::{Header, Upper};
use wire::packet::Fragment;
use wire::tcp::{self, Flags};

/// The flags of which `established` requires at least one.
pub(crate) const ESTABLISHED: u8 = (Flags::ACK.0 | Flags::RST.0) as u8;

/// A range of addresses of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// 4 or 6.
    pub(crate) version: u8,
    /// First address, in the form of [`Header::source`].
    pub(crate) first: u128,
    /// Last address, not below `first`.
    pub(crate) last: u128,
}

/// First and last number.
pub(crate) type Span = (u16, u16);

/// One accept or deny rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Accept if true, deny otherwise.
    pub accept: bool,
    /// Whether to log the packets on which it decides.
    pub log: bool,
    /// Line of the text, from 1.
    pub line: usize,
    /// As written, with single spaces and without the comment.
    pub text: String,
    /// 4 or 6 if it matches only that version.
    pub(crate) version: Option<u8>,
    /// Protocol numbers; empty for any.
    pub(crate) protocols: Vec<u8>,
    /// Empty for any, as in the three lists below.
    pub(crate) source: Vec<Addresses>,
    pub(crate) destination: Vec<Addresses>,
    pub(crate) source_ports: Vec<Span>,
    pub(crate) destination_ports: Vec<Span>,
    /// ICMP types in the upper octet and codes in the lower; empty for any.
    pub(crate) icmp: Vec<Span>,
    /// Which TCP flags are checked, and their required values.
    pub(crate) flags: Option<(u8, u8)>,
    /// Requires ACK or RST.
    pub(crate) established: bool,
    /// Matches only later fragments.
    pub(crate) fragment: bool,
}

/// Which property of a packet does not match a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Version,
    Protocol,
    Source,
    Destination,
    /// The rule is for later fragments, and the packet is not one.
    NoFragment,
    /// The packet is a later fragment, which lacks what this deny rule checks.
    LaterFragment,
    SourcePort,
    DestinationPort,
    Icmp,
    Flags,
    Established,
}

impl Rule {
    /// Whether it decides on a packet, if no earlier rule does.
    ///
    /// A later fragment has no ports, flags or ICMP type. An accepting rule that checks those matches by its
    /// other conditions alone, since the fragment is useless without the first one; a denying rule does not
    /// match.
    #[must_use]
    pub fn matches(&self, packet: &Header) -> bool {
        self.mismatch(packet).is_none()
    }

    /// The first condition that does not match, in the order of the rule's words.
    pub(crate) fn mismatch(&self, packet: &Header) -> Option<Mismatch> {
        if self
            .version
            .is_some_and(|version| version != packet.version)
        {
            return Some(Mismatch::Version);
        }
        if !self.has_protocol(packet.protocol) {
            return Some(Mismatch::Protocol);
        }
        let is_in = |list: &[Addresses], address: u128| {
            list.is_empty() || list.iter().any(|one| one.has(packet.version, address))
        };
        if !is_in(&self.source, packet.source) {
            return Some(Mismatch::Source);
        }
        if !is_in(&self.destination, packet.destination) {
            return Some(Mismatch::Destination);
        }
        if packet.fragment == Fragment::Later {
            return (!self.has_later_fragments()).then_some(Mismatch::LaterFragment);
        }
        if self.fragment {
            return Some(Mismatch::NoFragment);
        }
        self.upper_mismatch(packet)
    }

    fn upper_mismatch(&self, packet: &Header) -> Option<Mismatch> {
        let is_in = |spans: &[Span], number: u16| {
            spans.is_empty() || spans.iter().any(|&(a, b)| (a..=b).contains(&number))
        };
        if !is_in(&self.source_ports, packet.source_port) {
            return Some(Mismatch::SourcePort);
        }
        if !is_in(&self.destination_ports, packet.destination_port) {
            return Some(Mismatch::DestinationPort);
        }
        if !is_in(&self.icmp, packet.destination_port) {
            return Some(Mismatch::Icmp);
        }
        if !self.has_flags(packet.tcp_flags) {
            return Some(Mismatch::Flags);
        }
        if self.established && packet.tcp_flags & ESTABLISHED == 0 {
            return Some(Mismatch::Established);
        }
        None
    }

    pub(crate) fn has_protocol(&self, protocol: u8) -> bool {
        self.protocols.is_empty() || self.protocols.contains(&protocol)
    }

    fn has_flags(&self, flags: u8) -> bool {
        self.flags.is_none_or(|(mask, want)| flags & mask == want)
    }

    /// Whether a TCP segment with these flags can match.
    pub(crate) fn has_tcp(&self, flags: u8) -> bool {
        self.has_protocol(tcp::PROTOCOL)
            && self.has_flags(flags)
            && (!self.established || flags & ESTABLISHED != 0)
    }

    /// Whether it checks fields that only the first fragment has.
    pub(crate) fn asks_upper(&self) -> bool {
        self.established
            || self.flags.is_some()
            || !(self.source_ports.is_empty()
                && self.destination_ports.is_empty()
                && self.icmp.is_empty())
    }

    /// Whether it can match a later fragment.
    pub(crate) fn has_later_fragments(&self) -> bool {
        self.accept || !self.asks_upper()
    }

    /// Whether it can match any packet of this version.
    pub(crate) fn has_version(&self, version: u8) -> bool {
        let is_in = |list: &[Addresses]| {
            list.is_empty() || list.iter().any(|addresses| addresses.version == version)
        };
        self.version.is_none_or(|only| only == version)
            && is_in(&self.source)
            && is_in(&self.destination)
    }
}

impl Addresses {
    fn has(&self, version: u8, address: u128) -> bool {
        self.version == version && (self.first..=self.last).contains(&address)
    }
}

/// Whether a packet is denied before any rule: a header that rules may check is incomplete (RFC 1858 3), or the
/// fragment would overwrite one (RFC 3128: TCP at offset 8).
#[inline(always)]
pub(crate) fn is_damaged(packet: &Header) -> bool {
    packet.upper == Upper::Cut || packet.fragment_offset == 8 && packet.protocol == tcp::PROTOCOL
}
