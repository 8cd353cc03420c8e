//! PADR to PADS: RFC 2516, sections 5.3, 5.4 and 9; RFC 4638, section 4.

use base::Instant;
use wire::pppoe::{Code, Discovery, FaultKind, HEADER_LEN, LineInfo, Writer, tag};

use super::fsm::Event;
use super::offer::the_service;
use super::tables::{UNLINKED, find_in, host_hash};
use super::{Endpoint, PACKET_MAX};
use crate::config::OverLimit;
use crate::discard::Discard;
use crate::event::{EndReason, Event as Report};
use crate::route::Route;
use crate::session::{Phase, Role, Session, SessionKey};

/// A PADR that passed the first checks.
struct Request<'a> {
    route: Route,
    tags: Discovery<'a>,
    name: &'a [u8],
    /// The time in its cookie.
    stamp: u64,
    line: Option<LineInfo>,
    line_key: u64,
}

/// Why a PADR is refused, with an error tag.
#[derive(Clone, Copy)]
enum Refused {
    Service,
    ShuttingDown,
    Sessions,
    PerMac,
    PerLine,
    NoId,
}

impl Refused {
    const fn kind(self) -> FaultKind {
        match self {
            Self::Service => FaultKind::ServiceName,
            Self::ShuttingDown | Self::Sessions | Self::PerMac | Self::PerLine | Self::NoId => {
                FaultKind::System
            }
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::ShuttingDown => "shutting down",
            Self::Sessions | Self::NoId => "too many sessions",
            Self::PerMac => "too many sessions of this host",
            Self::PerLine => "too many sessions of this line",
        }
    }
}

impl Endpoint {
    pub(super) fn receive_padr(
        &mut self,
        route: Route,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Discard> {
        self.check_server(&route)?;
        let tags = Discovery::parse(payload)?;
        let name = the_service(&tags)?;
        let cookie = tags.ac_cookie.ok_or(Discard::NoCookie)?;
        let lifetime = self.config.cookie_lifetime;
        let stamp = self.cookies.verify(cookie, &route, lifetime, now)?;
        if !self.outbox.has_room() {
            return Err(Discard::OutboxFull);
        }
        if self.answer_len(&route, &tags, name) > PACKET_MAX {
            return Err(Discard::AnswerTooLong);
        }
        let uniq = tags.host_uniq.unwrap_or_default();
        if let Some(index) = self.find_request(&route, stamp, uniq) {
            self.counters.padrs_repeated += 1;
            self.confirm(index, &tags);
            return Ok(());
        }
        self.check_rate(&route, now)?;
        let line = tags.line.and_then(LineInfo::parse);
        let line_key = self.line_key(&route, line.as_ref());
        let request = Request {
            route,
            tags,
            name,
            stamp,
            line,
            line_key,
        };
        match self.admit(&request)? {
            Ok(id) => self.accept(request, id, now),
            Err(why) => self.refuse(&request, why),
        }
        Ok(())
    }

    fn check_rate(&mut self, route: &Route, now: Instant) -> Result<(), Discard> {
        let limits = &self.config.limits;
        let host = host_hash(&self.hasher, route);
        // First, so that one host cannot use up the rate of all.
        let per_s = limits.padrs_per_mac_per_s;
        if !self.padrs_of_hosts.take(host, per_s, now) {
            return Err(Discard::PadrRatePerMac);
        }
        if !self.padrs.take(limits.padrs_per_s, now) {
            return Err(Discard::PadrRate);
        }
        Ok(())
    }

    /// Checks the limits, ends the session that the new one replaces, and draws an id.
    fn admit(&mut self, request: &Request<'_>) -> Result<Result<u16, Refused>, Discard> {
        let limits = self.config.limits;
        let port = self.port(request.route.port).ok_or(Discard::UnknownPort)?;
        if self.shutting_down {
            return Ok(Err(Refused::ShuttingDown));
        }
        if !self.accepts(port, request.name) {
            return Ok(Err(Refused::Service));
        }
        let over = |count: u32, most: u32| most != 0 && count >= most;
        let own = self.host_sessions(&request.route);
        let replaced = own.filter(|(_, count)| over(*count, limits.sessions_per_mac_max));
        if replaced.is_some() && self.config.over_mac_limit == OverLimit::Refuse {
            return Ok(Err(Refused::PerMac));
        }
        // The session that is replaced makes room for the new one.
        let old = replaced.map(|(index, _)| self.at(index));
        let freed = u32::from(old.is_some());
        let freed_half = u32::from(old.is_some_and(|old| old.phase == Phase::HalfOpen));
        let freed_line = u32::from(old.is_some_and(|old| old.line_key == request.line_key));
        if self.count() as u32 - freed >= limits.sessions_max {
            return Ok(Err(Refused::Sessions));
        }
        let of_line = self.line_sessions(request.line_key);
        if request.line_key != 0 && over(of_line - freed_line, limits.sessions_per_line_max) {
            return Ok(Err(Refused::PerLine));
        }
        if over(self.half_open - freed_half, limits.half_open_max) {
            return Err(Discard::HalfOpenLimit);
        }
        if let Some((oldest, _)) = replaced {
            self.end_by(oldest, Event::End, EndReason::Replaced);
        }
        Ok(self.draw_id(&request.route).ok_or(Refused::NoId))
    }

    /// An id that this host does not use. It may use an id in a client session of ours.
    fn draw_id(&mut self, route: &Route) -> Option<u16> {
        let Self {
            ids,
            random,
            by_id,
            sessions,
            hasher,
            ..
        } = self;
        let taken = |id| find_in(by_id, sessions, hasher, (route.port, route.peer, id)).is_some();
        ids.take(random, taken)
    }

    fn accept(&mut self, request: Request<'_>, id: u16, now: Instant) {
        let Request {
            route,
            tags,
            name,
            stamp,
            line,
            line_key,
        } = request;
        let own = self.config.max_payload;
        let port = self.port(route.port);
        let max_payload = port.map_or(0, |port| {
            port.payload_over(tags.max_payload, own, route.vlans)
                .unwrap_or_else(|| port.payload_standard(route.vlans))
        });
        let index = self.insert(|key| Session {
            key,
            route,
            id,
            role: Role::Server,
            phase: Phase::HalfOpen,
            max_payload,
            since: now,
            timer: None,
            stamp,
            line_key,
            host_next: UNLINKED,
            host_before: UNLINKED,
            host_count: 0,
            service_name: name.into(),
            host_uniq: tags.host_uniq.unwrap_or_default().into(),
            line,
            client: None,
        });
        self.half_open += 1;
        self.arm(index, now + self.config.setup_timeout);
        self.counters.sessions_up += 1;
        let session = SessionKey(self.at(index).key);
        self.events.push_back(Report::SessionUp { session });
        self.confirm(index, &tags);
    }

    /// Sends the PADS of a session, also again: the tags to return are those of the PADR.
    fn confirm(&mut self, index: u32, tags: &Discovery<'_>) {
        let (route, id) = (self.at(index).route, self.at(index).id);
        self.send_pads(route, id, tags, |_| {});
    }

    /// A PADS with an error tag and without a session (RFC 2516, section 5.4).
    fn refuse(&mut self, request: &Request<'_>, why: Refused) {
        let counters = &mut self.counters;
        *match why {
            Refused::Service => &mut counters.refused_service,
            Refused::ShuttingDown => &mut counters.refused_shutting_down,
            Refused::Sessions => &mut counters.refused_sessions,
            Refused::PerMac => &mut counters.refused_per_mac,
            Refused::PerLine => &mut counters.refused_per_line,
            Refused::NoId => &mut counters.refused_no_id,
        } += 1;
        self.send_pads(request.route, 0, &request.tags, |writer| {
            writer.tag(why.kind().tag(), why.text().as_bytes());
        });
    }

    /// "The PADS packet contains exactly one TAG of TAG_TYPE Service-Name ..., and any number of other TAG types" (RFC
    /// 2516, section 5.4).
    fn send_pads(
        &mut self,
        route: Route,
        id: u16,
        tags: &Discovery<'_>,
        more: impl FnOnce(&mut Writer<'_>),
    ) {
        let mut outbox = core::mem::take(&mut self.outbox);
        if let Some(port) = self.port(route.port) {
            outbox.push(route, PACKET_MAX, |out| {
                let mut writer = Writer::new(out, Code::PADS, id);
                writer.tag(tag::SERVICE_NAME, tags.service_name.unwrap_or_default());
                writer.tag(tag::AC_NAME, self.ac_name(port));
                self.write_returned(&mut writer, port, route.vlans, tags);
                more(&mut writer);
                writer.finish();
            });
        }
        self.outbox = outbox;
        self.counters.sent_pads += 1;
    }

    /// The most bytes that the PADS for these tags has.
    fn answer_len(&self, route: &Route, tags: &Discovery<'_>, name: &[u8]) -> usize {
        /// Tags of a PADS: Service-Name, AC-Name, Host-Uniq, Relay-Session-Id, PPP-Max-Payload and an error.
        const TAGS: usize = 6;
        let ac_name = self
            .port(route.port)
            .map_or(0, |port| self.ac_name(port).len());
        let returned = [tags.host_uniq, tags.relay_session_id];
        let returned: usize = returned.iter().flatten().map(|value| value.len()).sum();
        HEADER_LEN
            + TAGS * 4
            + name.len()
            + ac_name
            + returned
            + 2
            + "too many sessions of this host".len()
    }
}
