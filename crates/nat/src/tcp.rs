//! The states of a TCP connection that a NAT follows: RFC 7857 section 2, figure 1, adapted from RFC 6146 section 3.5.2.2.
//!
//! The NAT reads flags only, no sequence numbers. So a RST from a third party cannot end a connection: it leads to
//! [`State::Trans`], which lasts 4 minutes, and any other packet in that time leads back to [`State::Established`] (RFC 7857
//! section 2.2).
//!
//! Additions to the figure, each marked in [`step`]:
//! - A connection may start from outside, if a mapping and the filter let its SYN in (RFC 5382 REQ-2): [`State::ServerInit`].
//! - A SYN in [`State::BothFin`] starts a new connection with the same ports. Without this a connection that reuses ports
//!   soon after the last one would keep the short time-out of a closing connection, against RFC 5382 REQ-5.

/// Flag bits as in [`wire::ip::Header::tcp_flags`].
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A state of figure 1. The client is the inside host, the server the outside host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// No connection.
    Closed,
    /// The client sent a SYN.
    Init,
    /// The server sent a SYN first.
    ServerInit,
    /// Both sent a SYN.
    Established,
    /// The client sent a FIN.
    ClientFin,
    /// The server sent a FIN.
    ServerFin,
    /// Both sent a FIN.
    BothFin,
    /// One sent a RST.
    Trans,
}

/// What a segment does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// SYN or SYN+ACK of the client.
    ClientSyn,
    /// SYN or SYN+ACK of the server.
    ServerSyn,
    /// FIN of the client.
    ClientFin,
    /// FIN of the server.
    ServerFin,
    /// RST of either.
    Rst,
    /// Any other segment.
    Data,
}

impl Event {
    /// The event of a segment with these flags. RST goes before SYN, and SYN before FIN.
    #[inline]
    #[must_use]
    pub const fn of(flags: u8, is_client: bool) -> Self {
        match (flags & RST != 0, flags & SYN != 0, flags & FIN != 0) {
            (true, _, _) => Self::Rst,
            (false, true, _) if is_client => Self::ClientSyn,
            (false, true, _) => Self::ServerSyn,
            (false, false, true) if is_client => Self::ClientFin,
            (false, false, true) => Self::ServerFin,
            (false, false, false) => Self::Data,
        }
    }
}

/// Whether these flags are those of a connection's first segment: SYN without ACK, RST or FIN.
#[inline]
#[must_use]
pub const fn is_first(flags: u8) -> bool {
    flags & (SYN | ACK | RST | FIN) == SYN
}

/// The next state, and whether the packet restarts the state's time-out. A change of state always does.
#[inline]
#[must_use]
pub const fn step(state: State, event: Event) -> (State, bool) {
    use State as S;
    match (state, event) {
        (S::Closed, Event::ClientSyn) => (S::Init, true),
        // Addition: started from outside.
        (S::Closed, Event::ServerSyn) => (S::ServerInit, true),
        (S::Closed, Event::ClientFin | Event::ServerFin | Event::Rst | Event::Data) => {
            (S::Closed, false)
        }
        (S::Init, Event::ServerSyn) => (S::Established, true),
        (S::Init, Event::ClientSyn) => (S::Init, true),
        (S::Init, Event::ClientFin | Event::ServerFin | Event::Rst | Event::Data) => {
            (S::Init, false)
        }
        (S::ServerInit, Event::ClientSyn) => (S::Established, true),
        // RFC 7857 section 7: a packet from outside alone keeps nothing alive.
        (S::ServerInit, Event::ServerSyn) => (S::ServerInit, false),
        (S::ServerInit, Event::ClientFin | Event::ServerFin | Event::Rst | Event::Data) => {
            (S::ServerInit, false)
        }
        (S::Established, Event::ClientFin) => (S::ClientFin, true),
        (S::Established, Event::ServerFin) => (S::ServerFin, true),
        (S::Established, Event::Rst) => (S::Trans, true),
        (S::Established, Event::ClientSyn | Event::ServerSyn | Event::Data) => {
            (S::Established, true)
        }
        (S::ClientFin, Event::ServerFin) => (S::BothFin, true),
        (S::ClientFin, Event::Rst) => (S::Trans, true),
        (S::ClientFin, Event::ClientFin | Event::ClientSyn | Event::ServerSyn | Event::Data) => {
            (S::ClientFin, true)
        }
        (S::ServerFin, Event::ClientFin) => (S::BothFin, true),
        (S::ServerFin, Event::Rst) => (S::Trans, true),
        (S::ServerFin, Event::ServerFin | Event::ClientSyn | Event::ServerSyn | Event::Data) => {
            (S::ServerFin, true)
        }
        // Additions: the next connection with the same ports.
        (S::BothFin, Event::ClientSyn) => (S::Init, true),
        (S::BothFin, Event::ServerSyn) => (S::ServerInit, true),
        (S::BothFin, Event::ClientFin | Event::ServerFin | Event::Rst | Event::Data) => {
            (S::BothFin, false)
        }
        (S::Trans, Event::Rst) => (S::Trans, false),
        // Addition: as in `BothFin`, the client may reuse the ports of a connection that was reset.
        (S::Trans, Event::ClientSyn) => (S::Init, true),
        (S::Trans, Event::ServerSyn | Event::ClientFin | Event::ServerFin | Event::Data) => {
            (S::Established, true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(events: &[Event]) -> State {
        let mut state = State::Closed;
        for &event in events {
            state = step(state, event).0;
        }
        state
    }

    #[test]
    fn rfc_7857_figure_1_three_way_handshake_and_both_ways_to_close() {
        use Event::*;
        assert_eq!(run(&[ClientSyn, ServerSyn]), State::Established);
        assert_eq!(run(&[ClientSyn, ServerSyn, ClientFin]), State::ClientFin);
        assert_eq!(run(&[ClientSyn, ServerSyn, ServerFin]), State::ServerFin);
        assert_eq!(
            run(&[ClientSyn, ServerSyn, ClientFin, ServerFin]),
            State::BothFin
        );
        assert_eq!(
            run(&[ClientSyn, ServerSyn, ServerFin, ClientFin]),
            State::BothFin
        );
    }

    #[test]
    fn rfc_7857_figure_1_a_reset_is_transitory_and_data_returns_to_established() {
        use Event::*;
        assert_eq!(run(&[ClientSyn, ServerSyn, Rst]), State::Trans);
        assert_eq!(run(&[ClientSyn, ServerSyn, Rst, Rst]), State::Trans);
        assert_eq!(run(&[ClientSyn, ServerSyn, Rst, Data]), State::Established);
    }

    #[test]
    fn rfc_5382_req_2_a_simultaneous_open_is_established() {
        use Event::*;
        // Both SYNs, then both SYN+ACKs.
        let events = [ClientSyn, ServerSyn, ClientSyn, ServerSyn];
        assert_eq!(run(&events), State::Established);
        assert_eq!(run(&[ServerSyn, ClientSyn]), State::Established);
    }

    #[test]
    fn rfc_7857_section_7_outside_packets_alone_refresh_nothing() {
        for event in [Event::ServerSyn, Event::ServerFin, Event::Rst, Event::Data] {
            assert_eq!(step(State::ServerInit, event), (State::ServerInit, false));
        }
        assert_eq!(step(State::Trans, Event::Rst), (State::Trans, false));
        assert_eq!(step(State::Init, Event::Rst), (State::Init, false));
    }

    #[test]
    fn a_reset_wins_over_other_flags() {
        assert_eq!(Event::of(RST | SYN | FIN, true), Event::Rst);
        assert_eq!(Event::of(SYN | ACK, false), Event::ServerSyn);
        assert_eq!(Event::of(FIN | ACK, true), Event::ClientFin);
        assert!(is_first(SYN | 0xc0));
        assert!(!is_first(SYN | ACK));
        assert!(!is_first(SYN | FIN));
    }
}
