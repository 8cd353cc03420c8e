//! An LNS, and peers whose frames a test chooses one by one.

use std::net::Ipv4Addr;

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use edge::{Account, Config, Edge, End, Event, Question, SubscriberKey};
use l2tp::{Call, Endpoint, OpenTunnel, SessionKey, TunnelKey};
use ppp::{Authentication, Context, Credentials, Ipv4Offer, Link, Outbox, Side};
use wire::l2tp::Version;

use crate::node::Packets;

const LNS: &str = "192.0.2.100:1701";

/// An LNS, its questions and events, and its peers.
pub(crate) struct Table {
    pub(crate) lns: Edge,
    pub(crate) now: Instant,
    pub(crate) inside: Packets,
    pub(crate) peers: Vec<Peer>,
    pub(crate) questions: Vec<Question>,
    pub(crate) ended: Vec<End>,
    pub(crate) up: Vec<SubscriberKey>,
    pub(crate) accounts: Vec<Account>,
    /// Datagrams that the LNS sent.
    pub(crate) sent: usize,
    /// Clients started so far; each uses different numbers.
    lives: u8,
}

/// A concentrator without clients.
pub(crate) struct Peer {
    pub(crate) endpoint: Endpoint,
    route: Route,
    tunnel: TunnelKey,
    /// Received frames, with their sessions.
    pub(crate) heard: Vec<(SessionKey, Vec<u8>)>,
}

/// A session: its peer and the peer's key for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) peer: usize,
    pub(crate) session: SessionKey,
}

pub(crate) fn config(authenticate: &[Authentication]) -> Config {
    Config {
        terminate: true,
        accounting: true,
        address: Ipv4Addr::new(10, 255, 0, 1),
        ipv6: false,
        ppp: ppp::Config {
            authenticate: authenticate.to_vec(),
            ..ppp::Config::default()
        },
        ..Config::default()
    }
}

fn endpoint(accept: bool, seed: u8) -> Endpoint {
    let config = l2tp::Config {
        host_name: "a host".into(),
        accept,
        ..l2tp::Config::default()
    };
    Endpoint::new(config, [seed; 32])
}

impl Table {
    pub(crate) fn new(config: Config) -> Self {
        let pools = crate::chaos::pools(100);
        Self {
            lns: Edge::new(config, endpoint(true, 1), pools, [1; 32]),
            now: Instant::from_nanos(1_000_000_000),
            inside: Packets::default(),
            peers: Vec::new(),
            questions: Vec::new(),
            ended: Vec::new(),
            up: Vec::new(),
            accounts: Vec::new(),
            sent: 0,
            lives: 0,
        }
    }

    /// A concentrator with a tunnel.
    pub(crate) fn peer(&mut self) -> usize {
        let number = self.peers.len();
        let mut endpoint = endpoint(false, 10 + number as u8);
        let open = OpenTunnel {
            route: route(LNS),
            version: Version::V2,
        };
        let tunnel = endpoint.open_tunnel(open, self.now).expect("the first");
        self.peers.push(Peer {
            endpoint,
            route: route(&format!("192.0.2.{}:1701", 1 + number)),
            tunnel,
            heard: Vec::new(),
        });
        self.settle();
        number
    }

    /// A session without any frames yet.
    pub(crate) fn line(&mut self, peer: usize) -> Line {
        let one = &mut self.peers[peer];
        let session = one
            .endpoint
            .open_session(one.tunnel, Call::default(), self.now);
        self.settle();
        let session = session.expect("nothing is full");
        Line { peer, session }
    }

    /// Sends a frame.
    pub(crate) fn say(&mut self, line: Line, frame: &[u8]) {
        let peer = &mut self.peers[line.peer];
        let header = peer.endpoint.data_header(line.session).expect("it is up");
        let datagram = [header.as_bytes(), frame].concat();
        self.say_as(line.peer, &datagram);
    }

    /// A peer sends arbitrary bytes.
    pub(crate) fn say_as(&mut self, peer: usize, datagram: &[u8]) {
        let route = self.peers[peer].route;
        self.lns
            .receive(route, datagram, self.now, &mut self.inside);
        self.settle();
    }

    /// Exchanges datagrams until both endpoints have nothing to send; frames are set aside.
    pub(crate) fn settle(&mut self) {
        let mut bytes = Vec::new();
        loop {
            let mut any = false;
            while let Some(to) = self.lns.poll_transmit(self.now, &mut bytes) {
                self.sent += 1;
                let mut peers = self.peers.iter_mut();
                let peer = peers.find(|peer| peer.route.peer == to.peer);
                peer.expect("it is known").hear(&bytes, self.now);
                bytes.clear();
                any = true;
            }
            for peer in &mut self.peers {
                while peer.endpoint.poll_transmit(self.now, &mut bytes).is_some() {
                    self.lns
                        .receive(peer.route, &bytes, self.now, &mut self.inside);
                    bytes.clear();
                    any = true;
                }
                while peer.endpoint.poll_event().is_some() {}
            }
            if !any {
                break;
            }
        }
        while let Some(question) = self.lns.poll_question() {
            self.questions.push(question);
        }
        while let Some(event) = self.lns.poll_event() {
            match event {
                Event::Up { subscriber } => self.up.push(subscriber),
                Event::Down { reason, .. } => self.ended.push(reason),
                _ => {}
            }
        }
        while let Some(account) = self.lns.poll_account() {
            self.accounts.push(account);
        }
    }

    /// Lets time pass; the peers send only what L2TP needs.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let peers = self.peers.iter().map(|peer| peer.endpoint.poll_timeout());
            let all = peers.chain([self.lns.poll_timeout()]).flatten();
            let next = all.map(|(at, _)| at).min();
            let Some(next) = next.filter(|&at| at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.lns.handle_timeout(self.now);
            for peer in &mut self.peers {
                peer.endpoint.handle_timeout(self.now);
            }
            self.settle();
        }
        self.now = end;
    }
}

impl Peer {
    fn hear(&mut self, bytes: &[u8], now: Instant) {
        let route = route(LNS);
        if let Ok(Some(received)) = self.endpoint.receive_data(&route, bytes, now) {
            let frame = bytes[received.start..received.end].to_vec();
            self.heard.push((received.session, frame));
        } else {
            // A peer may ignore the datagram.
            let _ = self.endpoint.handle(Datagram { route, bytes }, now);
        }
    }
}

/// The PPP client in a session.
pub(crate) struct Client {
    link: Link,
    config: ppp::Config,
    random: Counting,
    out: Outbox,
    pub(crate) line: Line,
    pub(crate) address: Option<Ipv4Addr>,
}

struct Counting(u8);

impl ppp::Random for Counting {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            self.0 = self.0.wrapping_mul(5).wrapping_add(17);
            *octet = self.0;
        }
    }
}

impl Client {
    /// Starts with LCP, replacing any earlier client.
    pub(crate) fn begin(table: &mut Table, line: Line, name: &str, secret: &[u8]) -> Self {
        let side = Side::Client {
            credentials: Some(Credentials {
                name: name.as_bytes().into(),
                secret: Redacted::new(secret.into()),
            }),
            ipv4: Some(Ipv4Offer::ASK),
            ipv6: None,
        };
        Self::begin_as(table, line, side)
    }

    /// As above, with another side.
    pub(crate) fn begin_as(table: &mut Table, line: Line, side: Side) -> Self {
        let config = ppp::Config::default();
        table.lives += 1;
        let mut random = Counting(table.lives);
        let link = Link::new(side, &config, &mut random);
        let mut client = Self {
            link,
            config,
            random,
            out: Outbox::new(),
            line,
            address: None,
        };
        client.call(table, |link, ctx| link.up(ctx));
        client.talk(table);
        client
    }

    /// Answers received frames until there are none left.
    pub(crate) fn talk(&mut self, table: &mut Table) {
        loop {
            let heard = &mut table.peers[self.line.peer].heard;
            let Some(at) = heard.iter().position(|(key, _)| *key == self.line.session) else {
                break;
            };
            let (_, frame) = heard.remove(at);
            self.call(table, |link, ctx| {
                // The link may ignore the frame.
                let _ = link.handle(&frame, ctx);
            });
        }
    }

    fn call(&mut self, table: &mut Table, call: impl FnOnce(&mut Link, &mut Context<'_>)) {
        let mut ctx = Context {
            now: table.now,
            config: &self.config,
            random: &mut self.random,
            out: &mut self.out,
        };
        call(&mut self.link, &mut ctx);
        for event in self.out.take_events() {
            match event {
                ppp::Event::Ipv4Up(settings) => self.address = Some(settings.local),
                ppp::Event::Ipv4Down => self.address = None,
                _ => {}
            }
        }
        let frames: Vec<Vec<u8>> = self.out.frames().map(<[u8]>::to_vec).collect();
        self.out.clear();
        for frame in frames {
            let endpoint = &table.peers[self.line.peer].endpoint;
            if endpoint.session(self.line.session).is_some() {
                table.say(self.line, &frame);
            }
        }
    }
}

/// A PPP frame with a control packet.
pub(crate) fn frame(protocol: u16, code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    let mut octets = vec![0xff, 3];
    octets.extend_from_slice(&protocol.to_be_bytes());
    wire::ppp::control::emit(&mut octets, code, identifier, |out| {
        out.extend_from_slice(data);
    });
    octets
}

fn route(address: &str) -> Route {
    Route {
        peer: sim::addr(address),
        local: None,
        socket: 0,
    }
}
