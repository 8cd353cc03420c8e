//! Sessions become subscribers; the events of their PPP links; every way to end.

use aaa::Profile;
use base::{Duration, Instant};
use ppp::{Claim, Context, Link, LinkEnd, Side};
use wire::l2tp::disconnect::code;

use super::{Dial, Edge};
use crate::access::{Access, Encapsulation};
use crate::counters::{Discard, Refusal};
use crate::end::End;
use crate::event::{Event, Question};
use crate::history::Ended;
use crate::key::SubscriberKey;
use crate::path::Passed;
use crate::subscriber::{Phase, Subscriber};

impl<A: Access> Edge<A> {
    /// A session is up: starts a link in it, if the session ends here.
    pub(crate) fn session_up(&mut self, session: A::Session, now: Instant) {
        if self.leg_up(session, now) {
            return;
        }
        let dial = self.dials.remove(&session);
        let Some(info) = self.endpoint.session(session) else {
            return;
        };
        let takes = self.config.terminate || self.is_of_line(info.place);
        let ends_here = dial.is_some() || (takes && info.is_network);
        if !info.is_ppp || !ends_here {
            return;
        }
        if self.subscribers.len() >= self.config.subscribers_max as usize {
            self.counters.too_many += 1;
            self.counters.refusals.count(Refusal::TooManySubscribers);
            self.endpoint.end(session, Duration::ZERO, now);
            return;
        }
        let is_client = dial.is_some();
        let name = dial.as_ref().and_then(Dial::name);
        let networks = dial.as_ref().map(|dial| dial.networks.clone());
        let side = dial.map_or(Side::Network, Dial::side);
        let mut link = Link::new(side, &self.config.ppp, &mut self.random);
        if let Some(packet_max) = info.ether_max {
            link.set_ether(packet_max);
        }
        self.last_account += 1;
        let key = self
            .subscribers
            .insert_with(|key| Subscriber::new(key, session, info.place, link, is_client, now));
        self.bind_session(session, key.index);
        let subscriber = self.subscribers.at_mut(key.index).expect("it was inserted");
        subscriber.enter(&mut self.phases);
        subscriber.account = self.last_account;
        subscriber.numbers = self.endpoint.numbers(session);
        self.register_account(key.index);
        if let Some(routes) = networks.filter(|networks| !networks.is_empty()) {
            let profile = Profile {
                routes,
                ..Profile::default()
            };
            self.at_mut(key.index).profile = Some(Box::new(profile));
        }
        if let Some(name) = name {
            self.set_name(key.index, &name);
            self.register_name(key.index);
        }
        self.at_mut(key.index).open_by = later(now, self.config.setup_timeout);
        if is_client || !self.switch_line(key.index, now) {
            self.start_link(key.index, now);
        }
    }

    /// Starts the link of a new subscriber, where the peer left off if it has negotiated in our name.
    fn start_link(&mut self, index: u32, now: Instant) {
        let Some(subscriber) = self.subscribers.at_mut(index) else {
            return;
        };
        let mut context = Context {
            now,
            config: &self.config.ppp,
            random: &mut self.random,
            out: &mut self.outbox,
        };
        let proxy = self.endpoint.proxy(subscriber.session);
        match proxy.filter(|_| !subscriber.is_client) {
            Some(proxy) => {
                subscriber.link.up_with_proxy(&proxy, &mut context);
            }
            None => subscriber.link.up(&mut context),
        }
        self.serve_outbox(index, now);
        self.settle_timer(index);
    }

    /// Calls a subscriber's link, and handles the frames and events that it leaves.
    pub(crate) fn with_link<R>(
        &mut self,
        index: u32,
        now: Instant,
        call: impl FnOnce(&mut Link, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let subscriber = self.subscribers.at_mut(index)?;
        let mut context = Context {
            now,
            config: &self.config.ppp,
            random: &mut self.random,
            out: &mut self.outbox,
        };
        let result = call(&mut subscriber.link, &mut context);
        self.serve_outbox(index, now);
        self.settle_timer(index);
        Some(result)
    }

    /// Sends a link's frames and handles its events.
    fn serve_outbox(&mut self, index: u32, now: Instant) {
        let mut outbox = core::mem::take(&mut self.outbox);
        let session = self.at(index).session;
        for frame in outbox.frames() {
            let Some((header, route)) = self.endpoint.header(session) else {
                break;
            };
            let frame = match frame {
                [0xff, 0x03, rest @ ..] if !A::Encapsulation::has_address(&route) => rest,
                frame => frame,
            };
            // A client's acknowledgement must not leave with its first packets of IPCP: a server without authentication
            // would get those before it has admitted the client.
            // Padding is for UDP, where datagrams of one length leave together.
            let is_padded = A::Encapsulation::has_address(&route);
            let pushed = if self.at(index).is_client || !is_padded {
                self.outgoing.push(route, header.as_ref(), frame)
            } else {
                self.outgoing.push_frame(route, header.as_ref(), frame)
            };
            let Some(datagram) = pushed else {
                self.path.counts().discard(Discard::Backlog);
                continue;
            };
            A::Encapsulation::complete(&route, datagram, 0);
            if self.path.copies.is_on() {
                let key = self.subscribers.at(index).map(|one| SubscriberKey(one.key));
                let passed = Passed::Outside(route);
                let copies = &mut self.path.copies;
                copies.copy(key.expect("it is there"), passed, true, [datagram, &[]]);
            }
        }
        for event in outbox.take_events() {
            if self.subscribers.at(index).is_some() {
                self.link_event(index, event, now);
            }
        }
        outbox.clear();
        self.outbox = outbox;
    }

    fn link_event(&mut self, index: u32, event: ppp::Event, now: Instant) {
        match event {
            ppp::Event::LcpUp => self.lcp_up(index, now),
            ppp::Event::Authenticate(claim) => self.claimed(index, claim),
            ppp::Event::Authenticated => {
                let subscriber = self.at_mut(index);
                // In other phases this was a repeated challenge, which changes nothing.
                if subscriber.phase() == Phase::Link {
                    self.set_phase(index, Phase::Networks);
                }
            }
            ppp::Event::Ipv4Up(settings) => self.ipv4_up(index, &settings, now),
            ppp::Event::Ipv4Down => self.ipv4_down(index),
            ppp::Event::Ipv6Up(settings) => self.ipv6_up(index, &settings, now),
            ppp::Event::Ipv6Down => self.ipv6_down(index),
            ppp::Event::Ended(end) => {
                let subscriber = self.at_mut(index);
                let reason = match subscriber.ending.take() {
                    Some(reason) => *reason,
                    None => End::of_link(&subscriber.link, end),
                };
                let session = subscriber.session;
                let wait = match end {
                    // The peer reads our Terminate-Ack first (RFC 1661, section 3.7), and then ends the session itself.
                    LinkEnd::PeerTerminated => self.config.ppp.restart,
                    _ => Duration::ZERO,
                };
                if let Some(cause) = reason.disconnect_cause(&self.at(index).link) {
                    self.endpoint.set_cause(session, cause);
                }
                self.endpoint.end(session, wait, now);
                self.finish(index, reason, now);
            }
        }
    }

    /// LCP is open, perhaps again: authentication and addresses follow.
    fn lcp_up(&mut self, index: u32, now: Instant) {
        self.drop_call(index, now);
        let open_by = later(now, self.config.setup_timeout);
        let (subscriber, phases) = self.at_mut_with_phases(index);
        if subscriber.phase() != Phase::Ending {
            subscriber.set_phase(Phase::Link, phases);
            if subscriber.open_by == Instant::FAR_FUTURE {
                subscriber.open_by = open_by;
            }
        }
    }

    /// A subscriber claims a name. If an earlier claim is unanswered, this one waits.
    fn claimed(&mut self, index: u32, claim: Claim) {
        let subscriber = self.at_mut(index);
        match subscriber.asked {
            Some(_) => subscriber.again.get_or_insert_default().next = Some(claim),
            None => self.ask(index, claim),
        }
    }

    /// Queues the question about a subscriber's latest claim.
    pub(crate) fn ask(&mut self, index: u32, claim: Claim) {
        let (subscriber, phases) = self.at_mut_with_phases(index);
        subscriber.asked = Some(subscriber.link.claims());
        let was_let_in = subscriber.up.is_some() || subscriber.phase() != Phase::Link;
        if subscriber.phase() == Phase::Link {
            subscriber.set_phase(Phase::Asking, phases);
        }
        if was_let_in {
            subscriber.again.get_or_insert_default().name = Some(claim.name.clone());
        } else if subscriber.name != claim.name {
            self.forget_name(index);
            self.set_name(index, &claim.name);
        }
        if self.config.switching.is_on {
            self.switches.keep_claim(index, &claim);
        }
        let subscriber = SubscriberKey(self.at(index).key);
        self.questions.push_back(Question { subscriber, claim });
    }

    /// A network protocol is open: packets may flow.
    pub(crate) fn network_up(&mut self, index: u32, now: Instant) {
        self.set_mtu(index);
        let defaults = [self.config.session_timeout, self.config.idle_timeout];
        let interim = self.config.interim_interval;
        let (subscriber, phases) = self.at_mut_with_phases(index);
        subscriber.set_phase(Phase::Up, phases);
        subscriber.open_by = Instant::FAR_FUTURE;
        let was_up = subscriber.up.is_some();
        self.publish(index);
        if was_up {
            return;
        }
        let subscriber = self.at_mut(index);
        subscriber.up = Some(now);
        if !subscriber.is_client {
            let [session, idle] = defaults;
            let session = subscriber.limit(|profile| profile.session_timeout, session);
            subscriber.end_at = later(now, session);
            let idle = subscriber.limit(|profile| profile.idle_timeout, idle);
            subscriber.idle_at = later(now, idle);
            let interim = subscriber.limit(|profile| profile.interim_interval, interim);
            subscriber.interim_at = later(now, interim);
            self.account_begins(index, now);
        }
        let subscriber = SubscriberKey(self.at(index).key);
        self.counters.up += 1;
        self.events.push_back(Event::Up { subscriber });
    }

    /// Handles a subscriber's deadlines.
    pub(crate) fn subscriber_due(&mut self, index: u32, now: Instant) {
        if self.call_due(index, now) {
            return;
        }
        let defaults = (self.config.idle_timeout, self.config.interim_interval);
        let subscriber = self.at_mut(index);
        if subscriber.end_at <= now {
            subscriber.end_at = Instant::FAR_FUTURE;
            self.end(index, End::SessionTimeout, now);
            return;
        }
        if subscriber.open_by <= now {
            self.end(index, End::SetupTimeout, now);
            return;
        }
        if subscriber.idle_at <= now {
            let traffic = subscriber.traffic();
            let packets = traffic.packets_in + traffic.packets_out;
            if core::mem::replace(&mut subscriber.packets_seen, packets) == packets {
                subscriber.idle_at = Instant::FAR_FUTURE;
                self.end(index, End::IdleTimeout, now);
                return;
            }
            let idle = subscriber.limit(|profile| profile.idle_timeout, defaults.0);
            subscriber.idle_at = later(now, idle);
        }
        if subscriber.interim_at <= now {
            let interim = subscriber.limit(|profile| profile.interim_interval, defaults.1);
            subscriber.interim_at = later(now, interim);
            self.account_goes_on(index, now);
        }
        self.family_due(index, now);
        self.with_link(index, now, |link, ctx| link.handle_timeout(ctx));
    }

    /// Ends a subscriber in order: stops its packets, closes its link, and then removes it.
    pub(crate) fn end(&mut self, index: u32, reason: End<A::Reason>, now: Instant) {
        if self.at(index).phase() == Phase::Ending {
            return;
        }
        if self.is_switched(index) {
            let session = self.at(index).session;
            // PPP ends without our Terminate-Request: only the administrator's reason is true here.
            if let Some(cause) = reason.disconnect_cause(&self.at(index).link)
                && cause.code == code::ADMINISTRATIVE
            {
                self.endpoint.set_cause(session, cause);
                self.set_cause_at_lns(index, cause);
            }
            self.endpoint.end(session, Duration::ZERO, now);
            return self.finish(index, reason, now);
        }
        self.drop_call(index, now);
        self.tell_to_go(index, reason);
        self.publish(index);
        self.with_link(index, now, |link, ctx| link.close(ctx));
    }

    /// A session ended, and its link with it.
    pub(crate) fn session_down(&mut self, session: A::Session, reason: &A::Reason, now: Instant) {
        self.dials.remove(&session);
        if self.leg_down(session, reason, now) {
            return;
        }
        let Some(index) = self.subscriber_of(session) else {
            return;
        };
        let ending = self.at_mut(index).ending.take();
        let reason = match ending {
            Some(end) => *end,
            None if self.shutting_down => End::ShutDown,
            None => {
                let link = &self.at(index).link;
                match link.closing() {
                    // The peer ended the session before it acknowledged our Terminate-Request.
                    Some(end) => End::of_link(link, end),
                    None => End::Session(reason.clone()),
                }
            }
        };
        self.finish(index, reason, now);
    }

    /// Removes a subscriber and releases all that it holds.
    pub(crate) fn finish(&mut self, index: u32, reason: End<A::Reason>, now: Instant) {
        self.ipv4_down(index);
        self.ipv6_down(index);
        let stop = self.account_ends(index, &reason, now);
        let why = match &reason {
            End::Session(why) => Some(why),
            _ => None,
        };
        self.forget_switch(index, why, now);
        self.release(index);
        self.forget_name(index);
        let key = self.at(index).key;
        let Some(subscriber) = self.remove_subscriber(key) else {
            return;
        };
        self.counters.down += 1;
        self.counters.ends.count(reason.terminate_cause());
        let is_late = matches!(
            reason,
            End::SetupTimeout | End::Link(LinkEnd::AuthenticationTimeout)
        );
        if is_late && subscriber.up.is_none() && !subscriber.is_client {
            self.counters.refusals.count(Refusal::Timeout);
        }
        let ended = Ended {
            name: subscriber.name.clone(),
            account: subscriber.account,
            place: subscriber.place,
            address: subscriber.held,
            created: subscriber.created,
            up: subscriber.up,
            ended: now,
            traffic: subscriber.traffic(),
            reason: reason.clone(),
        };
        self.part(stop, ended, subscriber.meters);
        self.events.push_back(Event::Down {
            subscriber: SubscriberKey(key),
            session: subscriber.session,
            name: subscriber.name,
            account: subscriber.account,
            was_up: subscriber.up.is_some(),
            is_client: subscriber.is_client,
            reason,
        });
    }
}

/// The deadline after a span; zero means never.
pub(super) fn later(now: Instant, span: Duration) -> Instant {
    match span {
        Duration::ZERO => Instant::FAR_FUTURE,
        span => now + span,
    }
}
