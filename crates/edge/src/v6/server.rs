//! A DHCPv6 server on one link: a message and the link's leases become an answer (RFC 8415, sections 16 and 18.3).
//!
//! The answer depends on the arguments alone. The caller owns what is leased ([`Stock`]) and the link's [`Leases`].
//! Only a Request, or a Solicit with Rapid Commit, reserves anything. Start reading at [`Server::answer`].

#[cfg(test)]
mod tests;

use core::net::IpAddr;

use aaa::Prefix;
use base::{Duration, Instant};
use wire::dhcpv6::{
    Association, DUID_MAX, DhcpError, Kind, Lease, Message, Options, Repeated, Status, Writer, code,
};

use super::Settings;
use super::lease::{Action, Binding, Event, State, step};

/// The most identity associations of a message that are answered.
const ASSOCIATIONS_MAX: usize = 8;
/// The most leases of an association that are answered with lifetimes of 0. With [`ASSOCIATIONS_MAX`], an answer fits
/// into the smallest MTU of IPv6.
const WITHDRAWN_MAX: usize = 2;

/// What an identity association asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// An address (IA_NA).
    Address,
    /// A prefix (IA_PD).
    Prefix,
}

impl Wanted {
    const fn of(code: u16) -> Option<Self> {
        match code {
            code::IA_NA => Some(Self::Address),
            code::IA_PD => Some(Self::Prefix),
            _ => None,
        }
    }

    const fn code(self) -> u16 {
        match self {
            Self::Address => code::IA_NA,
            Self::Prefix => code::IA_PD,
        }
    }

    const fn unavailable(self) -> (Status, &'static str) {
        match self {
            Self::Address => (Status::NoAddrsAvail, "no address for this link"),
            Self::Prefix => (Status::NoPrefixAvail, "no prefix for this link"),
        }
    }
}

/// What a link can lease. An address is a prefix of 128 bits.
pub trait Stock {
    /// What [`Stock::take`] would lease, without a reservation. `wish` is what the client asks for.
    fn look(&mut self, wanted: Wanted, wish: Option<Prefix>) -> Option<Prefix>;
    /// Leases: what the link has already, else `wish` if that is possible, else another.
    fn take(&mut self, wanted: Wanted, wish: Option<Prefix>) -> Option<Prefix>;
    /// What the link has.
    fn held(&self, wanted: Wanted) -> Option<Prefix>;
    /// Takes back what the link has.
    fn give_back(&mut self, wanted: Wanted);
    /// Whether an address is right for the link.
    fn is_on_link(&self, address: IpAddr) -> bool;
    /// Whether an address is one that the link could lease, held or free.
    fn is_leasable(&self, address: IpAddr) -> bool;
}

/// The leases of one link, by [`Wanted`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leases([Option<Binding>; 2]);

impl Leases {
    pub(crate) fn deadline(&self) -> Instant {
        let ends = self.0.iter().flatten().map(|one| one.until);
        ends.min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Removes a lease that has run out.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Wanted> {
        let all = [Wanted::Address, Wanted::Prefix];
        let is_over =
            |one: &&Wanted| self.0[**one as usize].is_some_and(|binding| binding.until <= now);
        let over = *all.iter().find(is_over)?;
        self.0[over as usize] = None;
        Some(over)
    }

    /// When the leases end: of the address, and of the prefix.
    pub(crate) fn ends(&self) -> [Option<Instant>; 2] {
        self.0.map(|binding| binding.map(|one| one.until))
    }

    /// Whether a lease is bound.
    #[must_use]
    pub fn has(&self, wanted: Wanted) -> bool {
        self.0[wanted as usize].is_some()
    }
}

/// What was answered, for the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Leases made.
    pub made: u8,
    /// Leases extended.
    pub extended: u8,
    /// Leases freed.
    pub freed: u8,
    /// Whether they were declined, not released.
    pub declined: bool,
    /// Associations that got nothing.
    pub unavailable: u8,
}

/// Why a message gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is malformed, or a relay's.
    #[error(transparent)]
    Malformed(#[from] DhcpError),
    /// An option that may occur once occurs more often.
    #[error(transparent)]
    Repeated(#[from] Repeated),
    /// A server's message.
    #[error("a server's message")]
    Kind,
    /// The client identifier is missing, too short or too long.
    #[error("no valid client identifier")]
    ClientId,
    /// The server identifier is missing where it must be, is there where it must not be, or is another server's.
    #[error("server identifier missing, unexpected or another's")]
    ServerId,
    /// Sent to a unicast address.
    #[error("sent to a unicast address")]
    Unicast,
    /// An Information-request with an identity association.
    #[error("identity association in an Information-request")]
    Association,
    /// A Confirm without addresses, or with none of an association that is well-formed.
    #[error("no address to confirm")]
    Nothing,
}

/// A server for one link.
#[derive(Clone, Copy, Debug)]
pub struct Server<'s> {
    /// What it advertises.
    pub settings: &'s Settings,
    /// Its name servers: the settings' or the subscriber's own.
    pub dns: &'s [core::net::Ipv6Addr],
}

/// A valid message.
struct Valid<'m> {
    message: Message<'m>,
    client_id: Option<&'m [u8]>,
}

impl Server<'_> {
    /// Answers a client's message: appends the content of a UDP datagram to `out`. `hash` keys the identity of clients.
    ///
    /// # Errors
    /// Why the message is discarded; `out` is unchanged then.
    pub fn answer(
        &self,
        octets: &[u8],
        is_multicast: bool,
        (leases, stock): (&mut Leases, &mut impl Stock),
        hash: impl Fn(&[u8]) -> u64,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Refused> {
        let valid = self.check(octets)?;
        let options = valid.message.options;
        let event = match valid.message.kind {
            _ if !is_multicast => return self.use_multicast(&valid, out),
            Kind::InformationRequest => return Ok(self.inform(&valid, out)),
            Kind::Confirm => return self.confirm(&valid, stock, out),
            Kind::Solicit if self.settings.rapid_commit && options.has(code::RAPID_COMMIT) => {
                Event::Commit
            }
            Kind::Solicit => Event::Solicit,
            Kind::Request => Event::Request,
            Kind::Renew => Event::Renew,
            Kind::Rebind => Event::Rebind,
            Kind::Release => Event::Release,
            Kind::Decline => Event::Decline,
            Kind::Advertise | Kind::Reply | Kind::Reconfigure => return Err(Refused::Kind),
        };
        let kind = match event {
            Event::Solicit => Kind::Advertise,
            Event::Commit
            | Event::Request
            | Event::Renew
            | Event::Rebind
            | Event::Release
            | Event::Decline => Kind::Reply,
        };
        let mut writer = self.start(kind, &valid, out);
        if event == Event::Solicit && self.settings.preference > 0 {
            writer.option(code::PREFERENCE, &[&[self.settings.preference]]);
        }
        if event == Event::Commit {
            writer.option(code::RAPID_COMMIT, &[]);
        }
        let mut link = Link {
            settings: self.settings,
            client: hash(valid.client_id.unwrap_or_default()),
            leases,
            stock,
            now,
            used: [false; 2],
            answer: Answer::default(),
        };
        link.serve_all(options, event, &mut writer);
        let answer = link.answer;
        match event {
            Event::Release | Event::Decline => writer.status(Status::Success, ""),
            Event::Solicit | Event::Commit | Event::Request | Event::Renew | Event::Rebind => {
                self.names(options, &mut writer);
            }
        }
        Ok(answer)
    }

    /// Checks a message by section 16.
    fn check<'m>(&self, octets: &'m [u8]) -> Result<Valid<'m>, Refused> {
        let message = Message::read(octets)?;
        let client_id = message.options.only(code::CLIENT_ID)?;
        let server_id = message.options.only(code::SERVER_ID)?;
        if client_id.is_some_and(|id| !(3..=DUID_MAX).contains(&id.len())) {
            return Err(Refused::ClientId);
        }
        let is_ours = server_id.map(|id| *id == *self.settings.duid);
        let (needs_client, server_is_right) = match message.kind {
            Kind::Solicit | Kind::Confirm | Kind::Rebind => (true, is_ours.is_none()),
            Kind::Request | Kind::Renew | Kind::Release | Kind::Decline => {
                (true, is_ours == Some(true))
            }
            Kind::InformationRequest => (false, is_ours != Some(false)),
            Kind::Advertise | Kind::Reply | Kind::Reconfigure => return Err(Refused::Kind),
        };
        if needs_client && client_id.is_none() {
            return Err(Refused::ClientId);
        }
        if !server_is_right {
            return Err(Refused::ServerId);
        }
        let mut all = message.options;
        let is_association = |code| matches!(code, code::IA_NA | code::IA_TA | code::IA_PD);
        if message.kind == Kind::InformationRequest && all.any(|one| is_association(one.code)) {
            return Err(Refused::Association);
        }
        Ok(Valid { message, client_id })
    }

    fn start<'o>(&self, kind: Kind, valid: &Valid<'_>, out: &'o mut Vec<u8>) -> Writer<'o> {
        let mut writer = Writer::new(kind, valid.message.transaction, out);
        if let Some(client) = valid.client_id {
            writer.option(code::CLIENT_ID, &[client]);
        }
        writer.option(code::SERVER_ID, &[&self.settings.duid]);
        writer
    }

    /// Answers a message to our own address (section 18.4): we never allow that by a Server Unicast option.
    fn use_multicast(&self, valid: &Valid<'_>, out: &mut Vec<u8>) -> Result<Answer, Refused> {
        match valid.message.kind {
            Kind::Request | Kind::Renew | Kind::Release | Kind::Decline => {
                let mut writer = self.start(Kind::Reply, valid, out);
                writer.status(Status::UseMulticast, "");
                Ok(Answer::default())
            }
            Kind::Solicit
            | Kind::Confirm
            | Kind::Rebind
            | Kind::InformationRequest
            | Kind::Advertise
            | Kind::Reply
            | Kind::Reconfigure => Err(Refused::Unicast),
        }
    }

    /// Answers an Information-request (section 18.3.6).
    fn inform(&self, valid: &Valid<'_>, out: &mut Vec<u8>) -> Answer {
        let mut writer = self.start(Kind::Reply, valid, out);
        self.names(valid.message.options, &mut writer);
        Answer::default()
    }

    /// Answers a Confirm (section 18.3.3).
    fn confirm(
        &self,
        valid: &Valid<'_>,
        stock: &impl Stock,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Refused> {
        let associations = valid.message.options.filter(|one| one.code == code::IA_NA);
        let associations = associations.filter_map(|one| Association::read(one.value));
        let mut addresses = associations
            .flat_map(Association::leases)
            .filter(|lease| lease.length.is_none())
            .peekable();
        if addresses.peek().is_none() {
            return Err(Refused::Nothing);
        }
        let status = match addresses.all(|one| stock.is_on_link(one.address.into())) {
            true => Status::Success,
            false => Status::NotOnLink,
        };
        self.start(Kind::Reply, valid, out).status(status, "");
        Ok(Answer::default())
    }

    /// Appends name servers and the search list, if the client asks for them (RFC 3646).
    fn names(&self, options: Options<'_>, writer: &mut Writer<'_>) {
        if !self.dns.is_empty() && options.requests(code::DNS_SERVERS) {
            let servers: Vec<[u8; 16]> = self.dns.iter().map(|one| one.octets()).collect();
            writer.option(code::DNS_SERVERS, &[servers.as_flattened()]);
        }
        if !self.settings.search.is_empty() && options.requests(code::DOMAIN_LIST) {
            writer.option(code::DOMAIN_LIST, &[&self.settings.search]);
        }
    }
}

/// A link while one message is answered.
struct Link<'l, S> {
    settings: &'l Settings,
    client: u64,
    leases: &'l mut Leases,
    stock: &'l mut S,
    now: Instant,
    /// Whether an association of the message has the lease already, by [`Wanted`].
    used: [bool; 2],
    answer: Answer,
}

impl<S: Stock> Link<'_, S> {
    /// Answers the associations of a message.
    fn serve_all(&mut self, options: Options<'_>, event: Event, out: &mut Writer<'_>) {
        let all = options.filter_map(|one| {
            let wanted = Wanted::of(one.code)?;
            Some((wanted, Association::read(one.value)?))
        });
        let all = all.take(ASSOCIATIONS_MAX);
        for (wanted, association) in all.clone() {
            let mut others = all.clone();
            let has = |iaid| others.any(|(kind, one)| (kind, one.iaid) == (wanted, iaid));
            let binding = self.leases.0[wanted as usize];
            let state = State::of(binding.as_ref(), (self.client, association.iaid), has);
            self.serve(wanted, association, (state, event), out);
        }
    }

    /// Answers one association.
    fn serve(
        &mut self,
        wanted: Wanted,
        association: Association<'_>,
        (state, event): (State, Event),
        out: &mut Writer<'_>,
    ) {
        let iaid = association.iaid;
        // A link has one lease of a kind, and the first association that may have it gets it.
        let is_second = self.used[wanted as usize];
        match step(state, event) {
            Action::Offer | Action::Assign if is_second => self.refuse(wanted, iaid, out),
            Action::Refuse => self.refuse(wanted, iaid, out),
            Action::Assign if event == Event::Request && self.is_foreign(wanted, association) => {
                out.association(wanted.code(), [iaid, 0, 0], |out| {
                    out.status(Status::NotOnLink, "no address of this link");
                });
            }
            Action::Offer => {
                let wish = wish(wanted, association);
                match self.stock.look(wanted, wish) {
                    Some(lease) => self.grant(wanted, association, lease, out),
                    None => self.refuse(wanted, iaid, out),
                }
            }
            Action::Assign => self.assign(wanted, association, state, out),
            Action::Restore if self.can_restore(wanted, association) => {
                self.assign(wanted, association, state, out);
            }
            Action::Extend => match self.stock.held(wanted) {
                Some(lease) => {
                    self.answer.extended += 1;
                    self.bind(wanted, iaid);
                    self.grant(wanted, association, lease, out);
                }
                None => self.no_binding(wanted, iaid, out),
            },
            Action::Withdraw | Action::Restore if others(association, None).next().is_some() => {
                let ids = [iaid, 0, 0];
                out.association(wanted.code(), ids, |out| withdraw(association, None, out));
            }
            Action::NoBinding | Action::Withdraw | Action::Restore => {
                self.no_binding(wanted, iaid, out);
            }
            // "The server ignores leases not assigned to the IAs" (section 18.3.7).
            Action::Free if !self.names_lease(wanted, association) => {}
            Action::Free => {
                self.answer.freed += 1;
                self.answer.declined |= event == Event::Decline;
                self.leases.0[wanted as usize] = None;
                self.stock.give_back(wanted);
            }
        }
    }

    /// Binds a lease to an association: the one that the client wishes, or another.
    fn assign(
        &mut self,
        wanted: Wanted,
        association: Association<'_>,
        state: State,
        out: &mut Writer<'_>,
    ) {
        match self.stock.take(wanted, wish(wanted, association)) {
            Some(lease) => {
                self.answer.made += u8::from(state != State::Its);
                self.bind(wanted, association.iaid);
                self.grant(wanted, association, lease, out);
            }
            None => self.refuse(wanted, association.iaid, out),
        }
    }

    /// Whether the link can have the very lease that a client rebinds. Another server may answer a Rebind too, so it makes a
    /// binding only where Rapid Commit would (section 18.3.5).
    fn can_restore(&mut self, wanted: Wanted, association: Association<'_>) -> bool {
        let wish = wish(wanted, association);
        self.settings.rapid_commit && wish.is_some() && self.stock.look(wanted, wish) == wish
    }

    /// Whether an association names an address that this link can never have (section 18.3.2).
    fn is_foreign(&self, wanted: Wanted, association: Association<'_>) -> bool {
        let mut leases = association.leases().filter(|one| one.length.is_none());
        wanted == Wanted::Address
            && leases.any(|one| {
                let address = one.address.into();
                let is_right = self.stock.is_on_link(address) || self.stock.is_leasable(address);
                !is_right && !one.address.is_unspecified()
            })
    }

    /// Whether an association names the lease that the link has.
    fn names_lease(&self, wanted: Wanted, association: Association<'_>) -> bool {
        let held = self.stock.held(wanted);
        let mut named = association.leases();
        named.any(|one| Prefix::new(one.address.into(), one.length.unwrap_or(128)) == held)
    }

    fn bind(&mut self, wanted: Wanted, iaid: u32) {
        let valid = Duration::from_secs(u64::from(self.settings.valid_s));
        self.leases.0[wanted as usize] = Some(Binding {
            client: self.client,
            iaid,
            until: self.now + valid,
        });
    }

    /// Writes an association with its lease; others that the client names have lifetimes of 0 (section 18.3.4).
    fn grant(
        &mut self,
        wanted: Wanted,
        association: Association<'_>,
        lease: Prefix,
        out: &mut Writer<'_>,
    ) {
        self.used[wanted as usize] = true;
        let Settings {
            preferred_s,
            valid_s,
            ..
        } = *self.settings;
        let IpAddr::V6(address) = lease.address() else {
            return;
        };
        // T1 and T2 as section 21.21 recommends: 0.5 and 0.8 of the preferred lifetime.
        let t2_s = (u64::from(preferred_s) * 4 / 5) as u32;
        let ids = [association.iaid, preferred_s / 2, t2_s];
        out.association(wanted.code(), ids, |out| {
            let granted = Lease {
                address,
                length: (wanted == Wanted::Prefix).then_some(lease.length()),
                preferred_s,
                valid_s,
            };
            granted.write(out);
            if self.leases.has(wanted) {
                withdraw(association, Some(granted), out);
            }
        });
    }

    fn refuse(&mut self, wanted: Wanted, iaid: u32, out: &mut Writer<'_>) {
        self.answer.unavailable += 1;
        let (status, why) = wanted.unavailable();
        out.association(wanted.code(), [iaid, 0, 0], |out| out.status(status, why));
    }

    fn no_binding(&self, wanted: Wanted, iaid: u32, out: &mut Writer<'_>) {
        out.association(wanted.code(), [iaid, 0, 0], |out| {
            out.status(Status::NoBinding, "no such lease");
        });
    }
}

/// The lease that a client asks for.
fn wish(wanted: Wanted, association: Association<'_>) -> Option<Prefix> {
    let mut leases = association.leases();
    let lease = leases.find(|lease| lease.length.is_some() == (wanted == Wanted::Prefix))?;
    Prefix::new(lease.address.into(), lease.length.unwrap_or(128))
}

/// The leases that a client names, but for the granted one.
fn others(association: Association<'_>, granted: Option<Lease>) -> impl Iterator<Item = Lease> {
    let key = |lease: &Lease| (lease.address, lease.length);
    association
        .leases()
        .filter(move |lease| granted.as_ref().map(key) != Some(key(lease)))
        // A hint has no address, or only a length (section 18.2.1).
        .filter(|lease| !lease.address.is_unspecified())
}

/// Writes the leases that a client names, but for the granted one, with lifetimes of 0.
fn withdraw(association: Association<'_>, granted: Option<Lease>, out: &mut Writer<'_>) {
    for lease in others(association, granted).take(WITHDRAWN_MAX) {
        let over = Lease {
            preferred_s: 0,
            valid_s: 0,
            ..lease
        };
        over.write(out);
    }
}
