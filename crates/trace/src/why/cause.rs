//! What a sender waits for, and the rule behind each cause.

/// What limited a sender during a span of time. [`RULES`] describes each cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// The TCP handshake.
    Handshake,
    /// The start of TLS.
    Tls,
    /// Neither end had anything to send.
    Idle,
    /// The sender had nothing to send.
    Application,
    /// The receiver's window was full.
    Receiver,
    /// Loss, repaired by a fast retransmission.
    FastRetransmit,
    /// Loss, repaired after a retransmission time-out.
    Timeout,
    /// Loss at the end of a burst, where no later data causes duplicate ACKs.
    TailLoss,
    /// A retransmission of data that had arrived.
    Spurious,
    /// The congestion window after a loss, until it is as large as before.
    AfterLoss,
    /// A standing queue in the network.
    Queue,
    /// A policer that drops what exceeds a rate.
    Policer,
    /// The congestion window while it grows from its start.
    SlowStart,
    /// The sender's own pacing.
    Pacing,
    /// The packets do not show what the sender waited for.
    Unknown,
}

/// Number of causes.
pub const CAUSES: usize = 15;

/// The rule behind a cause.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// Its name in JSON and tables.
    pub name: &'static str,
    /// It completes "… % of the time".
    pub phrase: &'static str,
    /// When time counts as this cause.
    pub rule: &'static str,
    /// Where the rule is from.
    pub source: &'static str,
    /// What would contradict it.
    pub contradicted_by: &'static str,
}

/// All causes, in the order of their numbers.
pub const RULES: [Rule; CAUSES] = [
    Rule {
        cause: Cause::Handshake,
        name: "handshake",
        phrase: "went by with the TCP handshake",
        rule: "from the first packet to the first one without SYN",
        source: "RFC 9293 3.5",
        contradicted_by: "data before the handshake is complete",
    },
    Rule {
        cause: Cause::Tls,
        name: "tls",
        phrase: "went by with the start of TLS",
        rule: "from the first handshake record to the client's first record of application data",
        source: "RFC 8446 5.1",
        contradicted_by: "a protocol of another kind whose data begins like a TLS record",
    },
    Rule {
        cause: Cause::Idle,
        name: "idle",
        phrase: "was idle",
        rule: "no data in flight for at least 1 s and 4 round trips, and the last data was the sender's own; or the sender has sent FIN",
        source: "headend",
        contradicted_by: "an answer that the other end awaited",
    },
    Rule {
        cause: Cause::Application,
        name: "application",
        phrase: "waited for the sending application",
        rule: "the last segment was shorter than a full one, though the window had room; or all data was acknowledged, and nothing shows a loss",
        source: "T-RAT (Zhang et al. 2002); Linux tcp_info, time outside tcpi_busy_time",
        contradicted_by: "a send buffer that is full: packets cannot show it",
    },
    Rule {
        cause: Cause::Receiver,
        name: "receiver_window",
        phrase: "waited for the receiver's window",
        rule: "the window had less room than a full segment, and the next data followed the ACK that opened it",
        source: "T-RAT; Linux tcp_info, tcpi_rwnd_limited",
        contradicted_by: "a window scale that the capture does not show",
    },
    Rule {
        cause: Cause::FastRetransmit,
        name: "fast_retransmit",
        phrase: "repaired losses by fast retransmissions",
        rule: "from the silence before a retransmission that duplicate ACKs or SACK asked for, until all data sent before it is acknowledged",
        source: "RFC 5681 3.2, RFC 6675 5",
        contradicted_by: "a D-SACK: the data had arrived",
    },
    Rule {
        cause: Cause::Timeout,
        name: "timeout",
        phrase: "waited for retransmission time-outs",
        rule: "the silence before a retransmission that no duplicate ACK asked for, and the recovery after it; or a silence after which the sender sends one full segment and awaits its ACK",
        source: "RFC 6298 5, RFC 5681 3.1",
        contradicted_by: "a D-SACK, or duplicate ACKs that the capture lost",
    },
    Rule {
        cause: Cause::TailLoss,
        name: "tail_loss",
        phrase: "waited for lost ends of bursts",
        rule: "like a time-out, but the retransmitted segment was the last one sent; or IPv4 identifications or sequence numbers show that it was lost before the point of capture",
        source: "RFC 8985 7, RFC 6864 4",
        contradicted_by: "a D-SACK: the ACK was lost or late, not the data; or packets of other connections that used the identifications",
    },
    Rule {
        cause: Cause::Spurious,
        name: "spurious",
        phrase: "went by with needless retransmissions",
        rule: "a recovery whose retransmissions were all of data that had arrived: acknowledged before, or reported by D-SACK; and the smaller congestion window after it",
        source: "RFC 2883 4, RFC 3522",
        contradicted_by: "SACK blocks that show a hole",
    },
    Rule {
        cause: Cause::AfterLoss,
        name: "after_loss",
        phrase: "was limited by the congestion window after losses",
        rule: "more to send, an open window, round trips that do not grow, a loss before, and data in flight that grew in the last second or 8 round trips",
        source: "RFC 5681 3.1",
        contradicted_by: "round trips that grow with the data in flight",
    },
    Rule {
        cause: Cause::Queue,
        name: "queue",
        phrase: "was limited by a queue in the network",
        rule: "more to send after 8 packets, an open window, and the shortest round trip of the last two rounds exceeds the shortest of the connection by at least an eighth of it and at least 3 ms",
        source: "RFC 8289 3; headend",
        contradicted_by: "round trips as long with little data in flight; or a queue in the sender's own host, if that is before the point of capture",
    },
    Rule {
        cause: Cause::Policer,
        name: "policer",
        phrase: "was limited by a policer",
        rule: "at least 5 losses, round trips without a queue, the same rate between each two losses within 15 %, and ACKs in clumps that no queue has spaced",
        source: "Flach et al. 2016; headend",
        contradicted_by: "round trips that grow before the losses",
    },
    Rule {
        cause: Cause::SlowStart,
        name: "slow_start",
        phrase: "was limited by slow start",
        rule: "more to send, an open window, nothing lost yet, and data in flight that grew during the last 2 round trips",
        source: "RFC 5681 3.1",
        contradicted_by: "data in flight that does not grow",
    },
    Rule {
        cause: Cause::Pacing,
        name: "pacing",
        phrase: "was paced by the sender",
        rule: "more to send, an open window, data in flight that did not grow for 8 round trips, and silences between segments that are short beside the round trip, or all alike",
        source: "headend",
        contradicted_by: "an application that writes full segments one by one",
    },
    Rule {
        cause: Cause::Unknown,
        name: "cannot_say",
        phrase: "cannot be explained by the packets",
        rule: "all other time with data in flight",
        source: "headend",
        contradicted_by: "-",
    },
];

impl Cause {
    /// Its rule.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }

    /// All causes, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Cause> {
        RULES.iter().map(|rule| rule.cause)
    }

    /// The cause with a number.
    pub(super) fn of(number: u8) -> Cause {
        RULES
            .get(usize::from(number))
            .map_or(Cause::Unknown, |rule| rule.cause)
    }

    /// Whether the network or the other end slowed the sender down, rather than the ends' own work.
    #[must_use]
    pub fn is_limit(self) -> bool {
        !matches!(
            self,
            Cause::Handshake | Cause::Tls | Cause::Idle | Cause::Application | Cause::Unknown
        )
    }

    /// Whether a loss is the cause.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(
            self,
            Cause::FastRetransmit | Cause::Timeout | Cause::TailLoss | Cause::Spurious
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_at_its_causes_number() {
        for (number, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.cause as usize, number);
            assert_eq!(Cause::of(number as u8), rule.cause);
        }
    }

    #[test]
    fn the_page_has_each_rule() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/why.md");
        let page = std::fs::read_to_string(page).unwrap();
        for rule in &RULES {
            let row = format!(
                "| `{}` | {} | {} | {} |",
                rule.name, rule.rule, rule.source, rule.contradicted_by
            );
            assert!(page.contains(&row), "docs/why.md lacks: {row}");
        }
    }
}
