//! Test harness: two ends of a link with a wire between them, in virtual time.

use std::net::Ipv4Addr;

use base::{Duration, Instant, Redacted};
use ppp::{
    Authentication, Claim, Config, Context, Credentials, Discard, Event, Grant, Ipv4Offer,
    Ipv6Offer, Link, Outbox, Proof, Random, Side, State,
};
use wire::ppp::{chap, control, mschap, protocol};

use crate::twins::Twin;

pub(crate) const SECRET: &[u8] = b"sesame";
pub(crate) const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const PEER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub(crate) const DNS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

/// A small random number generator (splitmix64). Equal seeds give equal numbers.
#[derive(Clone)]
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

impl Random for Seeded {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            *octet = self.next() as u8;
        }
    }
}

/// One end.
pub(crate) struct End {
    pub(crate) link: Link,
    pub(crate) config: Config,
    pub(crate) out: Outbox,
    pub(crate) random: Seeded,
    pub(crate) events: Vec<Event>,
    /// Frames that the link has sent.
    pub(crate) sent: Vec<Vec<u8>>,
    /// The credentials of a client.
    pub(crate) credentials: Option<Credentials>,
    /// A copy of the link that was written and read back.
    pub(crate) twin: Option<Twin>,
    /// How often it is read anew, in percent of the calls. `None`: there is no twin.
    pub(crate) renewed: Option<u64>,
    pub(crate) chance: Seeded,
}

impl End {
    pub(crate) fn new(side: Side, config: Config, seed: u64) -> Self {
        let mut random = Seeded(seed);
        let credentials = match &side {
            Side::Network => None,
            Side::Client { credentials, .. } => credentials.clone(),
        };
        Self {
            link: Link::new(side, &config, &mut random),
            config,
            out: Outbox::new(),
            random,
            events: Vec::new(),
            sent: Vec::new(),
            credentials,
            twin: None,
            renewed: Some(100),
            chance: Seeded(seed),
        }
    }

    /// Calls the link, and collects the frames and events of its outbox.
    pub(crate) fn call<T>(
        &mut self,
        now: Instant,
        f: impl Fn(&mut Link, &mut Context<'_>) -> T,
    ) -> T {
        let (twin, random) = (Twin::of(self), self.random.clone());
        let mut ctx = Context {
            now,
            config: &self.config,
            random: &mut self.random,
            out: &mut self.out,
        };
        let result = f(&mut self.link, &mut ctx);
        self.twin = twin.map(|twin| twin.follow(self, random, f, now));
        self.sent.extend(self.out.frames().map(<[u8]>::to_vec));
        self.events.extend(self.out.events().iter().cloned());
        self.out.clear();
        result
    }

    /// Frames sent since the last call, with protocol, code, identifier and data.
    pub(crate) fn packets(&mut self) -> Vec<(u16, u8, u8, Vec<u8>)> {
        let sent = std::mem::take(&mut self.sent);
        let read = sent.iter().map(|octets| {
            let frame = wire::ppp::Frame::parse(octets).unwrap();
            let packet = wire::ppp::control::Control::parse(frame.information).unwrap();
            (
                frame.protocol,
                packet.code,
                packet.identifier,
                packet.data.to_vec(),
            )
        });
        read.collect()
    }
}

pub(crate) fn grant() -> Grant {
    Grant {
        ipv4: Some(Ipv4Offer {
            local: LOCAL,
            peer: PEER,
            dns: [Some(DNS), None],
            ask_dns: false,
        }),
        ipv6: Some(Ipv6Offer::free(1)),
    }
}

/// Whether a claim comes from user "alice" and has the right secret.
pub(crate) fn is_right(claim: &Claim) -> bool {
    let proven = match &claim.proof {
        Proof::None => return true,
        Proof::Pap { password, .. } => password.reveal().as_ref() == SECRET,
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => *response == chap::md5_response(*identifier, SECRET, challenge),
        Proof::MsChapV2 { .. } => success(claim).is_some(),
        Proof::Eap { .. } => false,
    };
    proven && claim.name.as_ref() == b"alice"
}

/// The authenticator response to a right claim by MS-CHAP.
pub(crate) fn success(claim: &Claim) -> Option<[u8; mschap::SUCCESS]> {
    let Proof::MsChapV2 {
        challenge,
        response,
        ..
    } = &claim.proof
    else {
        return None;
    };
    let response = mschap::Response::parse(response);
    let challenges = mschap::Challenges {
        authenticator: challenge,
        peer: response.peer_challenge,
        name: &claim.name,
    };
    let hash = mschap::password_hash(SECRET);
    let is_right = challenges.nt_response(&hash) == *response.nt_response;
    is_right.then(|| challenges.authenticator_response(&hash, response.nt_response))
}

pub(crate) fn network(authenticate: &[Authentication], seed: u64) -> End {
    let config = Config {
        authenticate: authenticate.to_vec(),
        ..Config::default()
    };
    End::new(Side::Network, config, seed)
}

pub(crate) fn client(secret: &[u8], seed: u64) -> End {
    let side = Side::Client {
        credentials: Some(Credentials {
            name: b"alice"[..].into(),
            secret: Redacted::new(secret.into()),
        }),
        ipv4: Some(Ipv4Offer::ASK),
        ipv6: Some(Ipv6Offer::free(seed | 1 << 40)),
    };
    let config = Config {
        compress: true,
        ..Config::default()
    };
    End::new(side, config, seed)
}

/// The faults of a wire, as percentages of the frames.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wire {
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
}

/// Two ends and the frames between them.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    /// The network's end and the client's end.
    pub(crate) ends: [End; 2],
    pub(crate) wire: Wire,
    /// The addresses granted to the client.
    pub(crate) grant: Grant,
    pub(crate) random: Seeded,
    /// How long the network's owner takes to decide about a claim.
    pub(crate) answers_after: Duration,
    /// When it answers, and the message if the claim was right.
    answers: Vec<(Instant, Option<Vec<u8>>)>,
    /// Frames in transit: arrival time and receiving end.
    flying: Vec<(Instant, usize, Vec<u8>)>,
}

impl Pair {
    pub(crate) fn new(network: End, client: End, wire: Wire, seed: u64) -> Self {
        Self {
            now: NOW,
            ends: [network, client],
            wire,
            grant: grant(),
            random: Seeded(seed),
            answers_after: Duration::ZERO,
            answers: Vec::new(),
            flying: Vec::new(),
        }
    }

    pub(crate) fn up(&mut self) {
        for end in 0..2 {
            self.ends[end].call(self.now, |link, ctx| link.up(ctx));
        }
    }

    /// Lets the network's owner answer, and puts frames on the wire.
    fn settle(&mut self) {
        let mut at = 0;
        while at < self.ends[0].events.len() {
            if let Event::Authenticate(claim) = self.ends[0].events[at].clone() {
                let message = success(&claim).map_or(b"hello".to_vec(), |one| one.to_vec());
                let message = is_right(&claim).then_some(message);
                self.answers.push((self.now + self.answers_after, message));
                self.ends[0].events[at] = Event::LcpUp;
            }
            self.answer();
            at += 1;
        }
        self.answer();
        for end in 0..2 {
            for frame in std::mem::take(&mut self.ends[end].sent) {
                if self.random.percent(self.wire.loss) {
                    continue;
                }
                let copies = 1 + usize::from(self.random.percent(self.wire.duplicates));
                for _ in 0..copies {
                    let late = match self.random.percent(self.wire.reordered) {
                        true => Duration::from_millis(30 + self.random.next() % 4_000),
                        false => Duration::from_millis(10),
                    };
                    self.flying.push((self.now + late, 1 - end, frame.clone()));
                }
            }
        }
    }

    /// Gives the answers that are due.
    fn answer(&mut self) {
        let (now, grant) = (self.now, self.grant);
        for (_, message) in self.answers.extract_if(.., |answer| answer.0 <= now) {
            // The claim may no longer be pending, because LCP may have restarted.
            self.ends[0].call(now, |link, ctx| match &message {
                Some(message) => link.accept(&grant, message, ctx),
                None => link.refuse(b"no", ctx),
            });
        }
    }

    /// Runs until nothing happens for `quiet`, or for 10 minutes.
    pub(crate) fn run(&mut self, quiet: Duration) {
        let end = self.now + Duration::from_secs(600);
        self.settle();
        while let Some(next) = self.next().filter(|&next| next <= self.now + quiet) {
            if next > end {
                return;
            }
            self.step(next);
        }
    }

    /// An end takes over the intervals of its configuration.
    pub(crate) fn retime(&mut self, end: usize) {
        let now = self.now;
        self.ends[end].call(now, |link, ctx| link.retime(ctx));
        self.settle();
    }

    /// Runs for `time`.
    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Runs for `time`, or until `is_so` holds. Returns whether it holds.
    pub(crate) fn run_until(&mut self, time: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + time;
        self.settle();
        while let Some(next) = self.next().filter(|&next| next <= end) {
            if is_so(self) {
                return true;
            }
            self.step(next);
        }
        self.now = end;
        is_so(self)
    }

    /// The time of the next event.
    fn next(&self) -> Option<Instant> {
        let timers = self.ends.iter().map(|end| end.link.timeout());
        let arrivals = self.flying.iter().map(|flight| flight.0);
        let answers = self.answers.iter().map(|answer| answer.0);
        let next = timers.chain(arrivals).chain(answers).min();
        next.filter(|&next| next != Instant::FAR_FUTURE)
    }

    fn step(&mut self, next: Instant) {
        self.now = next.max(self.now);
        let now = self.now;
        let mut due: Vec<_> = self
            .flying
            .extract_if(.., |flight| flight.0 <= now)
            .collect();
        due.sort_by_key(|flight| flight.0);
        for (_, to, frame) in due {
            // The link may ignore a frame.
            let _ = self.ends[to].call(now, |link, ctx| link.handle(&frame, ctx));
        }
        for end in &mut self.ends {
            end.call(now, |link, ctx| link.handle_timeout(ctx));
        }
        self.settle();
    }
}

/// The instant for tests in which time does not matter: a whole millisecond, as snapshots have them.
pub(crate) const NOW: Instant = Instant::from_nanos(1_000_000);

/// A control packet in a frame.
pub(crate) fn frame(protocol: u16, code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    let mut out = protocol.to_be_bytes().to_vec();
    control::emit(&mut out, code, identifier, |out| {
        out.extend_from_slice(data)
    });
    out
}

/// The network's end of a link that is up, with CHAP, IPv4 and IPv6.
pub(crate) fn opened() -> End {
    let mut pair = Pair::new(
        network(&[Authentication::ChapMd5], 1),
        client(SECRET, 2),
        Wire::default(),
        3,
    );
    pair.up();
    pair.run(Duration::from_secs(20));
    let [network, _] = pair.ends;
    network
}

pub(crate) fn send(end: &mut End, octets: &[u8]) -> Result<(), Discard> {
    end.call(NOW, |link, ctx| link.handle(octets, ctx))
}

/// Sends a frame and returns the packets sent in response.
pub(crate) fn exchange(end: &mut End, octets: &[u8]) -> Vec<(u16, u8, u8, Vec<u8>)> {
    end.sent.clear();
    let _ = send(end, octets);
    end.packets()
}

/// Brings LCP up by hand with the peer's `options`. Packets that the link then sends stay in `end`.
pub(crate) fn open_lcp(end: &mut End, options: &[u8]) {
    end.call(NOW, |link, ctx| link.up(ctx));
    answer_lcp(end, options);
}

/// Acknowledges the latest LCP request of an end, and sends it a request with `options`.
pub(crate) fn answer_lcp(end: &mut End, options: &[u8]) {
    let asks = |packet: &(u16, u8, u8, Vec<u8>)| (packet.0, packet.1) == (protocol::LCP, 1);
    let packets = end.packets();
    let request = packets.into_iter().rfind(asks).expect("a request");
    answer_lcp_of(end, &request, options);
}

/// As [`answer_lcp`], for a request that was taken from the end already.
pub(crate) fn answer_lcp_of(end: &mut End, request: &(u16, u8, u8, Vec<u8>), options: &[u8]) {
    let (_, _, identifier, ours) = request;
    send(end, &frame(protocol::LCP, 1, 1, options)).expect("heeded");
    send(end, &frame(protocol::LCP, 2, *identifier, ours)).expect("heeded");
    assert_eq!(end.link.states()[0], State::Opened);
}

/// Accepts the peer's claim.
pub(crate) fn accept(end: &mut End) -> bool {
    end.call(NOW, |link, ctx| link.accept(&grant(), b"", ctx))
}

/// Number of claims that the peer has made.
pub(crate) fn claims(end: &End) -> usize {
    let is_claim = |event: &&Event| matches!(event, Event::Authenticate(_));
    end.events.iter().filter(is_claim).count()
}
