//! Sessions that become subscribers, what their PPP links tell, and every way to end.

use aaa::Profile;
use base::{Duration, Instant};
use l2tp::{SessionEnd, SessionKey};
use ppp::{Authentication, Claim, Context, Link, LinkEnd, Proxy, ProxyProof, Side};

use super::{Dial, Edge};
use crate::counters::Discard;
use crate::end::End;
use crate::event::{Event, Question};
use crate::history::Ended;
use crate::key::SubscriberKey;
use crate::path::Passed;
use crate::subscriber::{Phase, Subscriber};

/// Proxy Authen Types (RFC 2661 4.4.5).
const PROXY_CHAP: u16 = 2;
const PROXY_PAP: u16 = 3;

impl Edge {
    /// A session is up: a link begins in it, if it ends here.
    pub(crate) fn session_up(&mut self, session: SessionKey, now: Instant) {
        let dial = self.dials.remove(&session);
        let Some(view) = self.endpoint.session(session) else {
            return;
        };
        let is_ppp = view.pseudowire == l2tp::Pseudowire::Ppp.number();
        let ends_here = dial.is_some() || (self.config.terminate && !view.role.is_lac());
        if !is_ppp || !ends_here {
            return;
        }
        if self.subscribers.len() >= self.config.subscribers_max as usize {
            self.counters.too_many += 1;
            self.endpoint.end_payload(session, now);
            return;
        }
        let is_client = dial.is_some();
        let name = dial.as_ref().and_then(Dial::name);
        let networks = dial.as_ref().map(|dial| dial.networks.clone());
        let side = dial.map_or(Side::Network, Dial::side);
        let link = Link::new(side, &self.config.ppp, &mut self.random);
        self.last_account += 1;
        let account = self.last_account;
        let key = self
            .subscribers
            .insert_with(|key| Subscriber::new(key, &view, account, link, is_client, now));
        self.bind_session(session, key.index);
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
        let proxy = self.take_proxy(session).filter(|_| !is_client);
        self.with_link(key.index, now, |link, ctx| {
            match proxy.as_deref().and_then(proxied) {
                Some(proxy) => {
                    link.up_with_proxy(&proxy, ctx);
                }
                None => link.up(ctx),
            }
        });
    }

    /// What a LAC negotiated before, to be used once.
    fn take_proxy(&self, session: SessionKey) -> Option<Box<l2tp::Proxy>> {
        let details = self.endpoint.session(session)?.details?;
        details.proxy.clone()
    }

    /// Calls a subscriber's link, and does what comes of it.
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

    /// Sends what a link wants sent, and heeds what it tells.
    fn serve_outbox(&mut self, index: u32, now: Instant) {
        let mut outbox = core::mem::take(&mut self.outbox);
        let session = self.at(index).session;
        for frame in outbox.frames() {
            let Some(header) = self.endpoint.data_header(session) else {
                break;
            };
            if self.path.copies.is_on() {
                let key = SubscriberKey(self.at(index).key);
                let parts = [header.as_bytes(), frame];
                let passed = Passed::Outside(header.route);
                self.path.copies.copy(key, passed, true, parts);
            }
            if !self.outgoing.push(header.route, header.as_bytes(), frame) {
                self.path.counts().discard(Discard::Backlog);
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
                // Otherwise it was challenged once more, and nothing changes.
                if subscriber.phase == Phase::Link {
                    subscriber.phase = Phase::Networks;
                }
            }
            ppp::Event::Ipv4Up(settings) => self.ipv4_up(index, &settings, now),
            ppp::Event::Ipv4Down => self.ipv4_down(index),
            ppp::Event::Ipv6Up(settings) => self.ipv6_up(index, &settings, now),
            ppp::Event::Ipv6Down => self.ipv6_down(index),
            ppp::Event::Ended(end) => {
                let subscriber = self.at_mut(index);
                let reason = subscriber.ending.take().map_or(End::Link(end), |end| *end);
                let session = subscriber.session;
                if end == LinkEnd::PeerTerminated {
                    // It is to read our Terminate-Ack first (RFC 1661, section 3.7), and will hang up itself.
                    let wait = self.config.ppp.restart;
                    self.endpoint.end_payload_after(session, wait, now);
                } else {
                    self.endpoint.end_payload(session, now);
                }
                self.finish(index, reason, now);
            }
        }
    }

    /// LCP is open, maybe anew: who it is and what it has is asked again.
    fn lcp_up(&mut self, index: u32, now: Instant) {
        let open_by = later(now, self.config.setup_timeout);
        let subscriber = self.at_mut(index);
        if subscriber.phase != Phase::Ending {
            subscriber.phase = Phase::Link;
            if subscriber.open_by == Instant::FAR_FUTURE {
                subscriber.open_by = open_by;
            }
        }
    }

    /// A subscriber makes a claim. The one before may still wait for its answer, which this one waits for.
    fn claimed(&mut self, index: u32, claim: Claim) {
        let subscriber = self.at_mut(index);
        match subscriber.asked {
            Some(_) => subscriber.again.get_or_insert_default().next = Some(claim),
            None => self.ask(index, claim),
        }
    }

    /// Asks about a subscriber's claim, its latest.
    pub(crate) fn ask(&mut self, index: u32, claim: Claim) {
        let subscriber = self.at_mut(index);
        subscriber.asked = Some(subscriber.link.claims());
        let was_let_in = subscriber.up.is_some() || subscriber.phase != Phase::Link;
        if subscriber.phase == Phase::Link {
            subscriber.phase = Phase::Asking;
        }
        if was_let_in {
            subscriber.again.get_or_insert_default().name = Some(claim.name.clone());
        } else if subscriber.name != claim.name {
            self.forget_name(index);
            self.set_name(index, &claim.name);
        }
        let subscriber = SubscriberKey(self.at(index).key);
        self.questions.push_back(Question { subscriber, claim });
    }

    /// A network protocol is open.
    pub(crate) fn network_up(&mut self, index: u32, now: Instant) {
        self.set_mtu(index);
        let defaults = [self.config.session_timeout, self.config.idle_timeout];
        let interim = self.config.interim_interval;
        let subscriber = self.at_mut(index);
        subscriber.phase = Phase::Up;
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

    /// What is due for a subscriber.
    pub(crate) fn subscriber_due(&mut self, index: u32, now: Instant) {
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
        self.with_link(index, now, |link, ctx| link.handle_timeout(ctx));
    }

    /// Ends a subscriber in order: no packet passes any more, its peer is told, and then it is gone.
    pub(crate) fn end(&mut self, index: u32, reason: End, now: Instant) {
        if self.at(index).phase == Phase::Ending {
            return;
        }
        self.at_mut(index).tell_to_go(reason);
        self.publish(index);
        self.with_link(index, now, |link, ctx| link.close(ctx));
    }

    /// An L2TP session is gone, and its link with it.
    pub(crate) fn session_down(&mut self, session: SessionKey, reason: &SessionEnd, now: Instant) {
        self.dials.remove(&session);
        let Some(index) = self.subscriber_of(session) else {
            return;
        };
        let ending = self.at_mut(index).ending.take();
        let reason = match ending {
            Some(end) => *end,
            None if self.shutting_down => End::ShutDown,
            None => match self.at(index).link.closing() {
                // Its peer hung up before it said that it has heard.
                Some(end) => End::Link(end),
                None => End::Session(reason.clone()),
            },
        };
        self.finish(index, reason, now);
    }

    /// Takes a subscriber's record away with all that it holds.
    pub(crate) fn finish(&mut self, index: u32, reason: End, now: Instant) {
        self.ipv4_down(index);
        self.ipv6_down(index);
        let stop = self.account_ends(index, &reason, now);
        self.release(index);
        self.forget_name(index);
        let key = self.at(index).key;
        let Some(subscriber) = self.remove_subscriber(key) else {
            return;
        };
        self.counters.down += 1;
        let ended = Ended {
            name: subscriber.name.clone(),
            account: subscriber.account,
            ids: subscriber.ids,
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
            reason,
        });
    }
}

/// Zero is never.
fn later(now: Instant, span: Duration) -> Instant {
    match span {
        Duration::ZERO => Instant::FAR_FUTURE,
        span => now + span,
    }
}

/// The AVPs as a link takes them; `None` if they do not have both sides of LCP.
fn proxied(avps: &l2tp::Proxy) -> Option<Proxy<'_>> {
    if avps.last_sent_confreq.is_empty() && avps.last_received_confreq.is_empty() {
        return None;
    }
    let by = match avps.authen_type {
        Some(PROXY_CHAP) => Some(Authentication::ChapMd5),
        Some(PROXY_PAP) => Some(Authentication::Pap),
        _ => None,
    };
    let proof = by.map(|by| ProxyProof {
        by,
        name: avps.authen_name.reveal(),
        // "the low order octet" has it (RFC 2661 4.4.5).
        identifier: avps.authen_id.unwrap_or(0) as u8,
        challenge: &avps.authen_challenge,
        response: base::Redacted::new(avps.authen_response.reveal()),
    });
    Some(Proxy {
        sent: &avps.last_sent_confreq,
        received: &avps.last_received_confreq,
        proof,
    })
}
