//! A LAC of ours with clients, an edge, and a wire between them.

use core::net::{Ipv4Addr, SocketAddr};

use aaa::Profile;
use aaa::pools::{Pools, Range, Spec};
use base::{Duration, Instant, Redacted, Route};
use edge::{Account, Admission, Config, Dial, Edge, End, Event, Inside, Outside, SubscriberKey};
use l2tp::{Call, Endpoint, OpenTunnel, TunnelKey};
use ppp::{Authentication, Credentials, Proof};
use wire::l2tp::Version;

pub(crate) const LAC: &str = "192.0.2.1:1701";
pub(crate) const LNS: &str = "192.0.2.2:1701";
/// The edge's own address.
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// Packets that left tunnels.
#[derive(Default)]
pub(crate) struct Packets(pub(crate) Vec<Vec<u8>>);

impl Inside for Packets {
    fn packet(&mut self, packet: &[u8]) {
        self.0.push(packet.to_vec());
    }
}

/// Datagrams that carry packets.
#[derive(Default)]
pub(crate) struct Datagrams {
    pub(crate) sent: Vec<Vec<u8>>,
    begun: Vec<u8>,
}

impl Outside for Datagrams {
    fn begin(&mut self, _: &Route) -> Option<&mut Vec<u8>> {
        self.begun.clear();
        Some(&mut self.begun)
    }

    fn commit(&mut self, _: &Route) {
        self.sent.push(core::mem::take(&mut self.begun));
    }
}

/// Both ends of the wire.
pub(crate) struct Stage {
    pub(crate) lac: Edge,
    pub(crate) lns: Edge,
    pub(crate) now: Instant,
    pub(crate) tunnel: TunnelKey,
    pub(crate) accounts: Vec<Account>,
    /// Subscribers that ended at the LNS.
    pub(crate) ended: Vec<(SubscriberKey, End)>,
    pub(crate) up: Vec<SubscriberKey>,
    /// Pools reported to have no prefix.
    no_prefix: Vec<Option<Box<str>>>,
    /// The profile of every user with the secret `sesame`.
    pub(crate) profile: Profile,
    /// Networks behind the clients.
    pub(crate) client_networks: Vec<aaa::Prefix>,
    /// The shape of every user.
    pub(crate) shape: Option<hqos::Shape>,
    /// Whether questions are answered immediately.
    pub(crate) answers: bool,
    /// Packets forwarded at the LNS.
    pub(crate) inside: Packets,
    /// Packets forwarded at the LAC.
    pub(crate) client_inside: Packets,
}

pub(crate) fn lns_config() -> Config {
    Config {
        terminate: true,
        accounting: true,
        address: GATEWAY,
        ppp: ppp::Config {
            authenticate: vec![Authentication::ChapMd5, Authentication::Pap],
            ..ppp::Config::default()
        },
        ..Config::default()
    }
}

pub(crate) fn route(address: &str) -> Route {
    Route {
        peer: address.parse::<SocketAddr>().unwrap(),
        local: None,
        socket: 0,
    }
}

fn endpoint(name: &str, accept: bool, seed: u8) -> Endpoint {
    let config = l2tp::Config {
        host_name: name.into(),
        accept,
        ..l2tp::Config::default()
    };
    Endpoint::new(config, [seed; 32])
}

/// One pool with one range.
pub(crate) fn pools(first: &str, last: &str) -> Pools {
    let range = Range::new(first.parse().unwrap(), last.parse().unwrap()).unwrap();
    let spec = Spec {
        name: "home".into(),
        ranges: vec![range],
        ..Spec::default()
    };
    Pools::new(vec![spec], vec![GATEWAY], 7).unwrap()
}

impl Stage {
    pub(crate) fn new(config: Config) -> Self {
        Self::with_pools(config, pools("10.0.0.1", "10.0.0.10"))
    }

    pub(crate) fn with_pools(config: Config, pools: Pools) -> Self {
        let none = Pools::new(Vec::new(), Vec::new(), 0).unwrap();
        let client = Config {
            terminate: false,
            ..Config::default()
        };
        let mut lac = Edge::new(client, endpoint("lac", false, 1), none, [3; 32]);
        let lns = Edge::new(config, endpoint("lns", true, 2), pools, [4; 32]);
        let now = Instant::ZERO;
        let open = OpenTunnel {
            route: route(LNS),
            version: Version::V2,
        };
        let tunnel = lac.endpoint_mut().open_tunnel(open, now).unwrap();
        let mut stage = Self {
            lac,
            lns,
            now,
            tunnel,
            accounts: Vec::new(),
            ended: Vec::new(),
            up: Vec::new(),
            no_prefix: Vec::new(),
            profile: Profile::default(),
            client_networks: Vec::new(),
            shape: None,
            answers: true,
            inside: Packets::default(),
            client_inside: Packets::default(),
        };
        stage.settle();
        stage
    }

    /// A client with this name and secret dials in.
    pub(crate) fn dial(&mut self, name: &str, secret: &str) {
        self.dial_call(name, secret, Call::default());
    }

    /// A client dials in with these call details.
    pub(crate) fn dial_call(&mut self, name: &str, secret: &str, call: Call) {
        self.begin_dial(name, secret, call);
        self.settle();
    }

    /// The same, before any datagram is delivered.
    pub(crate) fn begin_dial(&mut self, name: &str, secret: &str, call: Call) {
        let session = self
            .lac
            .endpoint_mut()
            .open_session(self.tunnel, call, self.now)
            .unwrap();
        let credentials = Credentials {
            name: name.as_bytes().into(),
            secret: Redacted::new(secret.as_bytes().into()),
        };
        let dial = Dial {
            credentials: Some(credentials),
            ipv4: true,
            ipv6: true,
            networks: self.client_networks.clone(),
        };
        self.lac.dial(session, dial, self.now);
    }

    /// Delivers datagrams until both ends have nothing to send.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut any = false;
            let mut bytes = Vec::new();
            while self.lac.poll_transmit(self.now, &mut bytes).is_some() {
                self.lns
                    .receive(route(LAC), &bytes, self.now, &mut self.inside);
                bytes.clear();
                any = true;
            }
            while self.lns.poll_transmit(self.now, &mut bytes).is_some() {
                self.lac
                    .receive(route(LNS), &bytes, self.now, &mut self.client_inside);
                bytes.clear();
                any = true;
            }
            any |= self.answers && self.answer();
            if !any {
                break;
            }
        }
        while self.lac.poll_event().is_some() {}
        while let Some(event) = self.lns.poll_event() {
            match event {
                Event::Up { subscriber } => self.up.push(subscriber),
                Event::Down {
                    subscriber, reason, ..
                } => self.ended.push((subscriber, reason)),
                Event::NoPrefix { pool, .. } => self.no_prefix.push(pool),
                _ => {}
            }
        }
        while let Some(account) = self.lns.poll_account() {
            self.accounts.push(account);
        }
    }

    /// Pools that were reported to have no prefix since the last call.
    pub(crate) fn told_no_prefix(&mut self) -> Vec<Option<Box<str>>> {
        self.settle();
        core::mem::take(&mut self.no_prefix)
    }

    fn admission(&self) -> Admission {
        Admission {
            profile: self.profile.clone(),
            shape: self.shape,
            ..Admission::default()
        }
    }

    fn answer(&mut self) -> bool {
        let mut any = false;
        while let Some(question) = self.lns.poll_question() {
            let good = match &question.claim.proof {
                Proof::None => false,
                Proof::Pap { password, .. } => **password.reveal() == *b"sesame",
                Proof::Chap {
                    identifier,
                    challenge,
                    response,
                } => *response == wire::ppp::chap::md5_response(*identifier, b"sesame", challenge),
                Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
            };
            let subscriber = question.subscriber;
            let known = if good {
                self.lns
                    .admit(subscriber, self.admission(), b"welcome", self.now)
            } else {
                self.lns.refuse(
                    subscriber,
                    (edge::Refusal::Rejected, "a wrong secret"),
                    b"no",
                    self.now,
                )
            };
            assert!(known);
            any = true;
        }
        any
    }

    /// Lets time pass and handles everything due meanwhile.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let due = [self.lac.poll_timeout(), self.lns.poll_timeout()];
            let next = due.into_iter().flatten().map(|(at, _)| at).min();
            match next.filter(|at| *at <= end) {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.lac.handle_timeout(self.now);
                    self.lns.handle_timeout(self.now);
                    self.settle();
                }
                None => break,
            }
        }
        self.now = end;
    }

    /// The datagrams that the client's side makes of its packet.
    pub(crate) fn datagrams_up(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let mut datagrams = Datagrams::default();
        let mut octets = from_tun(packet);
        self.lac.forward(&mut octets, self.now, &mut datagrams);
        datagrams.sent
    }

    /// Sends the client's packet to the LNS's inside.
    pub(crate) fn up_stream(&mut self, packet: &[u8]) {
        for datagram in &self.datagrams_up(packet) {
            self.lns
                .receive(route(LAC), datagram, self.now, &mut self.inside);
        }
    }

    /// A packet that a malicious client puts into its session.
    pub(crate) fn send_up_raw(&mut self, packet: &[u8]) {
        let (_, client) = self.lac.next_subscriber(0).unwrap();
        let session = client.session;
        let header = self.lac.endpoint_mut().data_header(session).unwrap();
        let datagram = [header.as_bytes(), &[0xff, 3, 0, 0x21], packet].concat();
        self.lns
            .receive(route(LAC), &datagram, self.now, &mut self.inside);
    }

    /// Sends a packet from the inside to the client.
    pub(crate) fn down_stream(&mut self, packet: &[u8]) {
        let mut datagrams = Datagrams::default();
        let mut octets = from_tun(packet);
        self.lns.forward(&mut octets, self.now, &mut datagrams);
        for datagram in &datagrams.sent {
            self.lac
                .receive(route(LNS), datagram, self.now, &mut self.client_inside);
        }
        while let Some(packet) = self.lns.poll_inside() {
            self.inside.0.push(packet.into());
        }
    }
}

/// A packet with a complete checksum, in the form that a TUN device returns.
pub(crate) fn from_tun(packet: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; wire::virtio::LENGTH];
    octets.extend_from_slice(packet);
    octets
}
