//! Updates of connect speeds: RFC 5515, sections 4 and 6.
//!
//! A LAC may update the speeds of the sessions whose ICRQ had the Connect Speed Update Enable AVP. An LNS may ask for the
//! speeds of these.

use base::Instant;
use wire::l2tp::{ConnectSpeed, Message, MessageType, Version};

use super::Endpoint;
use super::read::unreadable;
use crate::event::Event as Told;
use crate::session::{Role, Session, SessionKey, SessionState};
use crate::tunnel::fsm::Event;
use crate::tunnel::{TunnelKey, TunnelState};

/// Speeds in one message. More than that are sent in several messages, so that none is fragmented.
const SPEEDS_MAX: usize = 40;

impl Session {
    /// Whether this is a call whose LAC may update its speeds. `role` is ours.
    fn has_updates(&self, role: Role) -> bool {
        let details = self.details.as_deref();
        self.role == role && details.is_some_and(|details| details.speed_updates)
    }
}

impl Endpoint {
    /// Whether the LNS of a session accepts new speeds: we are its LAC, and said in the ICRQ that we may send them.
    #[must_use]
    pub fn may_update_speed(&self, session: SessionKey) -> bool {
        let one = self.sessions.get(session.0);
        one.is_some_and(|one| {
            one.has_updates(Role::LacIncoming) && one.state == SessionState::Established
        })
    }

    /// Sets the speeds of a session, from the LAC to the remote system and back, in bit/s, and sends a CSUN if they are
    /// new. `None` keeps a speed. `false` if [`Endpoint::may_update_speed`] is.
    pub fn update_speed(
        &mut self,
        session: SessionKey,
        tx_bps: Option<u64>,
        rx_bps: Option<u64>,
    ) -> bool {
        if !self.may_update_speed(session) {
            return false;
        }
        let one = self.session_at_mut(session.0.index);
        let details = one.details.get_or_insert_default();
        let before = (details.tx_speed_bps, details.rx_speed_bps);
        details.tx_speed_bps = tx_bps.unwrap_or(before.0);
        details.rx_speed_bps = rx_bps.unwrap_or(before.1);
        if (details.tx_speed_bps, details.rx_speed_bps) != before {
            let (tunnel, speed) = (one.tunnel, speed_of(one));
            self.compose_speeds(tunnel, MessageType::Csun, &[speed]);
        }
        true
    }

    /// Asks the LAC of a tunnel for the speeds of all its sessions that have updates, with CSURQs. Returns for how many.
    pub fn request_speeds(&mut self, tunnel: TunnelKey) -> usize {
        let known = self.tunnels.get(tunnel.0);
        if known.is_none_or(|one| one.state != TunnelState::Established) {
            return 0;
        }
        let mut asked = Vec::new();
        let mut at = self.tunnel_at(tunnel.0.index).first_session;
        while at != crate::pool::NIL {
            let one = self.session_at(at);
            if one.has_updates(Role::LnsIncoming) && one.state == SessionState::Established {
                asked.push(ConnectSpeed {
                    session: one.remote_id,
                    tx_bps: 0,
                    rx_bps: 0,
                });
            }
            at = one.next;
        }
        for some in asked.chunks(SPEEDS_MAX) {
            self.compose_speeds(tunnel.0.index, MessageType::Csurq, some);
        }
        asked.len()
    }

    /// CSUN or CSURQ. Sessions that are unknown, or that have no updates, are ignored and counted.
    pub(super) fn receive_speeds(&mut self, tunnel: u32, message: &Message<'_>, now: Instant) {
        if let Err(reason) = unreadable(message) {
            return self.end_tunnel(tunnel, Event::Close, reason, now);
        }
        let is_update = message.kind() == MessageType::Csun;
        let role = match is_update {
            true => Role::LnsIncoming,
            false => Role::LacIncoming,
        };
        let mut answer = Vec::new();
        for speed in message.speeds() {
            let found = match message.version() {
                Version::V2 => self.narrow_session(tunnel, speed.session),
                Version::V3 => self.wide_session(speed.session),
            };
            let found = found.filter(|&index| {
                let one = self.session_at(index);
                one.tunnel == tunnel && one.has_updates(role)
            });
            let Some(index) = found else {
                self.counters.speeds_ignored += 1;
                continue;
            };
            if is_update {
                self.take_speed(index, speed);
            } else if self.session_at(index).state == SessionState::Established {
                answer.push(speed_of(self.session_at(index)));
            }
        }
        for some in answer.chunks(SPEEDS_MAX) {
            self.compose_speeds(tunnel, MessageType::Csun, some);
        }
    }

    fn take_speed(&mut self, index: u32, speed: ConnectSpeed) {
        let session = self.session_at_mut(index);
        let key = SessionKey(session.key);
        let details = session.details.get_or_insert_default();
        let own = (&mut details.tx_speed_bps, &mut details.rx_speed_bps);
        if (*own.0, *own.1) == (speed.tx_bps, speed.rx_bps) {
            return;
        }
        (*own.0, *own.1) = (speed.tx_bps, speed.rx_bps);
        self.events.push_back(Told::SpeedChanged {
            session: key,
            tx_bps: speed.tx_bps,
            rx_bps: speed.rx_bps,
        });
    }
}

/// The speeds of a session, for its peer.
fn speed_of(session: &Session) -> ConnectSpeed {
    let details = session.details.as_deref();
    ConnectSpeed {
        session: session.remote_id,
        tx_bps: details.map_or(0, |details| details.tx_speed_bps),
        rx_bps: details.map_or(0, |details| details.rx_speed_bps),
    }
}
