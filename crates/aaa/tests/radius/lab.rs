//! A client in virtual time, with servers of configurable behaviour.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use aaa::accounting::SessionId;
use aaa::radius::{AccessRequest, Client, Config, Event, Line, Nas, Proof, ServerConfig, Transmit};
use base::{Datagram, Duration, Instant, Machine, Route};
use sim::Rng;
use wire::radius::attribute::{MESSAGE_AUTHENTICATOR, USER_NAME, USER_PASSWORD};
use wire::radius::secret::{Signature, reveal_password, signature, verify_request};
use wire::radius::{Packet, Writer, code};

pub(crate) const SECRET: &[u8] = b"a secret of the test";
pub(crate) const RTT: Duration = Duration::from_millis(20);

/// How a server treats a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Accept,
    Reject,
    Challenge,
    Silent,
    /// Answers after the first timeout.
    Slow,
    /// Loses every other request, or answer.
    Lossy,
    WrongSecret,
    WrongId,
    WrongPort,
    ImpossibleLength,
    Unsigned,
    Twice,
    /// Answers the previous request with this identifier.
    Stale,
}

impl How {
    pub(crate) const ALL: [Self; 13] = [
        Self::Accept,
        Self::Reject,
        Self::Challenge,
        Self::Silent,
        Self::Slow,
        Self::Lossy,
        Self::WrongSecret,
        Self::WrongId,
        Self::WrongPort,
        Self::ImpossibleLength,
        Self::Unsigned,
        Self::Twice,
        Self::Stale,
    ];
}

pub(crate) struct Server {
    pub(crate) how: How,
    /// Attributes of its Access-Accept.
    pub(crate) grants: Vec<(u8, Vec<u8>)>,
    /// Every received request, including retransmissions.
    pub(crate) got: Vec<Vec<u8>>,
    /// The last two authenticators used with an identifier.
    last: HashMap<(u32, u8), [[u8; 16]; 2]>,
}

/// The client and its servers.
pub(crate) struct Lab {
    pub(crate) client: Client,
    pub(crate) servers: Vec<Server>,
    pub(crate) now: Instant,
    pub(crate) events: Vec<(Instant, Event)>,
    /// Datagrams on their way back, by time and number.
    back: BTreeMap<(Instant, u64), (u32, SocketAddr, Vec<u8>)>,
    number: u64,
    pub(crate) rng: Rng,
    pub(crate) sockets: u32,
}

pub(crate) fn address(server: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, server as u8 + 1], port))
}

pub(crate) fn nas() -> Nas {
    Nas {
        identifier: Some("edge".into()),
        address: Some([198, 51, 100, 1].into()),
    }
}

pub(crate) fn config(servers: usize) -> Config {
    let mut config = Config::new(nas());
    for server in 0..servers {
        config.servers.push(ServerConfig {
            authentication: Some(address(server, 1812)),
            accounting: Some(address(server, 1813)),
            ..ServerConfig::new(&format!("server{server}"), SECRET)
        });
    }
    config
}

impl Lab {
    pub(crate) fn new(config: Config, hows: &[How], seed: u64) -> Self {
        let servers = hows.iter().map(|&how| Server {
            how,
            grants: Vec::new(),
            got: Vec::new(),
            last: HashMap::new(),
        });
        let mut rng = Rng::new(seed);
        let mut octets = [0; 32];
        rng.fill(&mut octets);
        Self {
            client: Client::new(config, octets).unwrap(),
            servers: servers.collect(),
            now: Instant::from_nanos(1_000_000_000),
            events: Vec::new(),
            back: BTreeMap::new(),
            number: 0,
            rng,
            sockets: 0,
        }
    }

    pub(crate) fn ask(&mut self, token: u64) {
        let request = AccessRequest {
            user: b"alice",
            proof: Proof::Pap {
                password: b"a password of more than sixteen octets",
            },
            session: SessionId {
                boot: 7,
                number: token,
            },
            line: Line::default(),
            servers: aaa::radius::ANY_SERVER,
        };
        self.client.authenticate(self.now, &request, token).unwrap();
    }

    /// Runs until a time and drains everything.
    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            self.drain();
            let timer = self.client.poll_timeout().map(|(at, _)| at);
            let datagram = self.back.keys().next().map(|&(at, _)| at);
            let next = timer.into_iter().chain(datagram).min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            while let Some((&(at, number), _)) = self.back.first_key_value() {
                if at > self.now {
                    break;
                }
                if let Some((socket, peer, bytes)) = self.back.remove(&(at, number)) {
                    self.deliver(socket, peer, &bytes);
                }
            }
        }
    }

    pub(crate) fn run_for(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    pub(crate) fn deliver(&mut self, socket: u32, peer: SocketAddr, bytes: &[u8]) {
        let local = None;
        let route = Route {
            peer,
            local,
            socket,
        };
        // The counters record why a datagram is ignored.
        let _ = self.client.handle(Datagram { route, bytes }, self.now);
        self.drain();
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(self.now, &mut out) {
            self.sockets = self.sockets.max(transmit.socket + 1);
            self.serve(transmit, &out);
            out.clear();
        }
        while let Some(event) = self.client.poll_event() {
            self.events.push((self.now, event));
        }
    }

    fn serve(&mut self, to: Transmit, request: &[u8]) {
        let server = &mut self.servers[to.server];
        server.got.push(request.to_vec());
        let packet = Packet::parse(request).unwrap();
        check_request(&packet);
        let name = (to.socket, packet.identifier());
        let last = server.last.entry(name).or_default();
        if last[0] != packet.authenticator() {
            *last = [packet.authenticator(), last[0]];
        }
        let before = last[1];
        let lost = server.how == How::Lossy && self.rng.chance(0.5);
        if server.how == How::Silent || lost {
            return;
        }
        let mut reply = server.reply(&packet, before);
        let mut peer = to.peer;
        match server.how {
            How::WrongPort => peer.set_port(9),
            How::ImpossibleLength => {
                reply.extend_from_slice(&[25, 1]);
                let length = reply.len() as u16;
                reply[2..4].copy_from_slice(&length.to_be_bytes());
            }
            _ => {}
        }
        let delay = match server.how {
            How::Slow => Duration::from_millis(3_100),
            _ => RTT,
        };
        let copies = if server.how == How::Twice { 2 } else { 1 };
        for copy in 0..copies {
            self.number += 1;
            let at = self.now + delay.saturating_mul(copy + 1);
            let datagram = (to.socket, peer, reply.clone());
            self.back.insert((at, self.number), datagram);
        }
    }

    /// The outcome of each token; each must have exactly one.
    pub(crate) fn ends(&self) -> BTreeMap<u64, Event> {
        let mut ends = BTreeMap::new();
        for (_, event) in &self.events {
            let token = match event {
                Event::Accepted { token, .. }
                | Event::Rejected { token, .. }
                | Event::Challenged { token, .. }
                | Event::Failed { token, .. }
                | Event::Recorded { token }
                | Event::RecordFailed { token, .. } => *token,
                Event::ServerDead { .. } | Event::ServerUp { .. } => continue,
            };
            let before = ends.insert(token, event.clone());
            assert_eq!(before, None, "token {token} ended twice");
        }
        ends
    }

    /// Checks that nothing is held any more.
    pub(crate) fn assert_idle(&self) {
        let totals = self.client.totals();
        assert_eq!((totals.outstanding, totals.waiting), (0, 0));
        assert_eq!(self.client.poll_timeout(), None);
        for service in self.client.services() {
            assert_eq!(
                service.outstanding, 0,
                "{} {:?}",
                service.name, service.purpose
            );
        }
    }
}

impl Server {
    fn reply(&self, request: &Packet<'_>, before: [u8; 16]) -> Vec<u8> {
        let is_account = request.code() == code::ACCOUNTING_REQUEST;
        let code = match (is_account, self.how) {
            (true, _) => code::ACCOUNTING_RESPONSE,
            (false, How::Reject) => code::ACCESS_REJECT,
            (false, How::Challenge) => code::ACCESS_CHALLENGE,
            (false, _) => code::ACCESS_ACCEPT,
        };
        let id = match self.how {
            How::WrongId => request.identifier().wrapping_add(1),
            _ => request.identifier(),
        };
        let authenticator = match self.how {
            How::Stale => before,
            _ => request.authenticator(),
        };
        let secret = match self.how {
            How::WrongSecret => b"another secret",
            _ => SECRET,
        };
        let mut reply = Vec::new();
        let mut writer = Writer::new(&mut reply, code, id, &authenticator);
        if !is_account && self.how != How::Unsigned {
            writer.message_authenticator();
        }
        if !is_account {
            for (kind, value) in &self.grants {
                writer.attribute(*kind, value);
            }
        }
        writer.finish_signed(secret).unwrap();
        reply
    }
}

/// Checks the properties that every request must have.
fn check_request(packet: &Packet<'_>) {
    let authenticator = packet.authenticator();
    if packet.code() == code::ACCOUNTING_REQUEST {
        assert!(verify_request(packet, SECRET));
        assert_eq!(packet.find(MESSAGE_AUTHENTICATOR), None);
        return;
    }
    assert_eq!(packet.code(), code::ACCESS_REQUEST);
    assert_eq!(signature(packet, &authenticator, SECRET), Signature::Right);
    let first = packet.attributes().next().unwrap();
    assert_eq!(first.kind, MESSAGE_AUTHENTICATOR);
    assert_eq!(packet.find(USER_NAME).unwrap().text(), Some("alice"));
    // MS-CHAP and EAP have no password.
    let Some(hidden) = packet.find(USER_PASSWORD) else {
        return;
    };
    let password = reveal_password(hidden.value, SECRET, &authenticator).unwrap();
    assert_eq!(password, b"a password of more than sixteen octets");
}
