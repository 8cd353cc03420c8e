//! Events that an endpoint reports to its owner.

use crate::end::{SessionEnd, TunnelEnd};
use crate::session::SessionKey;
use crate::tunnel::TunnelKey;

/// An event that an endpoint reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An SCCRQ was accepted and its SCCRP queued. The owner may open a socket for the tunnel.
    TunnelAccepted {
        /// The new tunnel.
        tunnel: TunnelKey,
    },
    /// A tunnel is established.
    TunnelUp {
        /// The tunnel.
        tunnel: TunnelKey,
        /// The id that we assigned.
        id: u32,
    },
    /// A tunnel ended; its key is still valid while it is closing.
    TunnelDown {
        /// The tunnel.
        tunnel: TunnelKey,
        /// The id that we had assigned.
        id: u32,
        /// Why.
        reason: TunnelEnd,
    },
    /// A tunnel's record has been removed, and its socket is no longer used.
    TunnelGone {
        /// The tunnel.
        tunnel: TunnelKey,
        /// The socket it had.
        socket: u32,
    },
    /// A session is established: data may flow.
    SessionUp {
        /// The session.
        session: SessionKey,
        /// Its tunnel.
        tunnel: TunnelKey,
        /// The id that we assigned.
        id: u32,
    },
    /// A session ended.
    SessionDown {
        /// The session.
        session: SessionKey,
        /// Its tunnel.
        tunnel: TunnelKey,
        /// The id that we had assigned.
        id: u32,
        /// Why.
        reason: SessionEnd,
    },
    /// An LNS wants this call placed: answer or close it.
    CallRequested {
        /// The session.
        session: SessionKey,
    },
    /// A WEN arrived: the call's error counters since its start (RFC 2661 4.4.6).
    WanErrors {
        /// The session.
        session: SessionKey,
        /// The counters.
        errors: CallErrors,
    },
    /// A CSUN arrived: the session has other speeds (RFC 5515 4.1).
    SpeedChanged {
        /// The session.
        session: SessionKey,
        /// From the LAC to the remote system, in bit/s; 0 if unknown.
        tx_bps: u64,
        /// From the remote system to the LAC, in bit/s; 0 if unknown.
        rx_bps: u64,
    },
    /// An SLI arrived.
    LinkInfo {
        /// The session.
        session: SessionKey,
        /// Send and receive ACCM (RFC 2661), or nothing.
        accm: Option<(u32, u32)>,
        /// Circuit Status (RFC 3931), or nothing.
        circuit_status: Option<u16>,
    },
}

/// The counters of a Call Errors AVP (RFC 2661 4.4.6), which RFC 3931 calls
/// Circuit Errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CallErrors {
    /// CRC errors.
    pub crc: u32,
    /// Framing errors.
    pub framing: u32,
    /// Hardware overruns.
    pub hardware_overruns: u32,
    /// Buffer overruns.
    pub buffer_overruns: u32,
    /// Time-out errors.
    pub timeouts: u32,
    /// Alignment errors.
    pub alignment: u32,
}

impl CallErrors {
    /// Parses the value of a Call Errors AVP: two reserved octets, then six counters; the figure in RFC 3931
    /// 5.4.5 has only the last four of them.
    pub(crate) fn from_wire(value: &[u8]) -> Option<Self> {
        let (_, counters) = value.split_at_checked(2)?;
        let missing = match counters.len() {
            24 => 0,
            16 => 2,
            _ => return None,
        };
        let (words, _) = counters.as_chunks();
        let at = |i: usize| {
            let word = i.checked_sub(missing).and_then(|i| words.get(i));
            word.map_or(0, |word| u32::from_be_bytes(*word))
        };
        Some(Self {
            crc: at(0),
            framing: at(1),
            hardware_overruns: at(2),
            buffer_overruns: at(3),
            timeouts: at(4),
            alignment: at(5),
        })
    }

    /// The value of a Call Errors AVP.
    pub(crate) fn to_wire(self) -> [u8; 26] {
        let counters = [
            self.crc,
            self.framing,
            self.hardware_overruns,
            self.buffer_overruns,
            self.timeouts,
            self.alignment,
        ];
        let mut value = [0; 26];
        for (place, counter) in value[2..].chunks_exact_mut(4).zip(counters) {
            place.copy_from_slice(&counter.to_be_bytes());
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_errors_are_read_in_both_lengths() {
        let errors = CallErrors {
            crc: 1,
            framing: 2,
            hardware_overruns: 3,
            buffer_overruns: 4,
            timeouts: 5,
            alignment: 6,
        };
        let wire = errors.to_wire();
        assert_eq!(CallErrors::from_wire(&wire), Some(errors));
        // RFC 3931 5.4.5, the figure: reserved, then the last four counters.
        let short = [&wire[..2], &wire[10..]].concat();
        let expected = CallErrors {
            crc: 0,
            framing: 0,
            ..errors
        };
        assert_eq!(CallErrors::from_wire(&short), Some(expected));
        assert_eq!(CallErrors::from_wire(&wire[..25]), None);
        assert_eq!(CallErrors::from_wire(&[]), None);
    }
}
