//! What the snapshots of a link's parts share: the codes of enumerations, and the forms of values that most links have in
//! common, which take no octet. Each part lists its own fields, beside its struct or in a module below it; start with
//! `link/snapshot.rs`.

use core::net::Ipv4Addr;

use base::Instant;
use base::snapshot::{Codec, Number, Part};
use wire::ppp::Compression;

use crate::config::Authentication;
use crate::event::LinkEnd;
use crate::fsm::State;

/// The states of the automaton. The first one takes no octet.
pub(crate) const STATES: &[(u8, State)] = &[
    (0, State::Opened),
    (1, State::Initial),
    (2, State::Starting),
    (3, State::Closed),
    (4, State::Stopped),
    (5, State::Closing),
    (6, State::Stopping),
    (7, State::ReqSent),
    (8, State::AckRcvd),
    (9, State::AckSent),
];

/// Authentication protocols.
pub(crate) const WAYS: &[(u8, Authentication)] = &[
    (0, Authentication::Pap),
    (1, Authentication::ChapMd5),
    (2, Authentication::MsChapV2),
    (3, Authentication::Eap),
];

/// Authentication protocols that one side may require of the other.
pub(crate) const REQUIRED: &[(u8, Option<Authentication>)] = &[
    (0, None),
    (1, Some(Authentication::Pap)),
    (2, Some(Authentication::ChapMd5)),
    (3, Some(Authentication::MsChapV2)),
    (4, Some(Authentication::Eap)),
];

/// Compressions of headers: PFC and ACFC.
pub(crate) const COMPRESSIONS: &[(u8, Compression)] = &[
    (0, compression(false, false)),
    (1, compression(true, false)),
    (2, compression(false, true)),
    (3, compression(true, true)),
];

const fn compression(protocol: bool, address: bool) -> Compression {
    Compression { protocol, address }
}

/// Reasons why a link ends.
pub(crate) const ENDS: &[(u8, Option<LinkEnd>)] = &[
    (0, None),
    (1, Some(LinkEnd::Closed)),
    (2, Some(LinkEnd::PeerTerminated)),
    (3, Some(LinkEnd::NoAnswer)),
    (4, Some(LinkEnd::Rejected)),
    (5, Some(LinkEnd::AuthenticationRejected)),
    (6, Some(LinkEnd::AuthenticationTimeout)),
    (7, Some(LinkEnd::AuthenticationFailed)),
    (8, Some(LinkEnd::RefusedByPeer)),
    (9, Some(LinkEnd::UnprovenPeer)),
    (10, Some(LinkEnd::NoCredentials)),
    (11, Some(LinkEnd::EchoTimeout)),
    (12, Some(LinkEnd::Looped)),
    (13, Some(LinkEnd::NoNetwork)),
];

/// A number that is absent if it is the usual one.
pub(crate) fn number_or<C: Codec, N: Number>(
    codec: &mut C,
    number: u8,
    name: &'static str,
    value: &mut N,
    usual: N,
) {
    let mut other = (!C::READS && *value != usual).then_some(*value);
    codec.maybe(number, name, &mut other);
    if C::READS {
        if other == Some(usual) {
            codec.refuse();
        }
        *value = other.unwrap_or(usual);
    }
}

/// A number that is usually large: four octets, or none if it is 0.
pub(crate) fn large<C: Codec>(codec: &mut C, number: u8, name: &'static str, value: &mut u32) {
    let mut octets = value.to_be_bytes();
    codec.array(number, name, &mut octets);
    *value = u32::from_be_bytes(octets);
}

/// An interface identifier: eight octets, or none if it is 0.
pub(crate) fn identifier<C: Codec>(codec: &mut C, number: u8, name: &'static str, value: &mut u64) {
    let mut octets = value.to_be_bytes();
    codec.array(number, name, &mut octets);
    *value = u64::from_be_bytes(octets);
}

/// An IPv4 address: four octets, or none if it is unspecified.
pub(crate) fn ipv4<C: Codec>(codec: &mut C, number: u8, name: &'static str, value: &mut Ipv4Addr) {
    let mut octets = value.octets();
    codec.array(number, name, &mut octets);
    *value = octets.into();
}

/// The low bits of a time in some unit, of which a millisecond has `per_ms`. They are moved to the timeline's start, as
/// times are, because another process's clock starts elsewhere.
pub(crate) fn low_bits<C: Codec>(
    codec: &mut C,
    number: u8,
    name: &'static str,
    value: &mut Option<u32>,
    per_ms: u64,
) {
    /// Far from both ends of time, so that no timeline cuts it off.
    const ANCHOR: Instant = Instant::from_nanos(1 << 62);
    let shift = codec.timeline().of(ANCHOR).wrapping_mul(per_ms) as u32;
    let mut moved = match C::READS {
        true => None,
        false => value.map(|bits| bits.wrapping_add(shift)),
    };
    codec.maybe(number, name, &mut moved);
    *value = moved.map(|bits| bits.wrapping_sub(shift));
}

/// Octets, `max` at most, that may be missing.
pub(crate) fn maybe_octets<C: Codec>(
    codec: &mut C,
    number: u8,
    name: &'static str,
    value: &mut Option<Box<[u8]>>,
    max: usize,
) {
    let mut octets = value.take().map(<[u8]>::into_vec);
    codec.maybe_bytes(number, name, &mut octets, max);
    *value = octets.map(Vec::into_boxed_slice);
}

/// A part that every link has.
pub(crate) fn part<C: Codec, P: Part>(
    codec: &mut C,
    number: u8,
    name: &'static str,
    value: &mut P,
) {
    match codec.field(number, name, true) {
        true => _ = codec.within(value),
        false => codec.refuse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No code is missing: a new variant does not compile here, and then needs a code above.
    #[test]
    fn every_variant_has_a_code() {
        for (code, state) in STATES {
            match state {
                State::Opened
                | State::Initial
                | State::Starting
                | State::Closed
                | State::Stopped
                | State::Closing
                | State::Stopping
                | State::ReqSent
                | State::AckRcvd
                | State::AckSent => assert!(*code < 10),
            }
        }
        for (code, way) in WAYS {
            match way {
                Authentication::Pap
                | Authentication::ChapMd5
                | Authentication::MsChapV2
                | Authentication::Eap => assert!(*code < 4),
            }
            assert_eq!(REQUIRED[usize::from(*code) + 1], (code + 1, Some(*way)));
        }
        for (code, end) in ENDS {
            match end {
                None
                | Some(
                    LinkEnd::Closed
                    | LinkEnd::PeerTerminated
                    | LinkEnd::NoAnswer
                    | LinkEnd::Rejected
                    | LinkEnd::AuthenticationRejected
                    | LinkEnd::AuthenticationTimeout
                    | LinkEnd::AuthenticationFailed
                    | LinkEnd::RefusedByPeer
                    | LinkEnd::UnprovenPeer
                    | LinkEnd::NoCredentials
                    | LinkEnd::EchoTimeout
                    | LinkEnd::Looped
                    | LinkEnd::NoNetwork,
                ) => assert!(*code < 14),
            }
        }
        let counts = [STATES.len(), WAYS.len(), REQUIRED.len(), ENDS.len()];
        assert_eq!(counts, [10, 4, 5, 14]);
        check(STATES);
        check(WAYS);
        check(REQUIRED);
        check(ENDS);
        check(COMPRESSIONS);
    }

    /// Neither a code nor a value is there twice.
    fn check<T: PartialEq>(all: &[(u8, T)]) {
        for (nth, (code, value)) in all.iter().enumerate() {
            assert_eq!(usize::from(*code), nth);
            assert!(!all[..nth].iter().any(|(_, other)| other == value));
        }
    }
}
