//! An edge, two concentrators with clients, and wires between them that damage datagrams on request.

use core::net::IpAddr;
use std::collections::{HashSet, VecDeque};

use base::{Duration, Instant, Route};
use edge::{Edge, End, Phase, Question, Refusal, SubscriberKey, TAPS_MAX, TapId};
use filter::Direction;
use l2tp::{Call, OpenTunnel, SessionKey, TunnelKey};
use wire::ip::Header;
use wire::l2tp::{Packet, Version, parse};

use super::books::{Books, subscribers, used};
use super::packets::{Datagrams, Mend, Packets, from};
use super::setup::{
    CLIENTS, LNS, POOL, admission, client, credentials, filters, is_right, lns, route,
};
use crate::targets::forward_checks::is_head_right;

/// The time that one input may take.
const TIME_MAX: Duration = Duration::from_secs(600);
/// Answered questions that are remembered.
const ANSWERED_MAX: usize = 4;

/// A change to a datagram.
pub(super) struct Damage {
    pub(super) kind: u8,
    /// Datagrams before it that pass unchanged.
    pub(super) skip: u8,
    pub(super) at: u8,
    pub(super) value: u8,
}

pub(super) struct World {
    lns: Edge,
    clients: [Edge; 2],
    tunnels: [TunnelKey; 2],
    now: Instant,
    books: Books,
    /// Whether questions are answered at once.
    pub(super) asks_at_once: bool,
    questions: Vec<Question>,
    answered: VecDeque<SubscriberKey>,
    /// Pending damage to datagrams to the edge, and to those from it.
    damages: [VecDeque<Damage>; 2],
    /// Delayed datagrams: their sender, or the client if the edge sent them.
    late: Vec<(usize, bool, Vec<u8>)>,
    taps: Vec<TapId>,
    buffer: Vec<u8>,
    lives: u8,
    /// A datagram with a packet that was forwarded.
    sample: Option<(usize, Vec<u8>)>,
}

impl World {
    pub(super) fn new(choice: u8) -> Self {
        let mut clients = [client(11), client(12)];
        let now = Instant::from_nanos(1_000_000_000);
        let tunnels = [0, 1].map(|n| open(&mut clients[n], n, now));
        let mut world = Self {
            lns: lns(choice),
            clients,
            tunnels,
            now,
            books: Books::default(),
            asks_at_once: true,
            questions: Vec::new(),
            answered: VecDeque::new(),
            damages: Default::default(),
            late: Vec::new(),
            taps: Vec::new(),
            buffer: Vec::new(),
            lives: 20,
            sample: None,
        };
        world.settle();
        world
    }

    /// Delivers datagrams until no machine has anything to send.
    pub(super) fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1_000, "they do not stop to speak");
            let mut any = false;
            for n in 0..2 {
                while let Some(octets) = self.said_by_client(n) {
                    self.pass_on(n, true, octets);
                    any = true;
                }
            }
            while let Some((n, octets)) = self.said_by_edge() {
                self.pass_on(n, false, octets);
                any = true;
            }
            any |= self.hear();
            if !any {
                break;
            }
        }
    }

    fn said_by_client(&mut self, n: usize) -> Option<Vec<u8>> {
        self.buffer.clear();
        let client = &mut self.clients[n];
        client.poll_transmit(self.now, &mut self.buffer)?;
        Some(self.buffer.clone())
    }

    /// Checks that a datagram from the edge parses, and that its destination has sent to the edge before.
    fn said_by_edge(&mut self) -> Option<(usize, Vec<u8>)> {
        loop {
            self.buffer.clear();
            let route = self.lns.poll_transmit(self.now, &mut self.buffer)?;
            parse(&self.buffer).expect("it can be read");
            let peer = route.peer.to_string();
            if let Some(n) = CLIENTS.iter().position(|client| *client == peer) {
                return Some((n, self.buffer.clone()));
            }
        }
    }

    /// Carries a datagram to the edge, or from it to a client.
    fn pass_on(&mut self, n: usize, is_up: bool, mut octets: Vec<u8>) {
        let damages = &mut self.damages[usize::from(!is_up)];
        if let Some(next) = damages.front_mut() {
            if next.skip > 0 {
                next.skip -= 1;
            } else if let Some(damage) = damages.pop_front() {
                let at = usize::from(damage.at) % octets.len().max(1);
                match damage.kind % 5 {
                    0 => octets[at] ^= damage.value | 1,
                    1 => octets.truncate(at),
                    2 => return,
                    3 => self.arrive(n, is_up, &octets),
                    _ => return self.late.push((n, is_up, octets)),
                }
            }
        }
        self.arrive(n, is_up, &octets);
    }

    fn arrive(&mut self, n: usize, is_up: bool, octets: &[u8]) {
        if is_up {
            return self.receive(CLIENTS[n], octets);
        }
        let mut inside = Packets::default();
        self.clients[n].receive(route(LNS), octets, self.now, &mut inside);
        for packet in inside.0 {
            let header = Header::read(&packet).expect("the client was sent a packet");
            assert_eq!(header.total_length as usize, packet.len());
            let key = self.lns.at_address(header.destination_address());
            if let Some(one) = key.and_then(|key| self.lns.subscriber(key)) {
                assert!(packet.len() <= usize::from(one.mtu));
            }
        }
    }

    /// Delivers a datagram to the edge.
    pub(super) fn receive(&mut self, peer: &str, octets: &[u8]) {
        let mut inside = Packets::default();
        self.lns.receive(route(peer), octets, self.now, &mut inside);
        assert!(inside.0.len() <= 1);
        for packet in inside.0 {
            self.check_inside(peer, &packet);
            let n = CLIENTS.iter().position(|client| *client == peer);
            self.sample = n.map(|n| (n, octets.to_vec()));
        }
    }

    /// Checks that a forwarded packet belongs to a subscriber of that peer, is sent from its own addresses, and
    /// passes its filter.
    fn check_inside(&self, peer: &str, packet: &[u8]) {
        let header = Header::read(packet).expect("a packet");
        assert_eq!(header.total_length as usize, packet.len());
        assert!(is_head_right(packet));
        let source = header.source_address();
        let key = self.lns.at_address(source);
        let one = key.and_then(|key| self.lns.subscriber(key));
        let one = one.unwrap_or_else(|| panic!("{source} is nobody's"));
        let tunnel = self.lns.endpoint().tunnel(one.place.tunnel);
        let of = tunnel.expect("it has a tunnel").route.peer;
        assert_eq!(of.to_string(), peer, "{source} is another's");
        assert_eq!(one.phase, Phase::Up);
        let own = one.profile.and_then(|profile| profile.filter.as_deref());
        let wanted = own.or(self.lns.config().filter.as_deref());
        let set = self.lns.filters().set();
        let id = wanted.and_then(|name| set.find(name));
        if let Some(filter) = id.and_then(|id| set.get(id))
            && filter.is_filtered(Direction::In)
        {
            assert!(filter.matches(&header, Direction::In).accept);
        }
    }

    /// Handles events and questions of the edge and the clients; returns whether a question was answered.
    fn hear(&mut self) -> bool {
        for client in &mut self.clients {
            while client.poll_event().is_some() {}
            while client.poll_inside().is_some() {}
            assert!(client.poll_account().is_none() && client.poll_question().is_none());
        }
        while let Some(event) = self.lns.poll_event() {
            self.books.event(&event);
        }
        while let Some(account) = self.lns.poll_account() {
            self.books.account(account);
        }
        while let Some(error) = self.lns.poll_inside() {
            let header = Header::read(&error).expect("an ICMP error is a packet");
            assert!(is_head_right(&error) && header.total_length as usize == error.len());
        }
        while self.lns.poll_logged().is_some() {}
        while let Some(tapped) = {
            self.buffer.clear();
            self.lns.poll_tapped(&mut self.buffer)
        } {
            assert!(self.taps.contains(&tapped.tap) && !self.buffer.is_empty());
        }
        assert!(!self.lns.has_tapped());
        let mut any = false;
        while let Some(question) = self.lns.poll_question() {
            let key = question.subscriber;
            let mut waiting = self.questions.iter();
            assert!(
                waiting.all(|other| other.subscriber != key),
                "two questions of one"
            );
            if self.asks_at_once {
                self.answer(&question, is_right(&question));
                any = true;
            } else {
                self.questions.push(question);
            }
        }
        any
    }

    fn answer(&mut self, question: &Question, let_in: bool) {
        let key = question.subscriber;
        let name = &question.claim.name;
        if let_in {
            self.lns.admit(key, admission(name), b"hello", self.now);
        } else {
            self.lns
                .refuse(key, (Refusal::Rejected, "a wrong secret"), b"no", self.now);
        }
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(key);
    }

    /// Answers a question that is waiting.
    pub(super) fn answer_late(&mut self, whom: usize, how: u8) {
        if self.questions.is_empty() {
            return;
        }
        let question = self.questions.remove(whom % self.questions.len());
        self.answer(&question, how & 1 == 0);
    }

    /// Answers a question again; the edge ignores an answer that it does not wait for.
    pub(super) fn answer_again(&mut self, whom: usize, how: u8) {
        let Some(&key) = self.answered.get(whom % ANSWERED_MAX) else {
            return;
        };
        let asks = self
            .questions
            .iter()
            .any(|question| question.subscriber == key);
        if asks {
            return;
        }
        let heeded = match how & 1 {
            0 => self.lns.admit(key, admission(b"user3"), b"", self.now),
            _ => self
                .lns
                .refuse(key, (Refusal::Rejected, "no"), b"", self.now),
        };
        assert!(!heeded, "an answer without a question");
    }

    pub(super) fn dial(&mut self, whom: usize) {
        let n = whom & 1;
        let client = &mut self.clients[n];
        let endpoint = client.endpoint_mut();
        if let Ok(session) = endpoint.open_session(self.tunnels[n], Call::default(), self.now) {
            client.dial(session, credentials(whom), self.now);
        }
    }

    pub(super) fn damage(&mut self, is_up: bool, damage: Damage) {
        self.damages[usize::from(!is_up)].push_back(damage);
    }

    /// A client's session, and its concentrator.
    fn session(&self, whom: usize) -> Option<(usize, SessionKey)> {
        let all = [0, 1].into_iter().flat_map(|n| {
            let ours = subscribers(&self.clients[n]);
            ours.map(move |one| (n, one.session))
        });
        let all: Vec<_> = all.collect();
        all.get(whom % all.len().max(1)).copied()
    }

    /// A client sends a frame.
    pub(super) fn say(&mut self, whom: usize, frame: &[u8]) {
        let Some((n, session)) = self.session(whom) else {
            return;
        };
        let endpoint = self.clients[n].endpoint_mut();
        if let Some(header) = endpoint.data_header(session) {
            let datagram = [header.as_bytes(), frame].concat();
            self.pass_on(n, true, datagram);
        }
    }

    /// A client sends a packet past its own edge's checks.
    pub(super) fn packet_up(&mut self, whom: usize, mend: &Mend, octets: &[u8]) {
        let is_v6 = octets.first().is_some_and(|octet| octet >> 4 == 6);
        let source = self.session(whom).and_then(|(n, session)| {
            let one = self.clients[n].subscriber_in(session)?;
            match (is_v6, mend.is_behind()) {
                (true, _) => Some(IpAddr::from([0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 9])),
                (false, true) => Some(IpAddr::from([10, 77, 0, 9])),
                (false, false) => one.address.map(IpAddr::V4),
            }
        });
        let head: [u8; 4] = if is_v6 {
            [255, 3, 0, 0x57]
        } else {
            [255, 3, 0, 0x21]
        };
        let frame = [&head[..], &from(mend, source, octets)].concat();
        self.say(whom, &frame);
    }

    /// The inside of a client's edge sends a packet.
    pub(super) fn client_forward(&mut self, whom: usize, octets: &[u8]) {
        let mut out = Datagrams::default();
        let n = whom & 1;
        self.clients[n].forward(&mut octets.to_vec(), self.now, &mut out);
        for (_, datagram) in out.sent {
            self.pass_on(n, true, datagram);
        }
    }

    /// The address of a subscriber, or one in a network behind it.
    pub(super) fn destination(&self, whom: usize, is_behind: bool) -> Option<IpAddr> {
        let all: Vec<IpAddr> = subscribers(&self.lns)
            .flat_map(|one| {
                let behind = one.profile.map_or(&[][..], |profile| &profile.routes);
                let behind: Vec<IpAddr> = behind.iter().map(|network| network.address()).collect();
                let own = one.address.map(IpAddr::V4);
                if is_behind {
                    behind
                } else {
                    own.into_iter().collect()
                }
            })
            .collect();
        all.get(whom % all.len().max(1)).copied()
    }

    /// The inside sends a packet.
    pub(super) fn inside(&mut self, mut octets: Vec<u8>) {
        let mut out = Datagrams::default();
        self.lns.forward(&mut octets, self.now, &mut out);
        for (route, datagram) in out.sent {
            assert!(!matches!(parse(&datagram), Err(_) | Ok(Packet::Control(_))));
            let peer = route.peer.to_string();
            let n = CLIENTS.iter().position(|client| *client == peer);
            self.pass_on(n.expect("it is a client's"), false, datagram);
        }
    }

    /// Lets time pass; delayed datagrams are delivered first.
    pub(super) fn pass(&mut self, span: Duration) {
        for (n, is_up, octets) in core::mem::take(&mut self.late) {
            self.arrive(n, is_up, &octets);
        }
        self.settle();
        let end = (self.now + span).min(Instant::ZERO + TIME_MAX);
        while let Some(due) = self.next_due().filter(|&at| at <= end) {
            self.fire(due);
        }
        self.now = self.now.max(end);
    }

    fn next_due(&self) -> Option<Instant> {
        let clients = self.clients.iter().map(Edge::poll_timeout);
        let all = clients.chain([self.lns.poll_timeout()]).flatten();
        all.map(|(at, _)| at).min()
    }

    fn fire(&mut self, due: Instant) {
        self.now = self.now.max(due);
        self.lns.handle_timeout(self.now);
        for client in &mut self.clients {
            client.handle_timeout(self.now);
        }
        self.settle();
    }

    pub(super) fn drop_subscriber(&mut self, whom: usize, reason: End) {
        let keys: Vec<_> = subscribers(&self.lns).map(|one| one.key).collect();
        let Some(&key) = keys.get(whom % keys.len().max(1)) else {
            return;
        };
        self.lns.drop_subscriber(key, reason, self.now);
        assert!(!self.lns.drop_subscriber(key, End::ShutDown, self.now));
    }

    /// Replaces the filters.
    pub(super) fn filter(&mut self, number: usize) {
        self.lns.filters_mut().replace(filters(number));
    }

    /// Starts or ends a tap on a subscriber.
    pub(super) fn tap(&mut self, whom: usize) {
        if whom & 1 != 0 && !self.taps.is_empty() {
            let id = self.taps.remove(whom % self.taps.len());
            self.lns.untap(id);
            return assert_eq!(self.lns.tap_state(id), None);
        }
        let keys: Vec<_> = subscribers(&self.lns).map(|one| one.key).collect();
        let name = format!("user{}", whom % 8);
        let id = self.lns.tap(keys, Some(name.as_bytes()));
        assert_eq!(id.is_some(), self.taps.len() < TAPS_MAX);
        self.taps.extend(id);
    }

    /// A client ends, in one of several ways.
    pub(super) fn client_ends(&mut self, whom: usize, how: u8) {
        let Some((n, session)) = self.session(whom) else {
            return;
        };
        let client = &mut self.clients[n];
        match how % 4 {
            0 => {
                if let Some(key) = client.subscriber_in(session).map(|one| one.key) {
                    client.drop_subscriber(key, End::Administrator, self.now);
                }
            }
            1 => _ = client.endpoint_mut().close_session(session, self.now),
            2 => {
                _ = client
                    .endpoint_mut()
                    .close_tunnel(self.tunnels[n], self.now)
            }
            // Another client renegotiates LCP in its place.
            _ => self.say(
                whom,
                &[255, 3, 0xc0, 0x21, 1, how, 0, 10, 5, 6, 1, 2, 3, how],
            ),
        }
    }

    /// A concentrator crashes silently, and a new one takes its place.
    pub(super) fn crash(&mut self, n: usize) {
        self.lives = self.lives.wrapping_add(1);
        self.clients[n] = client(self.lives);
        self.tunnels[n] = open(&mut self.clients[n], n, self.now);
    }

    pub(super) fn shut_down(&mut self) {
        self.lns.shut_down(self.now);
    }

    pub(super) fn check(&self) {
        self.books.check(&self.lns);
        let keys: HashSet<_> = subscribers(&self.lns).map(|one| one.key).collect();
        for &id in &self.taps {
            let (on, _) = self.lns.tap_state(id).expect("it was not ended");
            assert!(on <= keys.len());
        }
    }

    /// Ends everything, with responsive or silent clients; nothing is left.
    pub(super) fn finish(mut self, is_silent: bool) {
        self.shut_down();
        if is_silent {
            for n in 0..2 {
                self.clients[n] = client(9);
            }
        }
        self.settle();
        for _ in 0..10_000 {
            let Some((due, _)) = self.lns.poll_timeout() else {
                break;
            };
            let due = self.next_due().map_or(due, |first| first.min(due));
            self.fire(due);
        }
        self.check();
        let counts = self.lns.counts();
        assert_eq!((counts.subscribers, counts.routes), (0, 0));
        assert_eq!(used(&self.lns), 0);
        let free: u32 = self.lns.pools().views().map(|pool| pool.free).sum();
        assert_eq!(free, u32::from(POOL));
        assert_eq!(self.lns.endpoint().counts(), l2tp::Counts::default());
        assert_eq!(self.lns.poll_timeout(), None);
        for question in core::mem::take(&mut self.questions) {
            let key = question.subscriber;
            let admission = admission(&question.claim.name);
            assert!(!self.lns.admit(key, admission, b"", self.now));
        }
        // A packet that arrives now has no subscriber.
        if let Some((n, octets)) = self.sample.take() {
            self.receive(CLIENTS[n], &octets);
            assert!(self.sample.is_none());
        }
        self.buffer.clear();
        assert!(self.lns.poll_transmit(self.now, &mut self.buffer).is_none());
        assert!(self.lns.is_quiet());
    }
}

fn open(client: &mut Edge, n: usize, now: Instant) -> TunnelKey {
    let open = OpenTunnel {
        route: Route { ..route(LNS) },
        version: [Version::V2, Version::V3][n],
    };
    let tunnel = client.endpoint_mut().open_tunnel(open, now);
    tunnel.expect("nothing is full")
}
