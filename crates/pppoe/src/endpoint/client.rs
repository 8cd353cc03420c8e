//! Client sessions: RFC 2516, sections 5.1 to 5.4 and 8; RFC 4638, section 4.

use base::slab::Key;
use base::{Duration, Instant};
use wire::pppoe::{
    ADSL_FORUM, Code, Discovery, HEADER_LEN, LineInfo, Mac, SESSION_RESERVED, Vlans, Writer, tag,
};

use super::fsm::{Event, Step, step};
use super::tables::UNLINKED;
use super::{Endpoint, PACKET_MAX};
use crate::discard::Discard;
use crate::event::{EndReason, Event as Report, Refusal};
use crate::route::Route;
use crate::session::{Client, Phase, Role, Session, SessionKey};

/// The longest PADI, "so as to leave sufficient room for a relay agent" (RFC 2516, section 5.1).
const PADI_MAX: usize = 1_484;
/// Octets of our Host-Uniq: the session's index and random ones.
const UNIQ_LEN: usize = 12;

/// What a client session asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// The Service-Name; empty: any service.
    pub service_name: Box<[u8]>,
    /// The only AC-Name that is accepted; `None`: any.
    pub ac_name: Option<Box<[u8]>>,
    /// The line's values, which are sent in PADI and PADR as an access node would add them (TR-101); `None` for an
    /// ordinary host.
    pub line: Option<LineInfo>,
    /// The largest PPP payload in bytes; above 1492 it is asked for by PPP-Max-Payload (RFC 4638), as far as the
    /// port's MTU allows.
    pub max_payload: u16,
    /// The wait for the first answer. It doubles with each retransmission.
    pub wait: Duration,
    /// The longest wait for an answer.
    pub wait_max: Duration,
    /// PADIs sent before the session ends, 1 or more.
    pub padis: u32,
    /// PADRs sent to an access concentrator before the client starts again with a PADI, 1 or more.
    pub padrs: u32,
}

impl Default for Dial {
    fn default() -> Self {
        Self {
            service_name: Box::default(),
            ac_name: None,
            line: None,
            max_payload: 1500,
            wait: Duration::from_secs(2),
            wait_max: Duration::from_secs(32),
            padis: 5,
            padrs: 4,
        }
    }
}

/// Why no client session was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The port was not added.
    #[error("no such port")]
    UnknownPort,
    /// The table of sessions is full.
    #[error("too many sessions")]
    SessionLimit,
    /// The endpoint is being shut down.
    #[error("shutting down")]
    ShuttingDown,
    /// The PADI would be longer than 1484 bytes.
    #[error("the Service-Name and the line's values are too long")]
    TooLong,
}

/// The most bytes of a PADI: Service-Name, Host-Uniq, PPP-Max-Payload and Vendor-Specific.
fn request_len(service: &[u8], line: Option<&LineInfo>) -> usize {
    let line = line.map_or(0, |line| 4 + 4 + line.as_bytes().len());
    HEADER_LEN + 3 * 4 + service.len() + UNIQ_LEN + 2 + line
}

impl Endpoint {
    /// Starts a client session: sends a PADI and takes the first offer that has the wanted AC-Name and Service-Name.
    /// [`Event::SessionUp`](crate::Event::SessionUp) or [`Event::SessionDown`](crate::Event::SessionDown) follows.
    ///
    /// # Errors
    /// There is no such port or no room.
    pub fn dial(
        &mut self,
        port: u16,
        vlans: Vlans,
        dial: Dial,
        now: Instant,
    ) -> Result<SessionKey, DialError> {
        let config = self.port(port).ok_or(DialError::UnknownPort)?;
        if self.shutting_down {
            return Err(DialError::ShuttingDown);
        }
        if self.count() >= self.config.limits.sessions_max as usize {
            return Err(DialError::SessionLimit);
        }
        if request_len(&dial.service_name, dial.line.as_ref()) > PADI_MAX {
            return Err(DialError::TooLong);
        }
        let asked = config.payload_over(Some(dial.max_payload), u16::MAX, vlans);
        let max_payload = config.payload_standard(vlans).min(dial.max_payload);
        let peer = Mac::BROADCAST;
        let route = Route { port, peer, vlans };
        let random: [u8; UNIQ_LEN - 4] = self.random.bytes();
        let client = Client::new(&dial, asked);
        let index = self.insert(|key| Session {
            key,
            route,
            id: 0,
            role: Role::Client,
            phase: Phase::Soliciting,
            max_payload,
            since: now,
            timer: None,
            stamp: 0,
            line_key: 0,
            host_next: UNLINKED,
            host_before: UNLINKED,
            host_count: 0,
            service_name: dial.service_name,
            host_uniq: [&key.index.to_be_bytes()[..], &random].concat().into(),
            line: dial.line,
            client: Some(Box::new(client)),
        });
        self.dialing += 1;
        self.send_client(index, now);
        Ok(SessionKey(self.at(index).key))
    }

    /// Marks a client's present packet as ready to send, and arms the timer for its answer.
    fn send_client(&mut self, index: u32, now: Instant) {
        let key = self.at(index).key;
        let client = self.client_mut(index);
        let wait = client.wait;
        client.wait = wait.saturating_mul(2).min(client.wait_max);
        if !core::mem::replace(&mut client.is_ready, true) {
            self.ready.push_back(key);
        }
        self.arm(index, now + wait);
    }

    fn client_mut(&mut self, index: u32) -> &mut Client {
        let client = self.at_mut(index).client.as_deref_mut();
        client.expect("a session in these phases is a client")
    }

    /// Appends a client's packet. `None` if it needs none any more.
    pub(super) fn write_client(&mut self, key: Key, out: &mut Vec<u8>) -> Option<Route> {
        let Self {
            sessions, counters, ..
        } = self;
        let session = sessions.get_mut(key)?;
        let client = session.client.as_deref_mut()?;
        client.is_ready = false;
        let (code, counter) = match session.phase {
            Phase::Soliciting => (Code::PADI, &mut counters.sent_padi),
            Phase::Requesting => (Code::PADR, &mut counters.sent_padr),
            Phase::HalfOpen | Phase::Established | Phase::Ending => return None,
        };
        let mut writer = Writer::new(out, code, 0);
        writer.tag(tag::SERVICE_NAME, &session.service_name);
        writer.tag(tag::HOST_UNIQ, &session.host_uniq);
        if let Some(asked) = client.max_payload {
            writer.tag(tag::PPP_MAX_PAYLOAD, &asked.to_be_bytes());
        }
        if let Some(line) = &session.line {
            let vendor = ADSL_FORUM.to_be_bytes();
            writer.tag(tag::VENDOR_SPECIFIC, &[&vendor, line.as_bytes()].concat());
        }
        writer.tag_if(tag::AC_COOKIE, client.cookie.as_deref());
        writer.tag_if(tag::RELAY_SESSION_ID, client.relay_session_id.as_deref());
        writer.finish();
        *counter += 1;
        counters.retransmissions += u64::from(core::mem::replace(&mut client.has_sent, true));
        Some(session.route)
    }

    /// The client session that a Host-Uniq belongs to.
    fn find_client(&self, route: &Route, uniq: Option<&[u8]>) -> Result<u32, Discard> {
        let uniq = uniq.unwrap_or_default();
        let index = uniq.first_chunk().map(|index| u32::from_be_bytes(*index));
        let session = index.and_then(|index| self.sessions.at(index));
        session
            .filter(|session| session.role == Role::Client && *session.host_uniq == *uniq)
            .filter(|session| {
                session.route.port == route.port && session.route.vlans == route.vlans
            })
            .map(|session| session.key.index)
            .ok_or(Discard::UnknownHostUniq)
    }

    pub(super) fn receive_pado(
        &mut self,
        route: Route,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Discard> {
        let tags = Discovery::parse(payload)?;
        let index = self.find_client(&route, tags.host_uniq)?;
        let Step::To(phase) = step(self.at(index).phase, Event::Offer) else {
            return Err(Discard::Unexpected);
        };
        let name = self.check_offer(index, &tags)?;
        let session = self.at_mut(index);
        session.phase = phase;
        session.route.peer = route.peer;
        self.client_mut(index).choose(name, &tags);
        self.send_client(index, now);
        Ok(())
    }

    /// The AC-Name of an offer that has what a session wants.
    fn check_offer<'a>(&self, index: u32, tags: &Discovery<'a>) -> Result<&'a [u8], Discard> {
        let session = self.at(index);
        let wanted = session
            .client
            .as_deref()
            .and_then(|client| client.ac_name_wanted.as_deref());
        let name = tags.ac_name.ok_or(Discard::BadOffer)?;
        if tags.fault.is_some() {
            return Err(Discard::BadOffer);
        }
        if wanted.is_some_and(|wanted| wanted != name) {
            return Err(Discard::OtherAc);
        }
        let service = &*session.service_name;
        if !service.is_empty() && !tags.service_names().any(|offered| offered == service) {
            return Err(Discard::OtherService);
        }
        // The PADR returns what the PADO has.
        let returned = [tags.ac_cookie, tags.relay_session_id];
        let returned: usize = returned.iter().flatten().map(|value| value.len()).sum();
        if request_len(service, session.line.as_ref()) + 2 * 4 + returned > PACKET_MAX {
            return Err(Discard::AnswerTooLong);
        }
        Ok(name)
    }

    pub(super) fn receive_pads(
        &mut self,
        route: Route,
        id: u16,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Discard> {
        let tags = Discovery::parse(payload)?;
        let index = self.find_client(&route, tags.host_uniq)?;
        let phase = self.at(index).phase;
        let Step::To(next) = step(phase, Event::Confirm) else {
            return Err(Discard::Unexpected);
        };
        if self.at(index).route.peer != route.peer {
            return Err(Discard::OtherPeer);
        }
        if id == 0 || tags.fault.is_some() {
            let refusal = EndReason::Refused(Refusal::new(tags.fault));
            self.end_by(index, Event::Refusal, refusal);
            return Ok(());
        }
        if id == SESSION_RESERVED || self.find_index(route.port, route.peer, id).is_some() {
            return Err(Discard::BadSession);
        }
        self.disarm(index);
        self.dialing -= 1;
        let session = self.at_mut(index);
        let client = session.client.as_deref_mut();
        let asked = client.and_then(|client| {
            client.settle();
            client.max_payload
        });
        session.phase = next;
        session.id = id;
        session.since = now;
        // "Both the PPPoE client and server have indicated the ability" (RFC 4638, section 5.1).
        if let (Some(asked), Some(echo @ 1493..)) = (asked, tags.max_payload) {
            session.max_payload = asked.min(echo);
        }
        let session = SessionKey(session.key);
        self.enter_id(index);
        self.counters.sessions_up += 1;
        self.events.push_back(Report::SessionUp { session });
        Ok(())
    }

    /// The answer to a client's packet did not arrive in time.
    pub(super) fn client_due(&mut self, index: u32, now: Instant) {
        let phase = self.at(index).phase;
        let client = self.client_mut(index);
        let left = match phase {
            Phase::Requesting => &mut client.padrs_left,
            _ => &mut client.padis_left,
        };
        let event = match left.checked_sub(1) {
            Some(fewer) => {
                *left = fewer;
                Event::Timeout
            }
            None => Event::Exhausted,
        };
        match step(phase, event) {
            Step::Retransmit => self.send_client(index, now),
            Step::To(next) => self.solicit_again(index, next, now),
            Step::Remove | Step::Terminate | Step::Ignore => {
                let reason = match self.client_mut(index).had_offer {
                    true => EndReason::NoPads,
                    false => EndReason::NoPado,
                };
                self.end_by(index, event, reason);
            }
        }
    }

    /// Forgets the access concentrator that does not answer, and looks for one again.
    fn solicit_again(&mut self, index: u32, next: Phase, now: Instant) {
        let client = self.client_mut(index);
        let Some(fewer) = client.padis_left.checked_sub(1) else {
            return self.end_by(index, Event::End, EndReason::NoPads);
        };
        client.padis_left = fewer;
        client.forget();
        let session = self.at_mut(index);
        session.route.peer = Mac::BROADCAST;
        session.phase = next;
        self.send_client(index, now);
    }
}

impl Client {
    fn new(dial: &Dial, max_payload: Option<u16>) -> Self {
        Self {
            ac_name_wanted: dial.ac_name.clone(),
            ac_name: Box::default(),
            cookie: None,
            relay_session_id: None,
            max_payload,
            first_wait: dial.wait,
            wait: dial.wait,
            wait_max: dial.wait_max,
            padis_left: dial.padis.saturating_sub(1),
            padrs_left: 0,
            padrs_each: dial.padrs,
            is_ready: false,
            has_sent: false,
            had_offer: false,
        }
    }

    /// Takes what the PADR returns from a PADO.
    fn choose(&mut self, ac_name: &[u8], tags: &Discovery<'_>) {
        self.ac_name = ac_name.into();
        self.cookie = tags.ac_cookie.map(Into::into);
        self.relay_session_id = tags.relay_session_id.map(Into::into);
        self.padrs_left = self.padrs_each.saturating_sub(1);
        self.had_offer = true;
        self.restart();
    }

    fn forget(&mut self) {
        self.ac_name = Box::default();
        self.settle();
        self.restart();
    }

    /// Drops what only a PADR needs.
    fn settle(&mut self) {
        self.cookie = None;
        self.relay_session_id = None;
    }

    /// Another packet follows: its waits begin anew.
    fn restart(&mut self) {
        self.wait = self.first_wait;
        self.has_sent = false;
    }
}
