//! A small network of streams between speakers. It cuts data into pieces of any length, delays them, and loses
//! connections. All randomness comes from one seed.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::{Duration, Instant};
use bgp::fsm::State;
use bgp::speaker::NeighborView;
use bgp::{ConnId, Event, PeerConfig, PeerId, PeerSettings, RemoteAsn, Speaker, SpeakerConfig};
use sim::Rng;

/// An end of a stream: a speaker and one of its connections.
type End = (usize, ConnId);

enum Delivery {
    /// A connection request arrives: its source and its destination.
    Syn(End, usize, SocketAddr),
    /// The answer to a request: the end that was accepted.
    Answer(End, Option<End>),
    Octets(End, Vec<u8>),
    Eof(End),
}

/// The state of a stream at one of its ends.
struct Stream {
    other: End,
    /// When the last piece arrives: pieces keep their order.
    last: Instant,
}

/// Speakers and the streams between them.
pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) speakers: Vec<Speaker>,
    pub(crate) events: Vec<(Instant, usize, Event)>,
    /// Octets that each speaker sent, by message type.
    pub(crate) sent: Vec<[u64; 6]>,
    /// Speakers that are cut off: nothing is read from them or delivered to them.
    pub(crate) mute: Vec<bool>,
    /// The longest delay of a piece.
    pub(crate) delay_max: Duration,
    /// Whether streams are cut into small pieces.
    pub(crate) cuts: bool,
    rng: Rng,
    queue: BTreeMap<(Instant, u64), Delivery>,
    sequence: u64,
    streams: HashMap<End, Stream>,
    by_address: HashMap<IpAddr, usize>,
    /// When each speaker has to be woken.
    wakes: BTreeMap<(Instant, usize), ()>,
    wake_of: Vec<Option<Instant>>,
}

/// The address of a router.
pub(crate) fn address(router: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x7f00_0001 + router as u32))
}

pub(crate) fn asn(router: usize) -> u32 {
    64_512 + router as u32
}

/// A router with neighbours that have the same settings.
pub(crate) fn router(
    number: usize,
    neighbours: impl IntoIterator<Item = usize>,
    settings: &Arc<PeerSettings>,
) -> SpeakerConfig {
    let mut config = SpeakerConfig::new(
        asn(number),
        Ipv4Addr::from_bits(0x0a00_0001 + number as u32),
    );
    config.peers = neighbours
        .into_iter()
        .map(|other| {
            PeerConfig::new(
                address(other),
                RemoteAsn::Exactly(asn(other)),
                settings.clone(),
            )
        })
        .collect();
    config
}

impl Net {
    pub(crate) fn new(seed: u64, configs: Vec<SpeakerConfig>) -> Self {
        let mut rng = Rng::stream(seed, &["bgp net"]);
        let mut by_address = HashMap::new();
        let mut speakers = Vec::new();
        for (config, number) in configs.into_iter().zip(0..) {
            config.check().expect("a good configuration");
            let mut seed = [0; 32];
            rng.fill(&mut seed);
            speakers.push(Speaker::new(config, seed));
            by_address.insert(address(number), number);
        }
        let len = speakers.len();
        Self {
            now: Instant::from_nanos(1_000_000_000),
            speakers,
            events: Vec::new(),
            sent: vec![[0; 6]; len],
            mute: vec![false; len],
            delay_max: Duration::from_millis(5),
            cuts: true,
            rng,
            queue: BTreeMap::new(),
            sequence: 0,
            streams: HashMap::new(),
            by_address,
            wakes: BTreeMap::new(),
            wake_of: vec![None; len],
        }
    }

    /// Starts every speaker, at times that differ by up to `spread`.
    pub(crate) fn start(&mut self, spread: Duration) {
        let mut order: Vec<(Instant, usize)> = (0..self.speakers.len())
            .map(|number| (self.now + self.rng.up_to(spread), number))
            .collect();
        order.sort_unstable();
        for (at, number) in order {
            self.run_to(at);
            self.with(number, |speaker, now| speaker.start(now));
        }
    }

    /// Calls a speaker, then drains it.
    pub(crate) fn with<T>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Speaker, Instant) -> T,
    ) -> T {
        let result = act(&mut self.speakers[number], self.now);
        self.drain(number);
        result
    }

    fn drain(&mut self, number: usize) {
        let now = self.now;
        while self.speakers[number].work(64, now) {}
        while let Some(conn) = self.speakers[number].poll_ready() {
            let mut out = Vec::new();
            while self.speakers[number].fill(conn, &mut out, 8_192, now) {}
            self.send((number, conn), &out);
        }
        while let Some(event) = self.speakers[number].poll_event() {
            match &event {
                Event::Connect { conn, remote, .. } => self.syn((number, *conn), *remote),
                Event::Close { conn, last } => {
                    self.send((number, *conn), last);
                    self.shut((number, *conn));
                }
                Event::Up { .. }
                | Event::Down { .. }
                | Event::Malformed { .. }
                | Event::Forgotten { .. } => {}
            }
            self.events.push((now, number, event));
        }
        let wake = self.speakers[number].poll_timeout().map(|(at, _)| at);
        if let Some(old) = self.wake_of[number] {
            self.wakes.remove(&(old, number));
        }
        self.wake_of[number] = wake;
        if let Some(at) = wake {
            self.wakes.insert((at, number), ());
        }
    }

    fn later(&mut self) -> Instant {
        self.now + Duration::from_nanos(1) + self.rng.up_to(self.delay_max)
    }

    fn put(&mut self, at: Instant, delivery: Delivery) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), delivery);
    }

    fn syn(&mut self, from: End, remote: SocketAddr) {
        let at = self.later();
        match self.by_address.get(&remote.ip()) {
            Some(&to) => self.put(at, Delivery::Syn(from, to, remote)),
            None => self.put(at, Delivery::Answer(from, None)),
        }
    }

    fn send(&mut self, from: End, octets: &[u8]) {
        let mut messages = octets;
        while messages.len() >= 19 {
            let len = usize::from(u16::from_be_bytes([messages[16], messages[17]]));
            self.sent[from.0][usize::from(messages[18])] += 1;
            messages = &messages[len..];
        }
        let mut rest = octets;
        while !rest.is_empty() {
            let len = if self.cuts {
                1 + self.rng.below(40 + self.rng.clone().below(4_000)) as usize
            } else {
                rest.len()
            };
            let (now, later) = rest.split_at(len.min(rest.len()));
            self.send_piece(from, |to| Delivery::Octets(to, now.to_vec()));
            rest = later;
        }
    }

    fn send_piece(&mut self, from: End, make: impl FnOnce(End) -> Delivery) {
        let at = self.later();
        let Some(stream) = self.streams.get_mut(&from) else {
            return;
        };
        stream.last = stream.last.max(at);
        let (at, to) = (stream.last, stream.other);
        self.put(at, make(to));
    }

    /// One end closes. The other end sees that after all data.
    fn shut(&mut self, from: End) {
        self.send_piece(from, Delivery::Eof);
        self.streams.remove(&from);
    }

    /// Breaks every stream of a speaker at once, for both sides. Returns how many.
    pub(crate) fn break_streams(&mut self, number: usize) -> usize {
        let mut ends: Vec<End> = self
            .streams
            .keys()
            .copied()
            .filter(|end| end.0 == number)
            .collect();
        ends.sort_unstable_by_key(|end| end.1);
        for end in &ends {
            let other = self.streams.remove(end).expect("it was listed").other;
            self.streams.remove(&other);
            self.with(end.0, |speaker, now| speaker.closed(end.1, now));
            self.with(other.0, |speaker, now| speaker.closed(other.1, now));
        }
        ends.len()
    }

    /// Replaces a router that has died, and starts the new one.
    pub(crate) fn replace(&mut self, number: usize, config: SpeakerConfig) {
        self.speakers[number] = Speaker::new(config, [number as u8; 32]);
        self.queue.retain(|_, delivery| match delivery {
            Delivery::Syn(from, _, _) | Delivery::Answer(from, _) => from.0 != number,
            Delivery::Octets(to, _) | Delivery::Eof(to) => to.0 != number,
        });
        self.with(number, |speaker, now| speaker.start(now));
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Syn(from, to, remote) => {
                let local =
                    SocketAddr::new(address(from.0), 1_024 + (self.sequence % 60_000) as u16);
                let accepted = if self.mute[to] {
                    None
                } else {
                    let accept = |speaker: &mut Speaker, now| speaker.accept(local, remote, now);
                    // Both ends of the stream exist before the new speaker sends anything.
                    let conn = accept(&mut self.speakers[to], self.now).ok();
                    conn.map(|conn| (to, conn))
                };
                if let Some(end) = accepted {
                    let last = self.now;
                    self.streams.insert(end, Stream { other: from, last });
                    self.streams.insert(from, Stream { other: end, last });
                }
                let at = self.later();
                if let Some(stream) = accepted.and_then(|end| self.streams.get_mut(&end)) {
                    stream.last = at;
                }
                self.put(at, Delivery::Answer(from, accepted));
                self.drain(to);
            }
            Delivery::Answer(from, accepted) => self.with(from.0, |speaker, now| match accepted {
                Some(_) => speaker.connected(from.1, SocketAddr::new(address(from.0), 1_024), now),
                None => speaker.connect_failed(from.1, now),
            }),
            Delivery::Octets(to, octets) => {
                if !self.mute[to.0] && self.streams.contains_key(&to) {
                    self.with(to.0, |speaker, now| {
                        let _ = speaker.receive(to.1, &octets, now);
                    });
                }
            }
            Delivery::Eof(to) => {
                if self.streams.remove(&to).is_some() {
                    self.with(to.0, |speaker, now| speaker.closed(to.1, now));
                }
            }
        }
    }

    /// Runs the network until a time.
    pub(crate) fn run_to(&mut self, end: Instant) {
        loop {
            let piece = self.queue.first_key_value().map(|((at, _), _)| *at);
            let wake = self.wakes.first_key_value().map(|((at, _), ())| *at);
            let next = [piece, wake].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if piece == Some(at) {
                let (_, delivery) = self.queue.pop_first().expect("it was looked at");
                self.deliver(delivery);
            } else {
                let ((_, number), ()) = self.wakes.pop_first().expect("it was looked at");
                self.wake_of[number] = None;
                self.with(number, |speaker, now| {
                    speaker.handle_timeout(now);
                    speaker.drained(now);
                });
            }
        }
        self.now = end;
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_to(self.now + span);
    }

    pub(crate) fn view(&self, router: usize, neighbour: usize) -> NeighborView {
        let peer = self.peer(router, neighbour);
        self.speakers[router]
            .neighbor(peer, self.now)
            .expect("the peer is there")
    }

    pub(crate) fn peer(&self, router: usize, neighbour: usize) -> PeerId {
        self.speakers[router]
            .peer(address(neighbour))
            .expect("the peer is there")
    }

    pub(crate) fn state(&self, router: usize, neighbour: usize) -> State {
        self.view(router, neighbour).state
    }

    /// The events of a speaker that `wanted` selects.
    pub(crate) fn count(&self, router: usize, wanted: impl Fn(&Event) -> bool) -> usize {
        let events = self.events.iter();
        events
            .filter(|(_, number, event)| *number == router && wanted(event))
            .count()
    }
}
