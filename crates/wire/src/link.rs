//! Link-layer header types: what a captured frame starts with.

use std::fmt;

/// A link-layer header type, by its number in pcap and pcapng files (LINKTYPE_*, tcpdump.org/linktypes.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

macro_rules! link_types {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        impl LinkType {
            $($(#[$doc])* pub const $name: LinkType = LinkType($number);)*

            /// The type's name in the list of link types, without its prefix, if known here.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(LinkType::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

link_types! {
    /// BSD loopback: a protocol family in the byte order of the machine that captured.
    NULL = 0, "NULL";
    /// Ethernet.
    ETHERNET = 1, "ETHERNET";
    /// Token ring (IEEE 802.5).
    IEEE802_5 = 6, "IEEE802_5";
    /// PPP, with or without the address and control octets of RFC 1662.
    PPP = 9, "PPP";
    /// FDDI (RFC 1390), then LLC.
    FDDI = 10, "FDDI";
    /// RFC 1483, under its number in old files.
    ATM_RFC1483_OLD = 11, "ATM_RFC1483";
    /// An IP packet, under one of its numbers in old files.
    RAW_OLD = 12, "RAW";
    /// An IP packet, under its number in old files of OpenBSD.
    RAW_OPENBSD = 14, "RAW";
    /// Linux's classical IP over ATM (RFC 2225), under its number in old files.
    ATM_CLIP_OLD = 19, "ATM_CLIP";
    /// PPP in HDLC-like framing (RFC 1662), or Cisco HDLC.
    PPP_HDLC = 50, "PPP_HDLC";
    /// PPPoE, starting at its header (RFC 2516).
    PPP_ETHER = 51, "PPP_ETHER";
    /// The payload of AAL5, encapsulated as in RFC 2684 (1483).
    ATM_RFC1483 = 100, "ATM_RFC1483";
    /// An IP packet of either version.
    RAW = 101, "RAW";
    /// Cisco HDLC.
    C_HDLC = 104, "C_HDLC";
    /// Linux's classical IP over ATM (RFC 2225).
    ATM_CLIP = 106, "ATM_CLIP";
    /// OpenBSD loopback: a protocol family in network byte order.
    LOOP = 108, "LOOP";
    /// Linux "cooked" frames.
    LINUX_SLL = 113, "LINUX_SLL";
    /// ATM as SunATM delivers it: four octets, then LLC or a LAN emulation frame.
    SUNATM = 123, "SUNATM";
    /// PPP after a direction octet, as Linux's pppd writes it.
    PPP_PPPD = 166, "PPP_PPPD";
    /// PPP after a direction octet.
    PPP_WITH_DIR = 204, "PPP_WITH_DIR";
    /// Cisco HDLC after a direction octet.
    C_HDLC_WITH_DIR = 205, "C_HDLC_WITH_DIR";
    /// An IPv4 packet.
    IPV4 = 228, "IPV4";
    /// An IPv6 packet.
    IPV6 = 229, "IPV6";
    /// Linux "cooked" frames, second version.
    LINUX_SLL2 = 276, "LINUX_SLL2";
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
