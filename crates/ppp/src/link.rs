//! A PPP link: its phases (RFC 1661, section 3), and the dispatch of each frame to a layer.

mod early;
mod proofs;
mod snapshot;
mod start;

use base::{Duration, Instant};
use wire::ppp::control::{Control, code};
use wire::ppp::{Compression, Frame, protocol};

use crate::applicant::Applicant;
use crate::auth::{Authenticator, Credentials};
use crate::budget::Budget;
use crate::config::{Authentication, Config, Random};
use crate::event::{Claim, Discard, Event, LinkEnd};
use crate::fsm::{Event as Automaton, State};
use crate::ipcp::{Ipcp, Ipv4Offer};
use crate::ipv6cp::{Ipv6Offer, Ipv6cp};
use crate::layer::{Context, Layer, Negotiation as _, REJECTED_MAX, Signals, retimed};
use crate::lcp::Lcp;
use crate::view::{LcpOptions, LinkView};

/// Our side of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The network side: the peer authenticates, and the owner decides which addresses it gets.
    Network,
    /// A client: it authenticates with its credentials if asked to, and asks for addresses.
    Client {
        /// Its name and secret. Without them it refuses to authenticate.
        credentials: Option<Credentials>,
        /// The IPv4 offer, if the client wants IPv4.
        ipv4: Option<Ipv4Offer>,
        /// The IPv6 offer, if the client wants IPv6.
        ipv6: Option<Ipv6Offer>,
    },
}

/// The addresses granted to an admitted peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Grant {
    /// The IPv4 offer, if the peer may use IPv4.
    pub ipv4: Option<Ipv4Offer>,
    /// The IPv6 offer, if the peer may use IPv6.
    pub ipv6: Option<Ipv6Offer>,
}

/// A PPP link.
///
/// It has no timer of its own: [`Link::timeout`] is when [`Link::handle_timeout`] is due. After every call the owner
/// drains the [`crate::Outbox`].
#[derive(Clone, Debug)]
pub struct Link {
    lcp: Layer<Lcp>,
    ipcp: Option<Layer<Ipcp>>,
    ipv6cp: Option<Layer<Ipv6cp>>,
    authenticator: Authenticator,
    /// State that only some links have.
    own: Option<Box<Own>>,
    /// The deadline for authentication.
    patience: Instant,
    /// When the next Echo-Request is due.
    echo_at: Instant,
    echo_id: u8,
    /// When the last Echo-Request was sent, in microseconds: the low bits, because a round trip is far below an hour.
    echo_sent_us: u32,
    /// The round trip of the last Echo-Request that was answered, and 1; 0 if none was.
    echo_rtt_us: u32,
    /// Echo-Requests since the last reply.
    unanswered: u8,
    /// The owner wants proof that the peer is there: see [`Link::probe`].
    probing: bool,
    /// Number of claims reported to the owner.
    claims: u8,
    budget: Budget,
    /// The network phase has started.
    in_network: bool,
    /// The reason why the link is closing.
    closing: Option<LinkEnd>,
    ended: bool,
}

/// State that only some links have. One pointer serves for both, because an owner may have 100,000 links.
#[derive(Clone, Debug)]
enum Own {
    /// We are the client.
    Client(Client),
    /// The peer sent requests before the owner let it in.
    Early(early::Early),
}

/// The state of a client.
#[derive(Clone, Debug, Default)]
struct Client {
    /// Its authentication, if it has credentials.
    applicant: Option<Applicant>,
    /// The network protocols that it requests.
    wish: Grant,
}

/// The smallest packet size that IPv6 requires of a link (RFC 8200, section 5; RFC 5072, section 2).
const IPV6_MTU_MIN: u16 = 1_280;

/// Unknown protocols may use one in this many of a second's control packets.
const UNKNOWN_SHARE: u16 = 4;

impl Link {
    /// A link whose lower layer is down.
    pub fn new(side: Side, config: &Config, random: &mut dyn Random) -> Self {
        let client = match side {
            Side::Network => None,
            Side::Client {
                credentials,
                ipv4,
                ipv6,
            } => Some(Client {
                applicant: credentials.map(Applicant::new),
                wish: Grant { ipv4, ipv6 },
            }),
        };
        let able = client.as_ref().is_some_and(|one| one.applicant.is_some());
        let lcp = Lcp::new(config, client.is_none(), able, random);
        Self::of(lcp, client.map(Own::Client))
    }

    fn of(lcp: Lcp, own: Option<Own>) -> Self {
        Self {
            lcp: Layer::new(lcp),
            ipcp: None,
            ipv6cp: None,
            authenticator: Authenticator::new(),
            own: own.map(Box::new),
            patience: Instant::FAR_FUTURE,
            echo_at: Instant::FAR_FUTURE,
            echo_id: 0,
            echo_sent_us: 0,
            echo_rtt_us: 0,
            unanswered: 0,
            probing: false,
            claims: 0,
            budget: Budget::default(),
            in_network: false,
            closing: None,
            ended: false,
        }
    }

    /// Closes the link: sends a Terminate-Request. [`Event::Ended`] follows once the peer answers or the retries end.
    pub fn close(&mut self, ctx: &mut Context<'_>) {
        self.end(LinkEnd::Closed, ctx);
    }

    /// When [`Link::handle_timeout`] is due.
    #[must_use]
    pub fn timeout(&self) -> Instant {
        let ipcp = self.ipcp.as_ref().map(Layer::deadline);
        let ipv6cp = self.ipv6cp.as_ref().map(Layer::deadline);
        let applicant = self.applicant().map(Applicant::deadline);
        let own = [
            self.lcp.deadline(),
            self.authenticator.deadline(),
            self.patience,
            self.echo_at,
        ];
        let all = own.into_iter().chain(ipcp).chain(ipv6cp).chain(applicant);
        match self.ended {
            true => Instant::FAR_FUTURE,
            false => all.min().unwrap_or(Instant::FAR_FUTURE),
        }
    }

    /// Fires the timers that are due. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.timeout() > ctx.now {
            return;
        }
        let compression = self.compression();
        let signals = self.lcp.handle_timeout(compression, ctx);
        self.heed_lcp(signals, ctx);
        if let Some(ipcp) = &mut self.ipcp {
            let signals = ipcp.handle_timeout(compression, ctx);
            self.heed_ipcp(signals, ctx);
        }
        if let Some(ipv6cp) = &mut self.ipv6cp {
            let signals = ipv6cp.handle_timeout(compression, ctx);
            self.heed_ipv6cp(signals, ctx);
        }
        if !self.authenticator.handle_timeout(compression, ctx) {
            self.end(LinkEnd::AuthenticationTimeout, ctx);
        }
        if let Some(applicant) = self.applicant_mut() {
            let outcome = applicant.handle_timeout(compression, ctx);
            self.heed_outcome(outcome, ctx);
        }
        if self.patience <= ctx.now {
            self.patience = Instant::FAR_FUTURE;
            self.end(LinkEnd::AuthenticationTimeout, ctx);
        }
        if self.echo_at <= ctx.now {
            self.echo(ctx);
        }
    }

    /// Applies the intervals of a new configuration to a link that is up. New deadlines are spread over the interval, so
    /// that many links do not send at the same moment.
    pub fn retime(&mut self, ctx: &mut Context<'_>) {
        if self.lcp.state() != State::Opened || self.closing.is_some() {
            return;
        }
        if !self.probing {
            self.echo_at = retimed(self.echo_at, ctx.config.echo_interval, ctx);
        }
        let ask = self.lcp.negotiation.ask;
        if let Some(Authentication::ChapMd5 | Authentication::MsChapV2) = ask {
            self.authenticator.retime(ctx);
        }
    }

    /// Sends an Echo-Request, or ends the link after too many without a reply.
    fn echo(&mut self, ctx: &mut Context<'_>) {
        if self.unanswered >= ctx.config.echo_max {
            self.echo_at = Instant::FAR_FUTURE;
            self.end(LinkEnd::EchoTimeout, ctx);
            return;
        }
        let interval = match ctx.config.echo_interval {
            Duration::ZERO if self.probing => ctx.config.restart,
            interval => interval,
        };
        if interval == Duration::ZERO {
            self.echo_at = Instant::FAR_FUTURE;
            return;
        }
        self.unanswered += 1;
        self.echo_id = self.echo_id.wrapping_add(1);
        self.echo_at = ctx.now + interval;
        self.echo_sent_us = micros(ctx.now);
        let magic = self.lcp.negotiation.magic;
        let head = (protocol::LCP, code::ECHO_REQUEST, self.echo_id);
        ctx.out.control(self.compression(), head, |out| {
            out.extend_from_slice(&magic.to_be_bytes());
        });
    }

    /// The time from the last Echo-Request that was answered to its Echo-Reply (RFC 1661, section 5.8), in microseconds. A
    /// round trip through a tunnel that is shared or a line that is full shows here first.
    #[must_use]
    pub fn echo_rtt_us(&self) -> Option<u32> {
        self.echo_rtt_us.checked_sub(1)
    }

    /// The reason why the link is closing, until the peer acknowledges the termination.
    #[must_use]
    pub fn closing(&self) -> Option<LinkEnd> {
        self.closing
    }

    /// The header compression that the peer agreed to.
    #[must_use]
    pub fn compression(&self) -> Compression {
        match self.lcp.is_opened() {
            true => self.lcp.negotiation.compression,
            false => Compression::default(),
        }
    }

    /// The largest packet that the peer accepts: its MRU (RFC 1661, section 6.1).
    #[must_use]
    pub fn peer_mru(&self) -> u16 {
        self.lcp.negotiation.peer_mru
    }

    /// The options of our latest Configure-Request of LCP (Last Sent LCP CONFREQ, RFC 2661, section 4.4.5).
    #[must_use]
    pub fn lcp_request(&self) -> Vec<u8> {
        let mut options = Vec::new();
        self.lcp.negotiation.request(&mut options);
        options
    }

    /// The states of LCP, IPCP and IPv6CP.
    #[must_use]
    pub fn states(&self) -> [State; 3] {
        let ipcp = self.ipcp.as_ref().map_or(State::Initial, Layer::state);
        let ipv6cp = self.ipv6cp.as_ref().map_or(State::Initial, Layer::state);
        [self.lcp.state(), ipcp, ipv6cp]
    }

    /// Number of claims reported by [`Event::Authenticate`], modulo 256. This is the number of the latest one.
    #[must_use]
    pub fn claims(&self) -> u8 {
        self.claims
    }

    /// Whether the latest claim waits for the owner's answer.
    #[must_use]
    pub fn awaits_answer(&self) -> bool {
        !self.ended && self.authenticator.is_claimed()
    }

    /// The link as `show` prints it.
    #[must_use]
    pub fn view(&self) -> LinkView {
        let lcp = &self.lcp.negotiation;
        LinkView {
            lcp: self.lcp.state(),
            local: LcpOptions {
                mru: lcp.mru,
                magic: lcp.magic,
                authentication: lcp.ask,
                compression: lcp.offered(),
            },
            peer: LcpOptions {
                mru: lcp.peer_mru,
                magic: lcp.peer_magic,
                authentication: lcp.peer_asks,
                compression: lcp.compression,
            },
            ipv4: self
                .ipcp
                .as_ref()
                .map(|ipcp| (ipcp.state(), ipcp.negotiation.settings())),
            ipv6: self
                .ipv6cp
                .as_ref()
                .map(|ipv6cp| (ipv6cp.state(), ipv6cp.negotiation.settings())),
            is_authenticated: self.in_network || self.authenticator.has_accepted(),
            claims: self.claims,
            echoes_unanswered: self.unanswered,
            end: self.closing,
        }
    }

    fn client(&self) -> Option<&Client> {
        match self.own.as_deref()? {
            Own::Client(client) => Some(client),
            Own::Early(_) => None,
        }
    }

    fn applicant(&self) -> Option<&Applicant> {
        self.client()?.applicant.as_ref()
    }

    /// The peer's text when it refused us, escaped and bounded; empty if it gave none (client side).
    #[must_use]
    pub fn refusal(&self) -> &str {
        self.applicant().map_or("", Applicant::refusal)
    }

    fn applicant_mut(&mut self) -> Option<&mut Applicant> {
        match self.own.as_deref_mut()? {
            Own::Client(client) => client.applicant.as_mut(),
            Own::Early(_) => None,
        }
    }

    /// Whether packets of this IP version may flow.
    #[must_use]
    pub fn is_open(&self, ipv6: bool) -> bool {
        match ipv6 {
            // RFC 1332, section 2.1, and RFC 5072, section 2: not before the control protocol is Opened.
            false => self.ipcp.as_ref().is_some_and(Layer::is_opened),
            true => self.ipv6cp.as_ref().is_some_and(Layer::is_opened),
        }
    }

    /// Takes a PPP frame. IP packets of an open network protocol are the owner's and do not belong here.
    ///
    /// # Errors
    /// The frame was ignored. For an unknown protocol a Protocol-Reject was sent too.
    pub fn handle(&mut self, octets: &[u8], ctx: &mut Context<'_>) -> Result<(), Discard> {
        if self.ended {
            return Err(Discard::Ended);
        }
        let frame = Frame::parse(octets).map_err(|_| Discard::Frame)?;
        match frame.protocol {
            protocol::LCP => {
                self.spend(1, ctx)?;
                return self.handle_lcp(&frame, ctx);
            }
            // Until LCP is open all other packets are silently discarded (RFC 1661, section 3.4), and so are packets of
            // a network that is not open.
            _ if !self.lcp.is_opened() => return Err(Discard::Phase),
            protocol::IPV4 | protocol::IPV6 => return Err(Discard::Phase),
            protocol::PAP | protocol::CHAP => {
                self.spend(1, ctx)?;
                return self.handle_proof(&frame, ctx);
            }
            protocol::EAP if self.lcp.negotiation.ask == Some(Authentication::Eap) => {
                self.spend(1, ctx)?;
                return self.handle_eap(&frame, ctx);
            }
            protocol::IPCP => {
                if let Some(ipcp) = &mut self.ipcp {
                    self.budget.spend(1, ctx)?;
                    let compression = self.lcp.negotiation.compression;
                    let packet = Control::parse(frame.information);
                    let packet = packet.map_err(|_| Discard::Malformed)?;
                    let signals = ipcp.handle(&packet, compression, ctx)?;
                    self.heed_ipcp(signals, ctx);
                    return Ok(());
                }
            }
            protocol::IPV6CP => {
                if let Some(ipv6cp) = &mut self.ipv6cp {
                    self.budget.spend(1, ctx)?;
                    let compression = self.lcp.negotiation.compression;
                    let packet = Control::parse(frame.information);
                    let packet = packet.map_err(|_| Discard::Malformed)?;
                    let signals = ipv6cp.handle(&packet, compression, ctx)?;
                    self.heed_ipv6cp(signals, ctx);
                    return Ok(());
                }
            }
            _ => {
                self.reject_protocol(&frame, ctx);
                return Err(Discard::UnknownProtocol);
            }
        }
        // A network protocol that this link does not support, or that is not open yet.
        if !self.in_network {
            return self.keep_early(&frame, octets, ctx);
        }
        self.reject_protocol(&frame, ctx);
        Err(Discard::UnknownProtocol)
    }

    fn spend(&mut self, share: u16, ctx: &Context<'_>) -> Result<(), Discard> {
        self.budget.spend(share, ctx)
    }

    /// Rejects a protocol, within the limit for this second.
    fn reject_protocol(&mut self, frame: &Frame<'_>, ctx: &mut Context<'_>) {
        if self.spend(UNKNOWN_SHARE, ctx).is_err() {
            return;
        }
        let head = (protocol::LCP, code::PROTOCOL_REJECT, self.lcp.next_id());
        let kept = &frame.information[..frame.information.len().min(REJECTED_MAX)];
        ctx.out.control(self.compression(), head, |out| {
            out.extend_from_slice(&frame.protocol.to_be_bytes());
            out.extend_from_slice(kept);
        });
    }

    fn handle_lcp(&mut self, frame: &Frame<'_>, ctx: &mut Context<'_>) -> Result<(), Discard> {
        let packet = Control::parse(frame.information).map_err(|_| Discard::Malformed)?;
        match packet.code {
            code::PROTOCOL_REJECT => self.hear_protocol_reject(&packet, ctx),
            code::ECHO_REQUEST | code::ECHO_REPLY | code::DISCARD_REQUEST => {
                self.handle_echo(&packet, ctx)
            }
            // Text for the user (RFC 1570), without effect on the link.
            code::IDENTIFICATION | code::TIME_REMAINING => Ok(()),
            _ => {
                let signals = self.lcp.handle(&packet, Compression::default(), ctx)?;
                self.heed_lcp(signals, ctx);
                Ok(())
            }
        }
    }

    fn handle_echo(&mut self, packet: &Control<'_>, ctx: &mut Context<'_>) -> Result<(), Discard> {
        // Only the Opened state replies (RFC 1661, section 5.8).
        if !self.lcp.heeds_echo() {
            return Err(Discard::Phase);
        }
        let (magic, rest) = packet.data.split_first_chunk().ok_or(Discard::Malformed)?;
        let ours = self.lcp.negotiation.magic;
        if ours != 0 && u32::from_be_bytes(*magic) == ours {
            self.end(LinkEnd::Looped, ctx);
            return Err(Discard::Stray);
        }
        match packet.code {
            code::ECHO_REQUEST => {
                let head = (protocol::LCP, code::ECHO_REPLY, packet.identifier);
                // The reply must fit in the peer's MRU.
                let room = usize::from(self.peer_mru()).saturating_sub(8);
                ctx.out.control(self.compression(), head, |out| {
                    out.extend_from_slice(&ours.to_be_bytes());
                    out.extend_from_slice(&rest[..rest.len().min(room)]);
                });
                Ok(())
            }
            code::ECHO_REPLY => match packet.identifier == self.echo_id && self.unanswered > 0 {
                true => {
                    self.unanswered = 0;
                    let is_proven = core::mem::take(&mut self.probing);
                    if is_proven && ctx.config.echo_interval == Duration::ZERO {
                        self.echo_at = Instant::FAR_FUTURE;
                    }
                    let rtt = micros(ctx.now).wrapping_sub(self.echo_sent_us);
                    self.echo_rtt_us = rtt.saturating_add(1);
                    Ok(())
                }
                false => Err(Discard::Stray),
            },
            _ => Ok(()),
        }
    }

    fn hear_protocol_reject(
        &mut self,
        packet: &Control<'_>,
        ctx: &mut Context<'_>,
    ) -> Result<(), Discard> {
        if !self.lcp.is_opened() {
            return Err(Discard::Phase);
        }
        let (number, _) = packet.data.split_first_chunk().ok_or(Discard::Malformed)?;
        let compression = self.compression();
        match u16::from_be_bytes(*number) {
            protocol::LCP => self.fire_lcp(Automaton::RejectBad, ctx),
            protocol::IPCP | protocol::IPV4 => {
                if let Some(ipcp) = &mut self.ipcp {
                    let signals = ipcp.fire(Automaton::RejectBad, compression, ctx);
                    self.heed_ipcp(signals, ctx);
                }
            }
            protocol::IPV6CP | protocol::IPV6 => {
                if let Some(ipv6cp) = &mut self.ipv6cp {
                    let signals = ipv6cp.fire(Automaton::RejectBad, compression, ctx);
                    self.heed_ipv6cp(signals, ctx);
                }
            }
            protocol::PAP | protocol::CHAP | protocol::EAP => {
                self.end(LinkEnd::AuthenticationRejected, ctx);
            }
            _ => return Err(Discard::Stray),
        }
        Ok(())
    }

    fn fire_lcp(&mut self, event: Automaton, ctx: &mut Context<'_>) {
        let signals = self.lcp.fire(event, Compression::default(), ctx);
        self.heed_lcp(signals, ctx);
    }

    fn heed_lcp(&mut self, signals: Signals, ctx: &mut Context<'_>) {
        if signals.down {
            self.lcp_is_down(ctx);
        }
        if self.lcp.negotiation.is_looped() && self.closing.is_none() {
            self.end(LinkEnd::Looped, ctx);
            return;
        }
        if signals.up {
            self.lcp_is_up(None, ctx);
        }
        if signals.by_peer && self.lcp.state() == State::Stopping {
            self.ended(self.why_over(LinkEnd::PeerTerminated), ctx);
        }
        if signals.finished {
            self.ended(self.why_over(LinkEnd::NoAnswer), ctx);
        }
    }

    /// The reason why LCP finished, or `otherwise` if no more specific one is known.
    fn why_over(&self, otherwise: LinkEnd) -> LinkEnd {
        let lcp = &self.lcp.negotiation;
        self.closing.unwrap_or(match lcp.ask {
            Some(_) if self.lcp.was_refused() => LinkEnd::AuthenticationRejected,
            _ if self.client().is_some() && lcp.unproven => LinkEnd::NoCredentials,
            _ if self.lcp.was_refused() => LinkEnd::Rejected,
            _ => otherwise,
        })
    }

    fn lcp_is_up(&mut self, proxied: Option<Claim>, ctx: &mut Context<'_>) {
        ctx.out.tell(Event::LcpUp);
        let compression = self.compression();
        self.unanswered = 0;
        if ctx.config.echo_interval != Duration::ZERO {
            self.echo_at = ctx.now + ctx.config.echo_interval;
        }
        if ctx.config.authentication_max != Duration::ZERO {
            self.patience = ctx.now + ctx.config.authentication_max;
        }
        let peer_asks = self.lcp.negotiation.peer_asks;
        if let (Some(by), Some(applicant)) = (peer_asks, self.applicant_mut()) {
            applicant.start(by, compression, ctx);
        }
        match (self.lcp.negotiation.ask, proxied) {
            (Some(by), Some(claim)) => {
                self.authenticator.take_over(by, claim.identifier());
                self.tell_claim(claim, ctx);
            }
            (Some(by), None) => self.authenticator.start(by, compression, ctx),
            (None, _) if self.client().is_some() => self.authenticator.answer_silently(true),
            (None, _) => {
                self.authenticator.claimed();
                self.tell_claim(Claim::none(), ctx);
            }
        }
        self.ask_for_networks(ctx);
    }

    fn lcp_is_down(&mut self, ctx: &mut Context<'_>) {
        self.in_network = false;
        self.forget_early();
        self.patience = Instant::FAR_FUTURE;
        self.echo_at = Instant::FAR_FUTURE;
        self.probing = false;
        self.authenticator.reset();
        if let Some(applicant) = self.applicant_mut() {
            applicant.reset();
        }
        let compression = Compression::default();
        if let Some(ipcp) = &mut self.ipcp {
            let signals = ipcp.fire(Automaton::Down, compression, ctx);
            self.heed_ipcp(signals, ctx);
        }
        if let Some(ipv6cp) = &mut self.ipv6cp {
            let signals = ipv6cp.fire(Automaton::Down, compression, ctx);
            self.heed_ipv6cp(signals, ctx);
        }
        self.ipcp = None;
        self.ipv6cp = None;
    }

    /// Starts the network protocols that a client wants, once the peer accepted it.
    fn ask_for_networks(&mut self, ctx: &mut Context<'_>) {
        let Some(client) = self.client() else {
            return;
        };
        let proven = match (self.lcp.negotiation.peer_asks, &client.applicant) {
            (Some(_), Some(applicant)) => applicant.is_accepted(),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if proven && self.lcp.is_opened() && !self.in_network {
            let wish = client.wish;
            self.begin_networks(&wish, ctx);
        }
    }

    fn begin_networks(&mut self, grant: &Grant, ctx: &mut Context<'_>) {
        self.in_network = true;
        self.patience = Instant::FAR_FUTURE;
        let compression = self.compression();
        let lcp = &self.lcp.negotiation;
        let carries_ipv6 = lcp.mru.min(lcp.peer_mru) >= IPV6_MTU_MIN;
        if let Some(offer) = grant.ipv4 {
            let mut ipcp = Layer::new(Ipcp::new(offer));
            ipcp.fire(Automaton::Open, compression, ctx);
            ipcp.fire(Automaton::Up, compression, ctx);
            self.ipcp = Some(ipcp);
        }
        if let Some(offer) = grant.ipv6.filter(|_| carries_ipv6) {
            let mut ipv6cp = Layer::new(Ipv6cp::new(offer));
            ipv6cp.fire(Automaton::Open, compression, ctx);
            ipv6cp.fire(Automaton::Up, compression, ctx);
            self.ipv6cp = Some(ipv6cp);
        }
        self.look_for_networks(ctx);
    }

    fn heed_ipcp(&mut self, signals: Signals, ctx: &mut Context<'_>) {
        if signals.down {
            ctx.out.tell(Event::Ipv4Down);
        }
        if let (true, Some(ipcp)) = (signals.up, &self.ipcp) {
            ctx.out.tell(Event::Ipv4Up(ipcp.negotiation.settings()));
        }
        if signals.finished {
            self.look_for_networks(ctx);
        }
    }

    fn heed_ipv6cp(&mut self, signals: Signals, ctx: &mut Context<'_>) {
        if signals.down {
            ctx.out.tell(Event::Ipv6Down);
        }
        if let (true, Some(ipv6cp)) = (signals.up, &self.ipv6cp) {
            ctx.out.tell(Event::Ipv6Up(ipv6cp.negotiation.settings()));
        }
        if signals.finished {
            self.look_for_networks(ctx);
        }
    }

    /// Closes a link if no network protocol remains.
    fn look_for_networks(&mut self, ctx: &mut Context<'_>) {
        let is_over = |state| matches!(state, State::Initial | State::Closed | State::Stopped);
        let [_, ipcp, ipv6cp] = self.states();
        if self.in_network && is_over(ipcp) && is_over(ipv6cp) {
            self.end(LinkEnd::NoNetwork, ctx);
        }
    }

    /// Closes the link with a Terminate-Request.
    fn end(&mut self, reason: LinkEnd, ctx: &mut Context<'_>) {
        if self.ended || self.closing.is_some() {
            return;
        }
        self.closing = Some(reason);
        self.fire_lcp(Automaton::Close, ctx);
        if !self.ended && !self.lcp.state().is_timed() {
            self.ended(reason, ctx);
        }
    }

    fn ended(&mut self, reason: LinkEnd, ctx: &mut Context<'_>) {
        if !self.ended {
            self.ended = true;
            self.closing = Some(reason);
            ctx.out.tell(Event::Ended(reason));
        }
    }
}

/// The low bits of a time in microseconds.
fn micros(at: Instant) -> u32 {
    (at.as_nanos() / 1_000) as u32
}
