//! Sessions that are handed over to an LNS: the call to it, fail-over, and the end of both halves.
//!
//! A session is handed over before PPP ([`Edge::switch_line`]), or once the subscriber gave its name
//! ([`Edge::switch_to`], or [`Edge::admit`] with a tunnel in the profile). The LNSs of the set are tried one after the
//! other. If one takes the call, the path joins the two sessions, and PPP here ends without a word: the LNS continues it
//! (RFC 2661, section 4.4.5). If none does, the subscriber is refused.
//!
//! The edge opens no socket. An owner polls [`Edge::poll_wanted`] and answers with [`Edge::open_wanted`].
//!
//! Start reading at `begin_switch`.

use std::collections::VecDeque;
use std::sync::Arc;

use aaa::{Lns, Profile, TunnelTo, Tunnelled};
use base::Instant;
use hashbrown::HashMap;
use ppp::{Claim, Link, Side};
use wire::ppp::control::{Control, code};
use wire::ppp::{Frame, protocol};

use crate::access::{Access, Call, Encapsulation, LinkCause, Reason};
use crate::counters::{Discard, Refusal};
use crate::edge::Edge;
use crate::edge::links::later;
use crate::end::End;
use crate::key::SubscriberKey;
use crate::path::change::Step;
use crate::path::crossing::ADDRESS;
use crate::path::{Crossing, Meter, Passed};
use crate::subscriber::Phase;
use crate::switch::{Index, SwitchCounts, order};

/// The longest request of LCP that is kept, in bytes.
const REQUEST_MAX: usize = 256;
/// Limits on the frames that wait for an LNS, of one session.
const HELD_FRAMES_MAX: usize = 8;
const HELD_OCTETS_MAX: usize = 4_096;

/// Everything about sessions that are handed over.
pub(crate) struct Switches<A: Access> {
    pub(crate) index: Index,
    /// By the subscriber's index.
    all: HashMap<u32, Box<Switch<A>>>,
    /// Subscribers by the sessions to LNSs.
    legs: HashMap<A::Session, u32>,
    /// Tunnels to LNSs.
    tunnels: HashMap<Arc<TunnelTo>, Known<A::Tunnel>>,
    /// Tunnels that the owner is to open.
    wanted: VecDeque<Wanted>,
    /// Requests of LCP of subscribers that are not admitted yet: the first received, and the last.
    requests: HashMap<u32, [Box<[u8]>; 2]>,
    /// The claims that questions are open about.
    claims: HashMap<u32, Claim>,
    counts: SwitchCounts,
}

impl<A: Access> Switches<A> {
    pub(crate) fn new(index: Index) -> Self {
        Self {
            index,
            all: HashMap::new(),
            legs: HashMap::new(),
            tunnels: HashMap::new(),
            wanted: VecDeque::new(),
            requests: HashMap::new(),
            claims: HashMap::new(),
            counts: SwitchCounts::default(),
        }
    }

    /// Forgets what was kept of a subscriber before it was admitted.
    pub(crate) fn forget(&mut self, index: u32) {
        self.requests.remove(&index);
        self.claims.remove(&index);
    }

    /// Keeps a subscriber's claim until its question is answered.
    pub(crate) fn keep_claim(&mut self, index: u32, claim: &Claim) {
        self.claims.insert(index, claim.clone());
    }

    /// Keeps the options of a request of LCP.
    pub(crate) fn keep_request(&mut self, index: u32, octets: &[u8]) {
        let Ok(frame) = Frame::parse(octets) else {
            return;
        };
        if frame.protocol != protocol::LCP {
            return;
        }
        let Ok(packet) = Control::parse(frame.information) else {
            return;
        };
        if packet.code != code::CONFIGURE_REQUEST || packet.data.len() > REQUEST_MAX {
            return;
        }
        let data: Box<[u8]> = packet.data.into();
        let kept = self.requests.entry(index);
        kept.and_modify(|kept| kept[1] = data.clone())
            .or_insert_with(|| [data.clone(), data.clone()]);
    }
}

/// What is known of a tunnel to an LNS.
struct Known<T> {
    tunnel: Option<T>,
    /// Until when it is tried last.
    avoided: Instant,
}

/// A session that is handed over, or about to be.
struct Switch<A: Access> {
    stage: Stage<A>,
    /// The LNS that is called, or has the session.
    lns: Lns,
    /// The LNSs that are not tried yet; the next one is the last.
    left: Vec<Lns>,
    /// Options of LCP's requests: the first received, the last sent, the last received.
    lcp: Option<[Box<[u8]>; 3]>,
    claim: Option<Claim>,
    /// Why the last LNS did not take it.
    why: String,
    /// Frames that arrived meanwhile.
    held: Vec<Box<[u8]>>,
    /// The LNS's names and addresses.
    far: Option<Box<Far<A::Place>>>,
}

/// How far the call is.
enum Stage<A: Access> {
    /// The owner is to open the tunnel.
    Wanted,
    /// The LNS is called in this session.
    Calling(A::Session),
    /// The LNS has it.
    Up(A::Session, A::Place),
}

/// The LNS that has a session, for records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Far<P> {
    /// The tunnel.
    pub tunnel: Arc<TunnelTo>,
    /// The LNS's name for itself.
    pub server_name: Box<[u8]>,
    /// Our name to it.
    pub client_name: Box<[u8]>,
    /// Our address, if it is known.
    pub client: Option<core::net::IpAddr>,
    /// Our session to it.
    pub place: P,
}

/// The other half of a switched session, for a view.
#[derive(Clone, Copy, Debug)]
pub struct SwitchedView<'a, P> {
    /// The tunnel to the LNS that has it, or is called.
    pub tunnel: &'a TunnelTo,
    /// Where the session to the LNS is; `None` until the LNS has taken it.
    pub place: Option<P>,
}

/// A tunnel that the owner is to open.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The tunnel.
    pub tunnel: Arc<TunnelTo>,
    subscriber: SubscriberKey,
}

/// Why an owner did not give a route to an LNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// The address is our own: the session would come back.
    OwnAddress,
    /// There is no socket for it; the text says why.
    NoSocket(String),
}

impl<A: Access> Edge<A> {
    /// The tunnel that the configuration gives for the realm of a user's name.
    #[must_use]
    pub fn tunnel_of_user(&self, name: &[u8]) -> Option<&str> {
        let place = self.switches.index.of_user(name)?;
        let tunnel = self.config.switching.tunnels.get(place)?;
        Some(&tunnel.name)
    }

    /// Hands a subscriber over: an answer to a [`crate::Question`]. `false` if the answer is stale.
    pub fn switch_to(&mut self, subscriber: SubscriberKey, tunnel: &str, now: Instant) -> bool {
        let profile = Profile {
            tunnel: Some(Box::new(Tunnelled::Named(tunnel.into()))),
            ..Profile::default()
        };
        let admission = crate::Admission {
            profile,
            ..crate::Admission::default()
        };
        self.admit(subscriber, admission, b"", now)
    }

    /// Hands an admitted subscriber over. Returns why not.
    pub(super) fn switch_admitted(
        &mut self,
        index: u32,
        profile: Profile,
        now: Instant,
    ) -> Result<(), String> {
        let lns = match profile.tunnel.as_deref() {
            Some(Tunnelled::To(lns)) => lns.clone(),
            Some(Tunnelled::Named(name)) => {
                let place = self.switches.index.named(name);
                let tunnels = &self.config.switching.tunnels;
                let tunnel = place.and_then(|place| tunnels.get(place));
                let tunnel = tunnel.ok_or_else(|| format!("there is no tunnel {name}"))?;
                tunnel.lns.as_ref().into()
            }
            None => return Err("no tunnel is named".to_owned()),
        };
        let claim = self.switches.claims.remove(&index);
        let lcp = self.negotiated(index);
        self.at_mut(index).profile = Some(Box::new(profile));
        self.begin_switch(index, &lns, lcp, claim, now);
        Ok(())
    }

    /// The options of LCP that an LNS takes over.
    fn negotiated(&mut self, index: u32) -> Option<[Box<[u8]>; 3]> {
        let one = self.subscribers.at(index)?;
        if let Some([first, last]) = self.switches.requests.remove(&index) {
            return Some([first, one.link.lcp_request().into(), last]);
        }
        let proxy = self.endpoint.proxy(one.session)?;
        let initial = self.endpoint.initial_request(one.session);
        Some([initial.into(), proxy.sent.into(), proxy.received.into()])
    }

    /// The tunnel for sessions of a line.
    fn tunnel_of_line(&self, place: A::Place) -> Option<usize> {
        if !self.switches.index.has_lines() {
            return None;
        }
        let (peer, port) = (self.endpoint.peer(place), self.endpoint.port(place));
        self.config.switching.of_line(peer.as_ref(), port)
    }

    /// Whether sessions of a line are handed over before PPP.
    pub(super) fn is_of_line(&self, place: A::Place) -> bool {
        self.tunnel_of_line(place).is_some()
    }

    /// Hands a new session over by its line, before PPP. `false` if no rule is for it.
    pub(super) fn switch_line(&mut self, index: u32, now: Instant) -> bool {
        let Some(tunnel) = self.tunnel_of_line(self.at(index).place) else {
            return false;
        };
        let lns = Arc::clone(&self.config.switching.tunnels[tunnel].lns);
        self.set_phase(index, Phase::Asking);
        self.begin_switch(index, &lns, None, None, now);
        true
    }

    /// Starts to hand a subscriber over to one of these LNSs.
    fn begin_switch(
        &mut self,
        index: u32,
        lns: &[Lns],
        lcp: Option<[Box<[u8]>; 3]>,
        claim: Option<Claim>,
        now: Instant,
    ) {
        let Self {
            switches, random, ..
        } = self;
        let is_avoided = |one: &Lns| {
            let known = switches.tunnels.get(&one.tunnel);
            known.is_some_and(|known| known.avoided > now)
        };
        let mut left = order(lns, is_avoided, || random.u64());
        let Some(first) = left.pop() else {
            return self.not_taken(index, "its tunnel has no LNS", now);
        };
        let switch = Switch {
            stage: Stage::Wanted,
            lns: first,
            left,
            lcp,
            claim,
            why: String::new(),
            held: Vec::new(),
            far: None,
        };
        self.switches.all.insert(index, Box::new(switch));
        self.try_lns(index, now);
    }

    /// Calls the LNS that is next: in its open tunnel, or once the owner has opened one.
    fn try_lns(&mut self, index: u32, now: Instant) {
        let Some(switch) = self.switches.all.get_mut(&index) else {
            return;
        };
        switch.stage = Stage::Wanted;
        let to = Arc::clone(&switch.lns.tunnel);
        self.at_mut(index).idle_at = later(now, self.config.switching.patience);
        self.settle_timer(index);
        match self.open_one(&to) {
            Some(tunnel) => self.call(index, tunnel, now),
            None => {
                let subscriber = SubscriberKey(self.at(index).key);
                let tunnel = to;
                let wanted = &mut self.switches.wanted;
                wanted.push_back(Wanted { tunnel, subscriber });
            }
        }
    }

    /// The tunnel to an LNS, if calls can be made in it.
    fn open_one(&self, to: &Arc<TunnelTo>) -> Option<A::Tunnel> {
        let tunnel = self.switches.tunnels.get(to)?.tunnel?;
        self.endpoint.tunnel_state(tunnel).map(|_| tunnel)
    }

    /// The next tunnel that is to be opened, oldest first.
    pub fn poll_wanted(&mut self) -> Option<Wanted> {
        self.switches.wanted.pop_front()
    }

    /// Whether a tunnel is to be opened.
    #[must_use]
    pub fn has_wanted(&self) -> bool {
        !self.switches.wanted.is_empty()
    }

    /// Whether a tunnel still needs a route. Otherwise [`Edge::open_wanted`] ignores it.
    #[must_use]
    pub fn needs_route(&self, wanted: &Wanted) -> bool {
        self.is_wanted(wanted) && self.open_one(&wanted.tunnel).is_none()
    }

    fn is_wanted(&self, wanted: &Wanted) -> bool {
        let index = wanted.subscriber.0.index;
        let there = self.subscribers.get(wanted.subscriber.0).is_some();
        let switch = self.switches.all.get(&index).filter(|_| there);
        switch.is_some_and(|one| {
            matches!(one.stage, Stage::Wanted) && one.lns.tunnel == wanted.tunnel
        })
    }

    /// Opens a tunnel on this route, and makes the call that it was wanted for. Returns whether the route is used.
    pub fn open_wanted(
        &mut self,
        wanted: &Wanted,
        route: Result<base::Route, NoRoute>,
        now: Instant,
    ) -> bool {
        let index = wanted.subscriber.0.index;
        if !self.is_wanted(wanted) {
            return false;
        }
        if let Some(tunnel) = self.open_one(&wanted.tunnel) {
            self.call(index, tunnel, now);
            return false;
        }
        let opened = match route {
            Ok(route) => self.endpoint.open_tunnel(&wanted.tunnel, route, now),
            Err(NoRoute::NoSocket(why)) => Err(why),
            Err(NoRoute::OwnAddress) => {
                self.switches.counts.own_address += 1;
                let server = wanted.tunnel.server;
                Err(format!("the LNS {server} is our own address"))
            }
        };
        match opened {
            Ok(tunnel) => {
                self.remember(&wanted.tunnel, |known| known.tunnel = Some(tunnel));
                self.call(index, tunnel, now);
                true
            }
            Err(why) => {
                self.next_lns(index, why, now);
                false
            }
        }
    }

    /// Changes what is known of a tunnel. At the limit, those that are neither open nor avoided are forgotten.
    fn remember(&mut self, to: &Arc<TunnelTo>, change: impl FnOnce(&mut Known<A::Tunnel>)) {
        let Self {
            switches,
            endpoint,
            config,
            ..
        } = self;
        let tunnels = &mut switches.tunnels;
        if tunnels.len() >= config.switching.tunnels_max && !tunnels.contains_key(to) {
            tunnels.retain(|_, known| {
                let open = known.tunnel.and_then(|open| endpoint.tunnel_state(open));
                open.is_some()
            });
        }
        let known = tunnels.entry(Arc::clone(to)).or_insert(Known {
            tunnel: None,
            avoided: Instant::ZERO,
        });
        change(known);
    }

    /// Makes the call.
    fn call(&mut self, index: u32, tunnel: A::Tunnel, now: Instant) {
        let Some(one) = self.subscribers.at(index) else {
            return;
        };
        let Some(switch) = self.switches.all.get_mut(&index) else {
            return;
        };
        let call = Call {
            numbers: one.numbers.as_deref(),
            private_group: &switch.lns.private_group,
            lcp: switch
                .lcp
                .as_ref()
                .map(|lcp| lcp.each_ref().map(|one| &**one)),
            claim: switch.claim.as_ref(),
        };
        match (self.endpoint).place_call(tunnel, Some(one.session), &call, now) {
            Ok(session) => {
                switch.stage = Stage::Calling(session);
                self.switches.legs.insert(session, index);
            }
            Err(why) => self.next_lns(index, why, now),
        }
    }

    /// The LNS did not take the session: tries the next one.
    fn next_lns(&mut self, index: u32, why: String, now: Instant) {
        let Some(switch) = self.switches.all.get_mut(&index) else {
            return;
        };
        match switch.left.pop() {
            Some(next) => {
                self.switches.counts.failed_over += 1;
                switch.lns = next;
                switch.why = why;
                self.try_lns(index, now);
            }
            None => {
                self.switches.all.remove(&index);
                self.not_taken(index, &why, now);
            }
        }
    }

    /// No LNS took the session.
    fn not_taken(&mut self, index: u32, why: &str, now: Instant) {
        self.switches.counts.not_taken += 1;
        self.counters.refused += 1;
        self.counters.refusals.count(Refusal::NoTunnel);
        self.at_mut(index).idle_at = Instant::FAR_FUTURE;
        let reason = End::Refused(format!("no LNS took its session: {why}").into());
        if self.at(index).link.awaits_answer() {
            self.turn_away(index, reason, b"no network server", now);
        } else {
            self.end(index, reason, now);
        }
    }

    /// Whether a call to an LNS is under way for a subscriber.
    pub(super) fn is_calling(&self, index: u32) -> bool {
        let switch = self.switches.all.get(&index);
        switch.is_some_and(|one| !matches!(one.stage, Stage::Up(..)))
    }

    /// Whether an LNS has the subscriber's session.
    pub(super) fn is_switched(&self, index: u32) -> bool {
        let switch = self.switches.all.get(&index);
        switch.is_some_and(|one| matches!(one.stage, Stage::Up(..)))
    }

    /// The LNS did not answer in time. `false` if no call is under way.
    pub(super) fn call_due(&mut self, index: u32, now: Instant) -> bool {
        if !self.is_calling(index) || self.at(index).idle_at > now {
            return false;
        }
        let Some(switch) = self.switches.all.get_mut(&index) else {
            return false;
        };
        let stage = core::mem::replace(&mut switch.stage, Stage::Wanted);
        let to = Arc::clone(&switch.lns.tunnel);
        let server = to.server;
        if let Stage::Calling(session) = stage {
            self.switches.legs.remove(&session);
            self.endpoint.hang_up(session, None, now);
            self.avoid(&to, now);
        }
        self.next_lns(index, format!("the LNS {server} does not answer"), now);
        true
    }

    /// Tries an LNS last for a while, and gives up its tunnel if that is not established.
    fn avoid(&mut self, to: &Arc<TunnelTo>, now: Instant) {
        let until = later(now, self.config.switching.avoid);
        self.remember(to, |known| known.avoided = until);
        if let Some(tunnel) = self.open_one(to)
            && self.endpoint.tunnel_state(tunnel) == Some(false)
        {
            self.endpoint.abandon_tunnel(tunnel, now);
        }
    }

    /// A session is up: if an LNS was called in it, the LNS has the subscriber now.
    pub(super) fn leg_up(&mut self, session: A::Session, now: Instant) -> bool {
        let Some(&index) = self.switches.legs.get(&session) else {
            return false;
        };
        let Some(info) = self.endpoint.session(session) else {
            return true;
        };
        let place = info.place;
        let Some(switch) = self.switches.all.get_mut(&index) else {
            return true;
        };
        let peer = self.endpoint.peer(place);
        let tunnel = Arc::clone(&switch.lns.tunnel);
        let named = |name: &Option<Box<str>>, other: Option<&[u8]>| match (name, other) {
            (Some(name), _) => name.as_bytes().into(),
            (None, other) => other.unwrap_or_default().into(),
        };
        switch.far = Some(Box::new(Far {
            server_name: peer.map_or_else(Box::default, |peer| peer.name.into()),
            client_name: named(&tunnel.client_name, peer.map(|peer| peer.own_name)),
            client: tunnel
                .client
                .or(peer.and_then(|peer| Some(peer.addresses?.1))),
            place,
            tunnel,
        }));
        switch.stage = Stage::Up(session, place);
        (switch.lcp, switch.claim) = (None, None);
        switch.left = Vec::new();
        let held = core::mem::take(&mut switch.held);
        self.switches.counts.taken += 1;
        self.switches.counts.sessions += 1;
        self.switches.forget(index);
        // The LNS continues PPP from here.
        let fresh = Link::new(Side::Network, &self.config.ppp, &mut self.random);
        self.at_mut(index).link = fresh;
        self.at_mut(index).idle_at = Instant::FAR_FUTURE;
        self.publish_crossing(index);
        for frame in held {
            self.cross(index, true, &frame);
        }
        self.network_up(index, now);
        self.settle_timer(index);
        true
    }

    /// A session ended: if it was one to an LNS, fails over or ends the subscriber. `false` if it was not.
    pub(super) fn leg_down(
        &mut self,
        session: A::Session,
        reason: &A::Reason,
        now: Instant,
    ) -> bool {
        let Some(index) = self.switches.legs.remove(&session) else {
            return false;
        };
        let Some(switch) = self.switches.all.get(&index) else {
            return true;
        };
        let to = Arc::clone(&switch.lns.tunnel);
        if matches!(switch.stage, Stage::Up(..)) {
            let own = self.at(index).session;
            self.endpoint.hang_up(own, Some(reason), now);
            let reason = match self.shutting_down {
                true => End::ShutDown,
                false => End::Lns(reason.clone()),
            };
            self.finish(index, reason, now);
            return true;
        }
        if reason.is_silence() {
            self.avoid(&to, now);
        }
        let why = format!("the LNS {}: {reason}", to.server);
        self.next_lns(index, why, now);
        true
    }

    /// Sets what the LNS that has a subscriber's session will read about the end of PPP.
    pub(super) fn set_cause_at_lns(&mut self, index: u32, cause: LinkCause) {
        if let Some(Stage::Up(session, _)) = self.switches.all.get(&index).map(|one| &one.stage) {
            self.endpoint.set_cause(*session, cause);
        }
    }

    /// Whether the LNS that has a subscriber's session accepts new speeds of its line (RFC 5515, section 4).
    pub(super) fn may_report_speed(&self, index: u32) -> bool {
        match self.switches.all.get(&index).map(|one| &one.stage) {
            Some(Stage::Up(session, _)) => self.endpoint.may_report_speed(*session),
            _ => false,
        }
    }

    /// Reports new speeds of a line, down and up, to the LNS that has its session.
    pub(super) fn report_speed(&mut self, index: u32, bps: [Option<u64>; 2]) {
        if let Some(Stage::Up(session, _)) = self.switches.all.get(&index).map(|one| &one.stage)
            && self.endpoint.report_speed(*session, bps)
        {
            self.switches.counts.speeds_reported += 1;
        }
    }

    /// A LAC reported new speeds of a line: the LNS that has its session gets them.
    pub(super) fn pass_speed(&mut self, session: A::Session, bps: [u64; 2]) {
        if let Some(index) = self.subscriber_of(session)
            && self.is_switched(index)
        {
            self.report_speed(index, bps.map(Some));
        }
    }

    /// Gives up a call to an LNS, because the subscriber negotiates anew or ends.
    pub(super) fn drop_call(&mut self, index: u32, now: Instant) {
        if self.is_calling(index) {
            self.at_mut(index).idle_at = Instant::FAR_FUTURE;
            self.forget_switch(index, None, now);
        }
    }

    /// Ends the half of a session that an LNS has or is called for.
    pub(super) fn forget_switch(&mut self, index: u32, why: Option<&A::Reason>, now: Instant) {
        self.switches.forget(index);
        let Some(switch) = self.switches.all.remove(&index) else {
            return;
        };
        let session = match switch.stage {
            Stage::Wanted => return,
            Stage::Calling(session) => session,
            Stage::Up(session, _) => {
                self.change(Step::Uncross(index));
                self.switches.counts.sessions -= 1;
                session
            }
        };
        if self.switches.legs.remove(&session).is_some() {
            self.endpoint.hang_up(session, why, now);
        }
    }

    /// Joins the two sessions of a subscriber in all paths.
    fn publish_crossing(&mut self, index: u32) {
        let Some(Stage::Up(other, _)) = self.switches.all.get(&index).map(|one| &one.stage) else {
            return;
        };
        let (key, own) = (self.at(index).key, self.at(index).session);
        let ways = [own, *other].map(|session| self.endpoint.encapsulation(session));
        let [Some(own), Some(other)] = ways else {
            return;
        };
        let paths = usize::from(self.config.paths.max(1));
        let meters = &mut self.at_mut(index).meters;
        let meters = Arc::clone(meters.get_or_insert_with(|| Meter::of_paths(paths)));
        let crossing = Crossing::new(key, [own, other], meters);
        self.change(Step::Cross(index, Box::new(crossing)));
    }

    /// Handles a frame of a session that is handed over, which no path took. `false` if the session is none.
    pub(super) fn switched_frame(&mut self, session: A::Session, frame: &[u8]) -> bool {
        if let Some(&index) = self.switches.legs.get(&session) {
            self.cross(index, false, frame);
            return true;
        }
        let Some(index) = self.subscriber_of(session) else {
            return false;
        };
        let awaits_answer = self.at(index).link.awaits_answer();
        let Some(switch) = self.switches.all.get_mut(&index) else {
            return false;
        };
        if matches!(switch.stage, Stage::Up(..)) {
            self.cross(index, true, frame);
            return true;
        }
        if awaits_answer {
            // PPP is alive here until the LNS has the session.
            return false;
        }
        let octets: usize = switch.held.iter().map(|held| held.len()).sum();
        if switch.held.len() < HELD_FRAMES_MAX && octets + frame.len() <= HELD_OCTETS_MAX {
            switch.held.push(frame.into());
        } else {
            self.switches.counts.not_held += 1;
        }
        true
    }

    /// Sends a frame on to the other half: up to the LNS, or down to the subscriber.
    fn cross(&mut self, index: u32, is_up: bool, frame: &[u8]) {
        let Some(Stage::Up(other, _)) = self.switches.all.get(&index).map(|one| &one.stage) else {
            self.path.counts().discard(Discard::NotOpen);
            return;
        };
        let (own, other) = (self.at(index).session, *other);
        let fixed = self.endpoint.is_fixed(own) && self.endpoint.is_fixed(other);
        let known = self.path.crossings.get(index).map(Crossing::is_fixed);
        if known != Some(fixed) {
            self.publish_crossing(index);
        }
        let to = if is_up { other } else { own };
        let Some((header, route)) = self.endpoint.header(to) else {
            self.path.counts().discard(Discard::NotOpen);
            return;
        };
        let has_address = A::Encapsulation::has_address(&route);
        let (address, frame): (&[u8], _) = match (frame, has_address) {
            ([0xff, 0x03, rest @ ..], false) => (&[], rest),
            (frame, true) if !self.had_address(if is_up { own } else { other }) => {
                (&ADDRESS, frame)
            }
            (frame, _) => (&[], frame),
        };
        let mut head = [0; crate::access::HEADER_MAX + 2];
        let own = header.as_ref();
        head[..own.len()].copy_from_slice(own);
        head[own.len()..own.len() + address.len()].copy_from_slice(address);
        let head = &head[..own.len() + address.len()];
        // The path's own frames leave by the same queue, so that none overtakes another.
        let Some(datagram) = self.path.outgoing.push(route, head, frame) else {
            self.path.counts().discard(Discard::Backlog);
            return;
        };
        A::Encapsulation::complete(&route, datagram, 0);
        if self.path.copies.is_on() && !is_up {
            let key = self.subscribers.at(index).map(|one| SubscriberKey(one.key));
            let key = key.expect("it is switched");
            let passed = Passed::Outside(route);
            (self.path.copies).copy(key, passed, true, [datagram, &[]]);
        }
        self.path.count_crossed(index, is_up, frame.len());
    }

    /// Whether frames of a session come with address and control bytes.
    fn had_address(&self, session: A::Session) -> bool {
        let way = self.endpoint.encapsulation(session);
        way.is_some_and(|(way, _)| A::Encapsulation::has_address(&way.route()))
    }

    /// The LNS of a subscriber, for a view.
    #[must_use]
    pub fn switched(&self, key: SubscriberKey) -> Option<SwitchedView<'_, A::Place>> {
        self.subscribers.get(key.0)?;
        let switch = self.switches.all.get(&key.0.index)?;
        Some(SwitchedView {
            tunnel: &switch.lns.tunnel,
            place: match switch.stage {
                Stage::Wanted | Stage::Calling(_) => None,
                Stage::Up(_, place) => Some(place),
            },
        })
    }

    /// The LNS that has a subscriber's session, for its records.
    pub(super) fn far(&self, index: u32) -> Option<Box<Far<A::Place>>> {
        self.switches.all.get(&index)?.far.clone()
    }

    /// The subscriber whose session an LNS has in this session.
    #[must_use]
    pub fn switched_to(&self, session: A::Session) -> Option<SubscriberKey> {
        let index = *self.switches.legs.get(&session)?;
        self.subscribers.at(index).map(|one| SubscriberKey(one.key))
    }

    /// Counters of sessions that are handed over.
    #[must_use]
    pub fn switch_counts(&self) -> SwitchCounts {
        self.switches.counts
    }
}
