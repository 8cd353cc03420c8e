//! What single packets show, and the rule behind each finding.

/// Something that packets of one end show. [`DESCRIPTIONS`] describes each finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Finding {
    /// The end's SYN lacks the window scale option.
    NoWindowScale,
    /// The end's SYN lacks SACK permitted.
    NoSack,
    /// The end's MSS is smaller than that of Ethernet.
    SmallMss,
    /// A repeated SYN has other options than the first.
    SynChanged,
    /// The end repeated its SYN.
    SynRepeated,
    /// The end refused the connection.
    Refused,
    /// The first flight was small although there was more to send.
    SmallInitialWindow,
    /// The end closed its window.
    ZeroWindow,
    /// The end opened its window in small steps.
    SillyWindow,
    /// A small segment waited for a delayed ACK.
    DelayedAck,
    /// Full segments are lost, smaller ones arrive.
    PathMtu,
    /// Segments are larger than the receiver's MSS.
    OverMss,
    /// ECN was agreed on, but the data is not marked as ECN-capable.
    EcnCleared,
    /// A router marked data instead of dropping it.
    EcnMarked,
    /// The capture lacks data that was acknowledged.
    CaptureLoss,
    /// The end reset the connection in the middle.
    Reset,
    /// The end reset the connection after a FIN.
    ResetAfterClose,
    /// The end reset the connection while data for it was on its way.
    ResetDataLost,
    /// The connection was reset after a silence.
    ResetIdle,
    /// A reset that the end probably did not send.
    ResetInjected,
}

/// Number of findings.
pub const FINDINGS: usize = 20;

/// What a finding's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// It has none.
    None,
    /// Nanoseconds: the longest of all times.
    Time,
    /// Bytes: the most of all times.
    Bytes,
    /// Segments.
    Segments,
}

impl Unit {
    /// The end of its key in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Time => "longest_ns",
            Unit::Bytes => "bytes",
            Unit::Segments => "segments",
        }
    }
}

/// The rule behind a finding.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// The finding.
    pub finding: Finding,
    /// Its name in JSON and tables.
    pub name: &'static str,
    /// What it says about the end.
    pub phrase: &'static str,
    /// When a packet counts.
    pub rule: &'static str,
    /// Where the rule is from.
    pub source: &'static str,
    /// What would contradict it.
    pub contradicted_by: &'static str,
    /// What its value is.
    pub unit: Unit,
}

const fn row(
    finding: Finding,
    (name, unit): (&'static str, Unit),
    phrase: &'static str,
    rule: &'static str,
    source: &'static str,
    contradicted_by: &'static str,
) -> Description {
    Description {
        finding,
        name,
        phrase,
        rule,
        source,
        contradicted_by,
        unit,
    }
}

/// All findings, in the order of their numbers.
pub const DESCRIPTIONS: [Description; FINDINGS] = [
    row(
        Finding::NoWindowScale,
        ("no_window_scale", Unit::None),
        "its SYN lacks the window scale option: windows of both ends are at most 65,535 bytes",
        "the SYN of this end lacks the option, and is the first SYN or answers a SYN that has it",
        "RFC 7323 2.2",
        "the same SYN, captured nearer to the end, with the option: then a middlebox removed it",
    ),
    row(
        Finding::NoSack,
        ("no_sack", Unit::None),
        "its SYN lacks SACK permitted: several losses in a round trip take several round trips to repair",
        "the SYN of this end lacks the option, and is the first SYN or answers a SYN that has it",
        "RFC 2018 2",
        "the same SYN, captured nearer to the end, with the option: then a middlebox removed it",
    ),
    row(
        Finding::SmallMss,
        ("small_mss", Unit::Bytes),
        "its MSS is below that of Ethernet: a tunnel, PPPoE, or a middlebox that rewrites it",
        "the MSS of its SYN is below 1,460 (IPv4) or 1,440 (IPv6)",
        "RFC 9293 3.7.1",
        "an interface of the end that has this MTU",
    ),
    row(
        Finding::SynChanged,
        ("syn_changed", Unit::None),
        "its repeated SYN has other options than the first one",
        "a repeated SYN has another MSS, window scale or SACK-permitted option than the first SYN",
        "RFC 9293 3.7.1; headend",
        "a new connection with the same ports",
    ),
    row(
        Finding::SynRepeated,
        ("syn_repeated", Unit::Time),
        "it repeated its SYN",
        "a SYN with the same sequence number again; the time is that since the first one",
        "RFC 6298 2",
        "a capture that shows each packet twice",
    ),
    row(
        Finding::Refused,
        ("refused", Unit::None),
        "it refused the connection, or a firewall did in its name",
        "RST in answer to a SYN",
        "RFC 9293 3.5.2",
        "a SYN-ACK of the end that the capture lacks",
    ),
    row(
        Finding::SmallInitialWindow,
        ("small_initial_window", Unit::Segments),
        "its first flight was smaller than usual although there was more to send",
        "fewer than 4 full segments before the first ACK of data, the last of them full and without PSH",
        "RFC 6928 2, RFC 3390",
        "an application that wrote no more",
    ),
    row(
        Finding::ZeroWindow,
        ("zero_window", Unit::Time),
        "it closed its window: its application does not read",
        "an ACK with window 0; the time runs until the same end advertises a window above 0",
        "RFC 9293 3.8.6",
        "packets that open the window and that the capture lost",
    ),
    row(
        Finding::SillyWindow,
        ("silly_window", Unit::Bytes),
        "it opened its window in small steps",
        "3 or more ACKs that move the right edge of the window by less than a limit, while the window is below that limit too: the smaller of a full segment and half of the largest window",
        "RFC 9293 3.8.6.2.2",
        "a receive buffer of that size",
    ),
    row(
        Finding::DelayedAck,
        ("delayed_ack", Unit::Time),
        "its small segments waited for delayed ACKs (Nagle's algorithm)",
        "a small segment alone in flight, acknowledged without data at least 35 ms later than the shortest round trip, and the ACK releases data",
        "RFC 1122 4.2.3.4, RFC 5681 4.2",
        "round trips that vary as much with full segments",
    ),
    row(
        Finding::PathMtu,
        ("path_mtu", Unit::Bytes),
        "its full segments are lost, smaller ones arrive: a router drops them and its ICMP errors do not arrive",
        "a full segment sent 3 times or more; no full one was ever acknowledged, or the same data was acknowledged once sent in a smaller segment",
        "RFC 2923 2.1, RFC 8899",
        "full segments that the other end acknowledges",
    ),
    row(
        Finding::OverMss,
        ("over_mss", Unit::Bytes),
        "segments are larger than the receiver's MSS: an offload joined them at the point of capture",
        "payload above the MSS of the other end's SYN",
        "RFC 9293 3.7.1; headend",
        "a middlebox that lowered the MSS behind the sender",
    ),
    row(
        Finding::EcnCleared,
        ("ecn_cleared", Unit::None),
        "ECN was agreed on, but no data is marked as ECN-capable here",
        "10 or more segments with new data, none with ECT, after a handshake that agreed on ECN",
        "RFC 3168 6.1.1",
        "a sender that uses ECN for some connections only",
    ),
    row(
        Finding::EcnMarked,
        ("ecn_marked", Unit::None),
        "routers marked its data because of a queue",
        "CE on its packets, or ECE in the other end's ACKs after ECN was agreed on",
        "RFC 3168 5",
        "a middlebox that writes the field",
    ),
    row(
        Finding::CaptureLoss,
        ("capture_loss", Unit::Bytes),
        "the capture lacks data that the other end acknowledged",
        "bytes below an ACK that no captured segment has",
        "headend",
        "packets that took another path",
    ),
    row(
        Finding::Reset,
        ("reset", Unit::None),
        "it reset the connection",
        "RST that no other row describes",
        "RFC 9293 3.5.2",
        "-",
    ),
    row(
        Finding::ResetAfterClose,
        ("reset_after_close", Unit::None),
        "it reset the connection after a FIN",
        "RST after a FIN of either end, and no data for it was in flight",
        "RFC 9293 3.6.1, RFC 2525 2.17",
        "-",
    ),
    row(
        Finding::ResetDataLost,
        ("reset_data_lost", Unit::Bytes),
        "it reset the connection while data for it was in flight: its application closed without reading it",
        "RST while data of the other end is not acknowledged",
        "RFC 2525 2.17",
        "an ACK that the capture lost",
    ),
    row(
        Finding::ResetIdle,
        ("reset_idle", Unit::Time),
        "the connection was reset after a silence: a time-out of the end, or of a NAT or firewall in its name",
        "RST at least 60 s after the last packet",
        "RFC 5382 5; headend",
        "packets that the capture lacks",
    ),
    row(
        Finding::ResetInjected,
        ("reset_injected", Unit::None),
        "another device probably sent this reset in the end's name",
        "the TTL differs from all its other packets by 2 or more, or the end goes on sending after it",
        "RFC 9293 3.5.2; headend",
        "a system that uses another TTL for resets",
    ),
];

impl Finding {
    /// All findings, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Finding> {
        DESCRIPTIONS.iter().map(|description| description.finding)
    }

    /// Its row.
    #[must_use]
    pub fn description(self) -> &'static Description {
        // The table has a row for each finding, in order; a test holds it to that.
        &DESCRIPTIONS[self as usize]
    }
}
