//! Fingerprints that find a packet in the other capture before anything is known about its flow.
//!
//! No print uses addresses or ports, which a NAT rewrites. A firewall may move sequence numbers, so that one print is of
//! time stamps and another of the payload.

use wire::tcp::Flags;

use crate::packet::{Mix, Sight};

/// How far a print can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    /// Two packets share it by chance once in about 2^64.
    Strong,
    /// Packets of other flows may share it: it needs other evidence.
    Weak,
}

/// A print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Print {
    pub(crate) value: u64,
    pub(crate) strength: Strength,
}

/// Flags that no firewall changes; those of ECN may be stripped.
pub(crate) const FLAGS: u16 = Flags::FIN.0 | Flags::SYN.0 | Flags::RST.0 | Flags::ACK.0;

/// Prints of a packet: at most three.
pub(crate) fn prints(sight: &Sight, seed: Mix) -> [Option<Print>; 3] {
    let strong = |mix: Mix| {
        Some(Print {
            value: mix.0,
            strength: Strength::Strong,
        })
    };
    let weak = |mix: Mix| {
        Some(Print {
            value: mix.0,
            strength: Strength::Weak,
        })
    };
    let length = u64::from(sight.length);
    if !sight.is_tcp() {
        let base = seed
            .with(4)
            .with(u64::from(sight.key.protocol))
            .with(length);
        let base = base.with(sight.body).with(u64::from(sight.sequence));
        let id = u64::from(sight.id);
        return [
            (id != 0 && sight.has_body())
                .then(|| base.with(id))
                .and_then(strong),
            weak(base),
            None,
        ];
    }
    let flags = u64::from(sight.flags & FLAGS);
    let numbers = u64::from(sight.sequence) << 32 | u64::from(sight.acknowledgment);
    let raw = seed.with(1).with(numbers).with(length << 16 | flags);
    let syn = sight.has(Flags::SYN);
    let raw = match (sight.has(Flags::ACK), sight.stamps) {
        (true, _) => strong(raw),
        (false, Some((value, _))) if syn => strong(raw.with(u64::from(value))),
        _ => weak(raw),
    };
    let stamps = sight.stamps.and_then(|(value, echo)| {
        let both = u64::from(value) << 32 | u64::from(echo);
        let mix = seed.with(2).with(both).with(length << 16 | flags);
        match echo {
            0 => weak(mix),
            _ => strong(mix),
        }
    });
    let body = (sight.body != 0).then(|| seed.with(3).with(sight.body));
    [raw, stamps, body.and_then(weak)]
}
