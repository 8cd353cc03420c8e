//! Datagrams into an endpoint with live tunnels, LNS or LAC, with or without a secret: from the peers of two of
//! its tunnels, one of each version, and from strangers. Two more tunnels belong to a bystander, for which no
//! datagram is sent.
//!
//! An input is an octet that chooses the endpoint, then datagrams, each an octet of `How`, two octets of
//! length, and that many octets. The header, and the digest with it, may be corrected, so that a wrong sequence
//! number does not cause a mutated body to be dropped.

use core::net::SocketAddr;

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use l2tp::{Call, Config, Counts, Discard, Endpoint, Event, Limits, OutgoingCalls};
use wire::l2tp::{DigestType, Packet, Version, parse};

mod peer;

use peer::{BYSTANDER, Peer, STRANGER, addr};

/// Small, so that an input can reach them.
const LIMITS: Limits = Limits {
    tunnels: 9,
    half_open: 3,
    half_open_per_source: 3,
    half_open_flood: 1,
    sessions: 8,
    sessions_per_tunnel: 4,
    held: 3,
    history: 2,
};

/// How to send a datagram, from one octet of the input.
struct How(u8);

impl How {
    /// Its sender: the peer of the version 2 tunnel, that of the version 3 tunnel, the first one's host from
    /// another port, or a stranger.
    fn sender(&self) -> u8 {
        self.0 & 3
    }

    /// Whether the header is corrected for the sender's tunnel.
    fn in_sequence(&self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether it is delivered together with the next one.
    fn in_batch(&self) -> bool {
        self.0 & 8 != 0
    }

    /// Whether the sequence numbers of a corrected header are then shifted by a few: early, late, or
    /// acknowledging too much.
    fn out_of_sequence(&self) -> bool {
        self.0 & 16 != 0
    }

    /// The time that passes before it.
    fn pause(&self) -> Duration {
        let steps = [0, 0, 0, 10, 1_000, 2_000, 5_000, 10_000];
        Duration::from_millis(steps[usize::from(self.0 >> 5)])
    }
}

/// The longest time that one input may take: short enough that no HELLO is due.
const TIME_MAX: Duration = Duration::from_secs(45);

/// Takes an input as described above.
///
/// # Panics
/// If the endpoint sends unreadable data or sends to an unknown address, a table exceeds its limit, counters
/// contradict tables, a discarded datagram leaves state, the bystander is affected, or anything is left after a
/// shutdown.
pub fn target(data: &[u8]) {
    let (&choice, mut rest) = data.split_first().unwrap_or((&0, &[]));
    let mut live = Live::new(choice & 1 != 0, choice & 2 != 0);
    while let Some((how, bytes)) = next_datagram(&mut rest) {
        live.take(&how, bytes);
    }
    live.drain();
    live.check();
    live.finish();
}

fn next_datagram<'a>(rest: &mut &'a [u8]) -> Option<(How, &'a [u8])> {
    let (&how, after) = rest.split_first()?;
    let (&length, after) = after.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes(length)).min(after.len());
    let (bytes, after) = after.split_at(length);
    *rest = after;
    Some((How(how), bytes))
}

/// The endpoint under test, and the state of its peers.
struct Live {
    endpoint: Endpoint,
    now: Instant,
    /// The peer of a tunnel of version 2, and that of one of version 3.
    peers: [Peer; 2],
    /// Addresses that have sent to it, which it may answer.
    known: Vec<SocketAddr>,
    buffer: Vec<u8>,
}

impl Live {
    fn new(is_lns: bool, has_secret: bool) -> Self {
        let config = Config {
            accept: true,
            secret: has_secret.then(|| Redacted::new(peer::SECRET.to_vec())),
            tie_breaker: true,
            receive_window: 8,
            limits: LIMITS,
            outgoing_calls: OutgoingCalls::Ask,
            digest: DigestType::HmacSha1,
            ..Config::default()
        };
        let mut live = Self {
            endpoint: Endpoint::new(config, [7; 32]),
            now: Instant::ZERO,
            peers: [Peer::new(Version::V2), Peer::new(Version::V3)],
            known: Vec::new(),
            buffer: Vec::new(),
        };
        for version in [Version::V2, Version::V3] {
            let mut bystander = Peer::new(version);
            bystander.address = addr(BYSTANDER);
            live.establish(&mut bystander, is_lns);
            let mut peer = Peer::new(version);
            live.establish(&mut peer, is_lns);
            live.peers[usize::from(version == Version::V3)] = peer;
        }
        assert_eq!(live.endpoint.counts().sessions_established, 4);
        live
    }

    /// Establishes a tunnel with a session, requested by the peer or by us.
    fn establish(&mut self, peer: &mut Peer, by_peer: bool) {
        let secret = self.endpoint.config().secret.is_some();
        peer.begin(secret);
        self.known.push(peer.address);
        if by_peer {
            self.exchange(peer, Peer::sccrq);
            self.exchange(peer, Peer::scccn);
            self.exchange(peer, Peer::icrq);
            self.exchange(peer, Peer::iccn);
            return;
        }
        let open = l2tp::OpenTunnel {
            route: route(peer.address),
            version: peer.version,
        };
        let tunnel = self.endpoint.open_tunnel(open, self.now);
        let tunnel = tunnel.expect("the limits leave room");
        self.hear(peer);
        self.exchange(peer, Peer::sccrp);
        let session = self
            .endpoint
            .open_session(tunnel, Call::default(), self.now);
        session.expect("the limits leave room");
        self.hear(peer);
        self.exchange(peer, Peer::icrp);
        self.exchange(peer, |peer| peer.packet(0, &[]));
    }

    fn exchange(&mut self, peer: &mut Peer, message: impl FnOnce(&mut Peer) -> Vec<u8>) {
        let bytes = message(peer);
        let route = route(peer.address);
        let bytes = &bytes;
        let taken = self.endpoint.handle(Datagram { route, bytes }, self.now);
        assert_eq!(taken, Ok(()));
        self.hear(peer);
    }

    /// Drains the endpoint; the peer reads the messages to it.
    fn hear(&mut self, peer: &mut Peer) {
        loop {
            self.buffer.clear();
            let sent = self.endpoint.poll_transmit(self.now, &mut self.buffer);
            let Some(to) = sent else { break };
            assert_eq!(to.peer, peer.address);
            peer.note(&self.buffer);
        }
        while self.endpoint.poll_event().is_some() {}
    }

    /// Delivers one datagram of the input.
    fn take(&mut self, how: &How, bytes: &[u8]) {
        self.pass(how.pause());
        let mut datagram = bytes.to_vec();
        let from = match how.sender() {
            0 => self.speak_for(0, how, &mut datagram),
            1 => self.speak_for(1, how, &mut datagram),
            2 => SocketAddr::new(self.peers[0].address.ip(), 1702),
            _ => addr(STRANGER),
        };
        self.known.push(from);
        let before = self.endpoint.counts();
        let route = route(from);
        let bytes = &datagram;
        let result = self.endpoint.handle(Datagram { route, bytes }, self.now);
        if let Err(why) = result {
            assert_eq!(self.endpoint.counts(), before, "{why} left a trace");
            assert!(self.endpoint.discarded(why) > 0);
        }
        if !how.in_batch() {
            self.drain();
            self.check();
        }
    }

    fn speak_for(&mut self, peer: usize, how: &How, datagram: &mut Vec<u8>) -> SocketAddr {
        let peer = &mut self.peers[peer];
        if how.in_sequence() {
            peer.put_in_sequence(datagram, how.out_of_sequence());
        }
        peer.address
    }

    /// Lets time pass and fires the timers due meanwhile.
    fn pass(&mut self, span: Duration) {
        let end = (self.now + span).min(Instant::ZERO + TIME_MAX);
        self.drain();
        while let Some((due, _)) = self.endpoint.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(due);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = self.now.max(end);
    }

    /// Drains the endpoint and checks its output.
    fn drain(&mut self) {
        for sent in 0.. {
            // A batch of two, a window of messages, a refusal.
            assert!(sent < 1_000, "it does not stop to speak");
            self.buffer.clear();
            let route = self.endpoint.poll_transmit(self.now, &mut self.buffer);
            let Some(route) = route else { break };
            assert!(self.known.contains(&route.peer), "{} is nobody", route.peer);
            let Ok(Packet::Control(control)) = parse(&self.buffer) else {
                panic!("it sent {:02x?}", self.buffer);
            };
            assert_eq!(control.whole.len(), self.buffer.len());
            if !control.body.is_empty() {
                let message = wire::l2tp::Message::parse(control.version, control.body);
                assert_eq!(message.fault(), None);
                assert_eq!(message.unrecognised_mandatory(), None);
            }
            for peer in &mut self.peers {
                if peer.address == route.peer {
                    peer.note(&self.buffer);
                }
            }
        }
        while let Some(event) = self.endpoint.poll_event() {
            // Some calls are placed, some fail, and some get no answer.
            if let Event::CallRequested { session } = event {
                let id = self.endpoint.session(session).map_or(0, |s| s.id);
                match id % 3 {
                    0 => _ = self.endpoint.answer_call(session),
                    1 => _ = self.endpoint.close_session(session, self.now),
                    _ => {}
                }
            }
        }
    }

    /// Checks limits, counters and the bystander.
    fn check(&self) {
        let Counts {
            tunnels,
            established,
            half_open,
            closing,
            held,
            sessions,
            sessions_established,
            peers,
            timers,
            messages,
        } = self.endpoint.counts();
        assert!(tunnels <= LIMITS.tunnels && established <= tunnels);
        assert!(half_open <= LIMITS.half_open && held <= LIMITS.held);
        assert!(sessions <= LIMITS.sessions && sessions_established <= sessions);
        assert!(peers <= tunnels && messages < 20_000);
        assert!(timers <= tunnels + closing + held + sessions);
        let (mut rows, mut up, mut in_tunnels, mut cursor) = (0, 0, 0, 0);
        while let Some((next, tunnel)) = self.endpoint.next_tunnel(cursor) {
            cursor = next;
            rows += 1;
            up += u32::from(tunnel.state == l2tp::TunnelState::Established);
            in_tunnels += tunnel.sessions;
            assert!(tunnel.sessions <= LIMITS.sessions_per_tunnel && tunnel.id != 0);
            assert!((1..=tunnel.peer_window.max(1)).contains(&tunnel.cwnd));
        }
        assert_eq!(
            (rows, up, in_tunnels),
            (tunnels + closing, established, sessions)
        );
        let (mut rows, mut up, mut cursor, mut safe) = (0, 0, 0, 0);
        while let Some((next, session)) = self.endpoint.next_session(cursor) {
            cursor = next;
            rows += 1;
            let is_up = session.state == l2tp::SessionState::Established;
            up += u32::from(is_up);
            let tunnel = self.endpoint.tunnel(session.tunnel);
            let tunnel = tunnel.expect("a session has a tunnel");
            let bystander = tunnel.route.peer == addr(BYSTANDER);
            safe += u32::from(bystander && is_up && tunnel.up.is_some());
        }
        assert_eq!((rows, up), (sessions, sessions_established));
        assert_eq!(
            safe, 2,
            "the bystander's tunnels and sessions are as they were"
        );
        for n in 0..=LIMITS.history as usize {
            let kept = n < LIMITS.history as usize;
            assert!(kept || self.endpoint.ended_tunnel(n).is_none());
            assert!(kept || self.endpoint.ended_session(n).is_none());
        }
        let total: u64 = Discard::ALL
            .iter()
            .map(|&w| self.endpoint.discarded(w))
            .sum();
        assert!(total <= self.known.len() as u64);
    }

    /// A shutdown with silent peers leaves nothing.
    fn finish(mut self) {
        self.endpoint.shut_down(self.now);
        self.drain();
        for _ in 0..10_000 {
            let Some((due, _)) = self.endpoint.poll_timeout() else {
                break;
            };
            self.now = self.now.max(due);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        assert_eq!(self.endpoint.counts(), Counts::default());
        assert!(self.endpoint.is_quiet());
    }
}

fn route(peer: SocketAddr) -> Route {
    Route {
        peer,
        local: None,
        socket: 0,
    }
}
