//! A DHCPv6 client that asks for one delegated prefix (RFC 8415, sections 6.3 and 18.2), without I/O.
//!
//! Messages and time go in, messages and [`PrefixEvent`]s come out. Left out: addresses (hosts of a PPP link form theirs
//! from a Router Advertisement), Confirm and Decline, which are about addresses alone, Information-request, Reconfigure,
//! authentication, and messages to a server's unicast address.

use aaa::Prefix;
use base::{Duration, Instant};
use core::net::Ipv6Addr;
use wire::dhcpv6::{Association, Kind, Lease, Message, Options, Status, Writer, code};

use super::fsm::{Event, State, Step, step};
use super::retransmit::{Course, Limits};
use crate::random::Random;
use crate::v6::SERVERS_MAX;

/// SOL_MAX_RT (section 7.6), and the values that a server may set (section 21.24).
const SOLICIT_MOST_S: u32 = 3_600;
const SOLICIT_MOST_RANGE_S: core::ops::RangeInclusive<u32> = 60..=86_400;
/// SOL_MAX_DELAY.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// Wait before another attempt after a server refused a Request.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);
/// A lifetime that never ends (section 7.7).
const INFINITE: u32 = u32::MAX;
/// The preference of a server whose Advertise ends the collection (section 18.2.1).
const PREFERENCE_MOST: u8 = 255;
/// The longest DUID of a server that is kept, with its type (section 11.1).
const DUID_MAX: usize = wire::dhcpv6::DUID_MAX;

/// What a client asks for, and its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixWish {
    /// The client's DUID (section 11). It must not change.
    pub duid: Box<[u8]>,
    /// The id of the association.
    pub iaid: u32,
    /// The wanted prefix length, as a hint.
    pub length: Option<u8>,
    /// Whether Rapid Commit is sent (section 21.14).
    pub rapid_commit: bool,
}

/// What a client has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegated {
    /// The prefix.
    pub prefix: Prefix,
    /// Until when it is preferred.
    pub preferred_until: Instant,
    /// Until when it is valid.
    pub valid_until: Instant,
    /// The server's name servers.
    pub dns: Vec<Ipv6Addr>,
}

/// An event of a [`PrefixClient`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixEvent {
    /// It has a prefix, or its lifetimes or name servers changed.
    Leased(Delegated),
    /// It has no prefix any more.
    Lost(Prefix),
}

/// Why a message was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unheeded {
    /// It is malformed, or repeats an option.
    #[error("malformed")]
    Malformed,
    /// It is of a kind that clients do not receive, or that no exchange waits for.
    #[error("unexpected kind")]
    Kind,
    /// Its transaction is not that of the exchange.
    #[error("another transaction")]
    Transaction,
    /// It has no Server Identifier, or one that is too long, or not that of the chosen server.
    #[error("wrong server")]
    Server,
    /// Its Client Identifier is not ours.
    #[error("another client")]
    Client,
    /// It has no prefix that can be used.
    #[error("no prefix")]
    NoPrefix,
}

/// A lease.
#[derive(Clone, Debug)]
struct Held {
    delegated: Delegated,
    /// The prefix's address.
    address: Ipv6Addr,
    t1: Instant,
    t2: Instant,
}

/// An Advertise.
#[derive(Clone, Debug)]
struct Offer {
    server: Box<[u8]>,
    preference: u8,
    lease: Lease,
}

/// The client.
pub struct PrefixClient {
    wish: PrefixWish,
    random: Random,
    state: State,
    transaction: [u8; 3],
    course: Option<Course>,
    /// When the wait is over, or the retransmission time.
    due: Instant,
    /// The server of the exchange.
    server: Option<Box<[u8]>>,
    /// The best Advertise so far.
    offer: Option<Offer>,
    /// The prefix that a Request asks for.
    asked: Option<Lease>,
    held: Option<Held>,
    solicit_most_s: u32,
    /// Whether a message is to be sent.
    is_ready: bool,
    events: Vec<PrefixEvent>,
}

/// What a valid message has.
struct Heard<'a> {
    kind: Kind,
    server: &'a [u8],
    options: Options<'a>,
    /// The association's T1 and T2, and its first prefix.
    lease: Option<(u32, u32, Lease)>,
    status: u16,
}

impl PrefixClient {
    /// A client that does nothing yet. Equal seeds and inputs give equal outputs.
    #[must_use]
    pub fn new(wish: PrefixWish, seed: [u8; 32]) -> Self {
        Self {
            wish,
            random: Random::new(seed),
            state: State::Off,
            transaction: [0; 3],
            course: None,
            due: Instant::FAR_FUTURE,
            server: None,
            offer: None,
            asked: None,
            held: None,
            solicit_most_s: SOLICIT_MOST_S,
            is_ready: false,
            events: Vec::new(),
        }
    }

    /// The prefix, while there is one.
    #[must_use]
    pub fn delegated(&self) -> Option<&Delegated> {
        self.held.as_ref().map(|held| &held.delegated)
    }

    /// A short name of the state, for tables.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match self.state {
            State::Off => "off",
            State::Waiting => "waiting",
            State::Soliciting => "soliciting",
            State::Requesting => "requesting",
            State::Bound => "bound",
            State::Renewing => "renewing",
            State::Rebinding => "rebinding",
            State::Releasing => "releasing",
        }
    }

    /// The link is up: asks for a prefix.
    pub fn start(&mut self, now: Instant) {
        self.happens(Event::Start, now);
    }

    /// Gives the prefix back.
    pub fn release(&mut self, now: Instant) {
        self.happens(Event::Release, now);
    }

    /// The link is down: the prefix is lost at once.
    pub fn stop(&mut self, now: Instant) {
        self.happens(Event::Stop, now);
    }

    /// When [`PrefixClient::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let lease = self.held.as_ref().map(|held| {
            let next = match self.state {
                State::Bound => held.t1,
                State::Renewing => held.t2,
                _ => Instant::FAR_FUTURE,
            };
            next.min(held.delegated.valid_until)
        });
        let at = lease.map_or(self.due, |lease| lease.min(self.due));
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// Does what is due. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.poll_timeout().is_some_and(|at| at <= now) {
            let lease = self.held.as_ref();
            let passed = |at: fn(&Held) -> Instant| lease.is_some_and(|held| at(held) <= now);
            let event = if passed(|held| held.delegated.valid_until) {
                self.lose();
                Event::Expired
            } else if self.state == State::Bound && passed(|held| held.t1) {
                Event::T1
            } else if self.state == State::Renewing && passed(|held| held.t2) {
                Event::T2
            } else if self.state == State::Soliciting && self.offer.is_some() {
                Event::Chosen
            } else {
                Event::Due
            };
            self.happens(event, now);
        }
    }

    /// Takes the content of a datagram to the client's port.
    ///
    /// # Errors
    /// See [`Unheeded`]: it changed nothing.
    pub fn receive(&mut self, content: &[u8], now: Instant) -> Result<(), Unheeded> {
        let heard = self.check(content)?;
        self.heed_solicit_most(heard.options);
        match heard.kind {
            Kind::Advertise => self.advertised(&heard, now),
            _ => self.replied(&heard, now),
        }
    }

    /// Appends the message that is to be sent now; `false` if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if !core::mem::take(&mut self.is_ready) {
            return false;
        }
        let Some((kind, course)) = self.kind().zip(self.course) else {
            return false;
        };
        self.compose(kind, course.elapsed(now), now, out);
        true
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<PrefixEvent> {
        (!self.events.is_empty()).then(|| self.events.remove(0))
    }

    /// The message of the present exchange.
    const fn kind(&self) -> Option<Kind> {
        match self.state {
            State::Off | State::Waiting | State::Bound => None,
            State::Soliciting => Some(Kind::Solicit),
            State::Requesting => Some(Kind::Request),
            State::Renewing => Some(Kind::Renew),
            State::Rebinding => Some(Kind::Rebind),
            State::Releasing => Some(Kind::Release),
        }
    }

    fn happens(&mut self, event: Event, now: Instant) {
        match step(self.state, event) {
            Step::Ignore => {}
            Step::Resend => self.resend(now),
            Step::To(state) => self.enter(state, event, now),
        }
    }

    fn resend(&mut self, now: Instant) {
        let random = self.random.u64();
        let Some(course) = &mut self.course else {
            return;
        };
        if !course.again(random) {
            return self.happens(Event::Exhausted, now);
        }
        self.due = now + course.time();
        self.is_ready = true;
    }

    /// Changes the state, and starts its exchange.
    fn enter(&mut self, state: State, event: Event, now: Instant) {
        self.state = state;
        self.course = None;
        self.is_ready = false;
        self.due = Instant::FAR_FUTURE;
        match state {
            State::Off => {
                self.lose();
                self.offer = None;
                self.server = None;
            }
            State::Waiting => {
                self.lose();
                let wait = match event {
                    Event::Start => DELAY_MAX,
                    _ => AFTER_REFUSAL,
                };
                let share = self.random.u64() >> 32;
                let least = if event == Event::Start {
                    0
                } else {
                    wait.as_nanos() / 2
                };
                let span = (u128::from(wait.as_nanos() - least) * u128::from(share)) >> 32;
                self.due = now + Duration::from_nanos(least + span as u64);
            }
            State::Soliciting => {
                self.lose();
                self.offer = None;
                self.server = None;
                self.begin(Limits::solicit(self.solicit_most_s), now);
            }
            State::Requesting => {
                if let Some(offer) = self.offer.take() {
                    self.server = Some(offer.server);
                    self.asked = Some(offer.lease);
                }
                self.begin(Limits::REQUEST, now);
            }
            State::Bound => self.offer = None,
            State::Renewing => self.begin(Limits::RENEW, now),
            State::Rebinding => self.begin(Limits::REBIND, now),
            State::Releasing => {
                self.asked = self.held.as_ref().map(|held| wanted(held, now));
                self.lose();
                self.begin(Limits::RELEASE, now);
            }
        }
    }

    /// Starts an exchange: another transaction, and its first message.
    fn begin(&mut self, limits: Limits, now: Instant) {
        let [a, b, c, ..] = self.random.u64().to_be_bytes();
        self.transaction = [a, b, c];
        let course = Course::new(limits, self.random.u64(), now);
        self.due = now + course.time();
        self.course = Some(course);
        self.is_ready = true;
    }

    /// Drops the lease.
    fn lose(&mut self) {
        if let Some(held) = self.held.take() {
            let prefix = held.delegated.prefix;
            self.events.push(PrefixEvent::Lost(prefix));
        }
    }

    /// The checks of sections 16.3 and 16.10.
    fn check<'a>(&self, content: &'a [u8]) -> Result<Heard<'a>, Unheeded> {
        let malformed = |_| Unheeded::Malformed;
        let message = Message::read(content).map_err(|_| Unheeded::Malformed)?;
        let is_awaited = match message.kind {
            Kind::Advertise => self.state == State::Soliciting,
            Kind::Reply => self.kind().is_some(),
            _ => false,
        };
        if !is_awaited {
            return Err(Unheeded::Kind);
        }
        if message.transaction != self.transaction {
            return Err(Unheeded::Transaction);
        }
        let options = message.options;
        let server = options.only(code::SERVER_ID).map_err(malformed)?;
        let server = server.filter(|server| (1..=DUID_MAX).contains(&server.len()));
        let client = options.only(code::CLIENT_ID).map_err(malformed)?;
        if client != Some(&*self.wish.duid) {
            return Err(Unheeded::Client);
        }
        let lease = self.lease(options);
        Ok(Heard {
            kind: message.kind,
            server: server.ok_or(Unheeded::Server)?,
            options,
            status: self.status(options),
            lease,
        })
    }

    /// The association of ours: its T1 and T2, and the prefix that we have, or else its first one. Valid ones come first.
    fn lease(&self, options: Options<'_>) -> Option<(u32, u32, Lease)> {
        let own = self.association(options)?;
        // "discards the IA_PD option" (section 21.21).
        if own.t1_s > own.t2_s && own.t2_s > 0 {
            return None;
        }
        let usable = |lease: &Lease| lease.preferred_s <= lease.valid_s && prefix(lease).is_some();
        let held = self.held.as_ref().map(|held| held.delegated.prefix);
        let is_held = |lease: &Lease| prefix(lease) == held;
        let is_valid = |lease: &Lease| lease.valid_s > 0;
        let leases = || own.leases().filter(usable);
        // A server may withdraw the prefix that we have, and lease another one beside it.
        let lease = leases().find(|lease| is_held(lease) && is_valid(lease));
        let lease = lease.or_else(|| leases().find(is_valid));
        let lease = lease.or_else(|| leases().find(is_held));
        let lease = lease.or_else(|| leases().next())?;
        Some((own.t1_s, own.t2_s, lease))
    }

    fn association<'a>(&self, options: Options<'a>) -> Option<Association<'a>> {
        let all = options.filter(|one| one.code == code::IA_PD);
        let mut own = all.filter_map(|one| Association::read(one.value));
        own.find(|one| one.iaid == self.wish.iaid)
    }

    /// The status of the message, or else of our association; 0 for success.
    fn status(&self, options: Options<'_>) -> u16 {
        let of = |options: Options<'_>| {
            let value = options.only(code::STATUS).ok()??;
            value
                .first_chunk()
                .map(|octets| u16::from_be_bytes(*octets))
        };
        let own = self.association(options).and_then(|own| of(own.options));
        of(options)
            .filter(|status| *status != 0)
            .or(own)
            .unwrap_or(0)
    }

    fn heed_solicit_most(&mut self, options: Options<'_>) {
        let value = options.only(code::SOL_MAX_RT).ok().flatten();
        let seconds = value
            .and_then(|value| value.try_into().ok())
            .map(u32::from_be_bytes);
        if let Some(seconds) = seconds.filter(|seconds| SOLICIT_MOST_RANGE_S.contains(seconds)) {
            self.solicit_most_s = seconds;
        }
    }

    fn advertised(&mut self, heard: &Heard<'_>, now: Instant) -> Result<(), Unheeded> {
        let (_, _, lease) = heard.lease.ok_or(Unheeded::NoPrefix)?;
        if heard.status != Status::Success as u16 || lease.valid_s == 0 {
            return Err(Unheeded::NoPrefix);
        }
        let preference = heard.options.only(code::PREFERENCE).ok().flatten();
        let preference = preference.and_then(|value| value.first().copied());
        let preference = preference.unwrap_or(0);
        let best = self.offer.as_ref().map(|offer| offer.preference);
        if best.is_none_or(|best| preference > best) {
            self.offer = Some(Offer {
                server: heard.server.into(),
                preference,
                lease,
            });
        }
        let collects = self.course.is_some_and(|course| course.is_first());
        if preference == PREFERENCE_MOST || !collects {
            self.happens(Event::Chosen, now);
        }
        Ok(())
    }

    fn replied(&mut self, heard: &Heard<'_>, now: Instant) -> Result<(), Unheeded> {
        match self.state {
            // "discard any Reply messages that do not contain the Rapid Commit option" (section 18.2.1).
            State::Soliciting
                if !self.wish.rapid_commit || !heard.options.has(code::RAPID_COMMIT) =>
            {
                return Err(Unheeded::Kind);
            }
            State::Requesting | State::Renewing | State::Releasing
                if self.server.as_deref() != Some(heard.server) =>
            {
                return Err(Unheeded::Server);
            }
            _ => {}
        }
        if self.state == State::Releasing {
            self.happens(Event::Granted, now);
            return Ok(());
        }
        let event = match (heard.status, heard.lease) {
            (0, Some((_, _, lease))) if lease.valid_s == 0 => Event::Withdrawn,
            (0, Some((t1_s, t2_s, lease))) => {
                self.hold(heard, (t1_s, t2_s), &lease, now)?;
                Event::Granted
            }
            (status, _) if status == Status::NoBinding as u16 => {
                self.server = Some(heard.server.into());
                self.asked = self.held.as_ref().map(|held| wanted(held, now));
                self.lose();
                Event::NoBinding
            }
            _ => Event::Refused,
        };
        self.happens(event, now);
        Ok(())
    }

    /// Keeps a lease (section 18.2.10.1).
    fn hold(
        &mut self,
        heard: &Heard<'_>,
        (t1_s, t2_s): (u32, u32),
        lease: &Lease,
        now: Instant,
    ) -> Result<(), Unheeded> {
        let prefix = prefix(lease).ok_or(Unheeded::NoPrefix)?;
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.delegated.prefix != prefix)
        {
            self.lose();
        }
        // Without times of the server: 0.5 and 0.8 of the preferred lifetime (section 21.21). Never at once (14.2).
        let share = |tenths: u64| {
            let lifetime = match lease.preferred_s {
                0 => lease.valid_s,
                preferred_s => preferred_s,
            };
            let seconds = u64::from(lifetime) * tenths / 10;
            u32::try_from(seconds.max(1)).unwrap_or(INFINITE)
        };
        let endless = lease.preferred_s == INFINITE;
        let own = |given: u32, tenths| match given {
            0 if endless => INFINITE,
            0 => share(tenths),
            given => given,
        };
        let t1 = after(own(t1_s, 5), now);
        let delegated = Delegated {
            prefix,
            preferred_until: after(lease.preferred_s, now),
            valid_until: after(lease.valid_s, now),
            dns: servers(heard.options),
        };
        self.server = Some(heard.server.into());
        self.held = Some(Held {
            t1,
            address: network(lease),
            t2: after(own(t2_s, 8), now).max(t1),
            delegated: delegated.clone(),
        });
        self.events.push(PrefixEvent::Leased(delegated));
        Ok(())
    }

    /// Appends a message.
    fn compose(&self, kind: Kind, elapsed: u16, now: Instant, out: &mut Vec<u8>) {
        let mut message = Writer::new(kind, self.transaction, out);
        message.option(code::CLIENT_ID, &[&self.wish.duid]);
        if let Some(server) = &self.server
            && matches!(kind, Kind::Request | Kind::Renew | Kind::Release)
        {
            message.option(code::SERVER_ID, &[server]);
        }
        message.option(code::ELAPSED_TIME, &[&elapsed.to_be_bytes()]);
        if kind != Kind::Release {
            let wanted = [code::SOL_MAX_RT, code::DNS_SERVERS].map(u16::to_be_bytes);
            message.option(code::ORO, &[wanted.as_flattened()]);
        }
        if kind == Kind::Solicit && self.wish.rapid_commit {
            message.option(code::RAPID_COMMIT, &[]);
        }
        let lease = match kind {
            Kind::Solicit => None,
            Kind::Request | Kind::Release => self.asked,
            _ => self.held.as_ref().map(|held| wanted(held, now)),
        };
        let hint = self.wish.length.map(|length| Lease {
            address: Ipv6Addr::UNSPECIFIED,
            length: Some(length),
            preferred_s: 0,
            valid_s: 0,
        });
        message.association(code::IA_PD, [self.wish.iaid, 0, 0], |inner| {
            if let Some(lease) = lease.or(hint) {
                lease.write(inner);
            }
        });
    }
}

/// The lease as a message names it, with the lifetimes that are left.
fn wanted(held: &Held, now: Instant) -> Lease {
    let delegated = &held.delegated;
    let left = |until: Instant| match until {
        Instant::FAR_FUTURE => INFINITE,
        until => (until.since(now).as_nanos() / 1_000_000_000) as u32,
    };
    Lease {
        address: held.address,
        length: Some(delegated.prefix.length()),
        preferred_s: left(delegated.preferred_until),
        valid_s: left(delegated.valid_until),
    }
}

/// The address of a lease's prefix.
fn network(lease: &Lease) -> Ipv6Addr {
    let length = u32::from(lease.length.unwrap_or(128).min(128));
    let mask = (!0_u128).checked_shl(128 - length).unwrap_or(0);
    Ipv6Addr::from_bits(lease.address.to_bits() & mask)
}

/// The prefix of a lease; `None` if it is none that can be used: multicast, link-local, or of length 0.
fn prefix(lease: &Lease) -> Option<Prefix> {
    let length = lease.length.filter(|length| *length > 0)?;
    let address = lease.address;
    let is_usable = !address.is_multicast() && !address.is_unicast_link_local();
    let network = network(lease);
    Prefix::new(network.into(), length).filter(|_| is_usable && !network.is_unspecified())
}

fn after(seconds: u32, now: Instant) -> Instant {
    match seconds {
        INFINITE => Instant::FAR_FUTURE,
        seconds => now + Duration::from_secs(seconds.into()),
    }
}

/// The name servers of a message (RFC 3646, section 3).
fn servers(options: Options<'_>) -> Vec<Ipv6Addr> {
    let value = options.only(code::DNS_SERVERS).ok().flatten();
    let (servers, _) = value.unwrap_or_default().as_chunks::<16>();
    let servers = servers.iter().map(|octets| Ipv6Addr::from(*octets));
    servers.take(SERVERS_MAX).collect()
}
