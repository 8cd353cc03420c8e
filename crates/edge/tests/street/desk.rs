//! The owner's work beside an edge: questions go to RADIUS servers or to a list of users, accounts to servers, and requests
//! of servers to the sessions that they name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aaa::accounting::{
    Authentic, Delivery, DeliveryConfig, DeliveryEvent, Record, Report, SessionId,
};
use aaa::accounting::{Subscriber, Usage};
use aaa::dynauth::{Cause, Dynauth, Order, Request};
use aaa::radius::{ANY_SERVER, AccessRequest, Client, Event, Line, Nas, Proof};
use aaa::{Lns, Profile};
use base::{Datagram, Duration, Instant, Machine, Route};
use edge::access::{Access, Served};
use edge::{
    Account, Admission, ChangeRefusal, Entry, NoRoute, Phase, Question, Refusal, SubscriberKey,
};

use crate::books::Books;
use crate::node::{EDGE, RADIUS, REQUESTS, ip};
use crate::radius::is_right;

type Edge = edge::Edge<Served>;
type Entries = Account<<Served as Access>::Place>;

/// The number of this start.
pub(crate) const BOOT: u32 = 7;
/// The time of day at the start of a run, in seconds since 1970.
pub(crate) const WALL_S: u64 = 1_700_000_000;

pub(crate) fn wall_s(now: Instant) -> u64 {
    WALL_S + now.as_nanos() / 1_000_000_000
}

pub(crate) fn nas() -> Nas {
    Nas {
        identifier: Some("street".into()),
        address: None,
    }
}

/// The owner's own machines.
pub(crate) struct Desk {
    /// `None`: every user with the right secret is admitted.
    servers: Option<Servers>,
    station: u8,
}

/// The machines that talk to RADIUS servers.
pub(crate) struct Servers {
    pub(crate) client: Client,
    pub(crate) dynauth: Dynauth,
    pub(crate) delivery: Delivery,
    /// Records that were handed over and have no outcome yet.
    pub(crate) open: BTreeSet<u64>,
    pub(crate) records: u64,
    pub(crate) given_up: u64,
    /// Answers to requests of servers, by what became of them.
    pub(crate) requests: BTreeMap<String, u64>,
}

impl Servers {
    pub(crate) fn new(client: Client, dynauth: Dynauth) -> Self {
        let config = DeliveryConfig {
            retry_max: Duration::from_secs(20),
            ..DeliveryConfig::default()
        };
        Self {
            client,
            dynauth,
            delivery: Delivery::new(config),
            open: BTreeSet::new(),
            records: 0,
            given_up: 0,
            requests: BTreeMap::new(),
        }
    }
}

impl Desk {
    /// A desk without servers.
    pub(crate) fn local(station: u8) -> Self {
        Self {
            servers: None,
            station,
        }
    }

    pub(crate) fn with_servers(servers: Servers) -> Self {
        Self {
            servers: Some(servers),
            station: EDGE,
        }
    }

    pub(crate) fn servers(&self) -> &Servers {
        self.servers.as_ref().expect("this edge has servers")
    }

    pub(crate) fn receive(&mut self, route: Route, bytes: &[u8], now: Instant) {
        let Some(servers) = &mut self.servers else {
            return;
        };
        // What is ignored is counted.
        if route.socket == REQUESTS {
            let input = Datagram { route, bytes };
            let _ = servers.dynauth.handle(input, now, wall_s(now));
        } else {
            let socket = route.socket - RADIUS;
            let route = Route { socket, ..route };
            let _ = servers.client.handle(Datagram { route, bytes }, now);
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(servers) = &mut self.servers {
            servers.client.handle_timeout(now);
            servers.delivery.handle_timeout(now);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let servers = self.servers.as_ref()?;
        let client = servers.client.poll_timeout().map(|(at, _)| at);
        client
            .into_iter()
            .chain(servers.delivery.poll_timeout())
            .min()
    }

    /// Does all that waits. `false` if nothing did.
    pub(crate) fn work(
        &mut self,
        edge: &mut Edge,
        books: &mut Books,
        sent: &mut VecDeque<(Route, Vec<u8>)>,
        now: Instant,
    ) -> bool {
        let mut worked = false;
        while let Some(question) = edge.poll_question() {
            worked = true;
            self.ask(&question, edge, now);
        }
        while let Some(wanted) = edge.poll_wanted() {
            worked = true;
            if edge.needs_route(&wanted) {
                let own = ip(self.station);
                let route = Route {
                    peer: wanted.tunnel.server,
                    local: Some(own.into()),
                    socket: 0,
                };
                let route = match route.peer.ip() == own {
                    true => Err(NoRoute::OwnAddress),
                    false => Ok(route),
                };
                edge.open_wanted(&wanted, route, now);
            }
        }
        while let Some(event) = edge.poll_nat_event() {
            books.block(event);
        }
        while let Some(account) = edge.poll_account() {
            books.account(&account);
            if let Some(servers) = &mut self.servers {
                servers.record(&account, now);
            }
        }
        match &mut self.servers {
            Some(servers) => servers.work(edge, sent, now) || worked,
            None => worked,
        }
    }

    fn ask(&mut self, question: &Question, edge: &mut Edge, now: Instant) {
        let key = question.subscriber;
        let name = &question.claim.name;
        if let Some(tunnel) = edge.tunnel_of_user(name).map(str::to_owned) {
            edge.switch_to(key, &tunnel, now);
            return;
        }
        match &mut self.servers {
            Some(servers) => servers.ask(question, edge, now),
            None if is_right(&question.claim.proof) => {
                let admission = Admission {
                    profile: Profile::default(),
                    ..Admission::default()
                };
                edge.admit(key, admission, b"welcome", now);
            }
            None => {
                edge.refuse(key, (Refusal::Rejected, "a wrong secret"), b"no", now);
            }
        }
    }
}

impl Servers {
    fn ask(&mut self, question: &Question, edge: &mut Edge, now: Instant) {
        let key = question.subscriber;
        let proof = match &question.claim.proof {
            ppp::Proof::None | ppp::Proof::MsChapV2 { .. } => Proof::Pap { password: b"" },
            ppp::Proof::Pap { password, .. } => Proof::Pap {
                password: password.reveal(),
            },
            ppp::Proof::Chap {
                identifier,
                challenge,
                response,
            } => Proof::Chap {
                identifier: *identifier,
                challenge,
                response,
            },
            ppp::Proof::Eap {
                packet, state, mtu, ..
            } => Proof::Eap {
                packet: packet.reveal(),
                state,
                mtu: *mtu,
            },
        };
        let Some(view) = edge.subscriber(key) else {
            return;
        };
        let request = AccessRequest {
            user: &question.claim.name,
            proof,
            session: SessionId {
                boot: BOOT,
                number: view.account,
            },
            line: Line::default(),
            servers: ANY_SERVER,
        };
        if let Err(why) = self.client.authenticate(now, &request, key.to_token()) {
            let why = why.to_string();
            edge.refuse(key, (Refusal::NoServer, &why), b"no", now);
        }
    }

    fn work(
        &mut self,
        edge: &mut Edge,
        sent: &mut VecDeque<(Route, Vec<u8>)>,
        now: Instant,
    ) -> bool {
        let mut worked = false;
        while let Some(event) = self.client.poll_event() {
            worked = true;
            self.heed(event, edge, now);
        }
        while let Some(request) = self.dynauth.poll_event() {
            worked = true;
            let answer = carry_out(&request, edge, now);
            let text = format!("{:?}", answer.as_ref().err());
            *self.requests.entry(text).or_default() += 1;
            self.dynauth.answer(request.ticket, answer);
        }
        while let Some(outgoing) = self.delivery.poll_send(now) {
            let token = outgoing.token;
            let taken = (self.client).account(now, wall_s(now), outgoing.record, token);
            if taken.is_err() {
                self.delivery.failed(token, now);
            }
        }
        while let Some(event) = self.delivery.poll_event() {
            let token = match event {
                DeliveryEvent::Delivered { token } => token,
                DeliveryEvent::GivenUp { token } => {
                    self.given_up += 1;
                    token
                }
            };
            assert!(self.open.remove(&token), "record {token} ended twice");
        }
        let mut bytes = Vec::new();
        while let Some(to) = self.client.poll_transmit(now, &mut bytes) {
            assert!(
                to.socket < REQUESTS - RADIUS,
                "so many requests are outstanding"
            );
            let route = Route {
                peer: to.peer,
                local: None,
                socket: RADIUS + to.socket,
            };
            sent.push_back((route, core::mem::take(&mut bytes)));
        }
        while let Some(route) = self.dynauth.poll_transmit(&mut bytes) {
            let (local, socket) = (None, REQUESTS);
            let route = Route {
                local,
                socket,
                ..route
            };
            sent.push_back((route, core::mem::take(&mut bytes)));
        }
        worked
    }

    fn heed(&mut self, event: Event, edge: &mut Edge, now: Instant) {
        match event {
            Event::Accepted { token, profile, .. } => {
                let admission = Admission {
                    profile: *profile,
                    is_remote: true,
                    ..Admission::default()
                };
                edge.admit(SubscriberKey::from_token(token), admission, b"", now);
            }
            Event::Rejected { token, why, .. } => {
                let (key, why) = (SubscriberKey::from_token(token), why.to_string());
                edge.refuse(key, (Refusal::Rejected, &why), b"no", now);
            }
            Event::Challenged {
                token,
                request,
                state,
                wait,
            } => {
                let challenge = ppp::Challenge {
                    request: &request,
                    state: &state,
                    interval: wait,
                };
                edge.challenge(SubscriberKey::from_token(token), challenge, now);
            }
            Event::Failed { token, why } => {
                let (key, why) = (SubscriberKey::from_token(token), why.to_string());
                edge.refuse(key, (Refusal::NoServer, &why), b"no", now);
            }
            Event::Recorded { token } => self.delivery.recorded(token),
            Event::RecordFailed { token, .. } => self.delivery.failed(token, now),
            Event::ServerDead { .. } | Event::ServerUp { .. } => {}
        }
    }

    /// Makes a record of an entry.
    fn record(&mut self, account: &Entries, now: Instant) {
        let subscriber = Subscriber {
            user: &account.name,
            line: Line::default(),
            class: &account.class,
            address: account.address,
            interface_id: account.interface.map(u64::to_be_bytes),
            ipv6: account.ipv6,
            authentic: match account.is_local {
                true => Authentic::Local,
                false => Authentic::Radius,
            },
        };
        let usage = Usage {
            time_s: account.age.as_nanos() / 1_000_000_000,
            input_octets: account.traffic.octets_in,
            output_octets: account.traffic.octets_out,
            input_packets: account.traffic.packets_in,
            output_packets: account.traffic.packets_out,
            queue: None,
        };
        let record = Record {
            nas: &nas(),
            session: SessionId {
                boot: BOOT,
                number: account.number,
            },
            at_s: wall_s(now),
            report: match account.entry {
                Entry::Start => Report::Start(subscriber),
                Entry::Interim => Report::Interim(subscriber, usage),
                Entry::Stop(cause) => Report::Stop(subscriber, usage, cause),
            },
        };
        let mut bytes = Vec::new();
        record.encode(&mut bytes).expect("short names");
        self.records += 1;
        self.open.insert(self.records);
        (self.delivery.push(self.records, &bytes)).expect("few records");
    }
}

/// Does what a server asks for. A session that is ending has no part in it any more.
fn carry_out(request: &Request, edge: &mut Edge, now: Instant) -> Result<(), Cause> {
    let mut meant: Vec<SubscriberKey> =
        match (request.selection.session_id(), &request.selection.user) {
            (Some(id), _) => edge.at_account(id.number).into_iter().collect(),
            (None, Some(name)) => edge.find(name).collect(),
            (None, None) => Vec::new(),
        };
    let is_ending = |key: &SubscriberKey| {
        edge.subscriber(*key)
            .is_none_or(|one| one.phase == Phase::Ending)
    };
    let ending: Vec<_> = meant.iter().copied().filter(is_ending).collect();
    meant.retain(|key| !ending.contains(key));
    for key in ending {
        if let Order::Change(change) = &request.order {
            let refused = edge.change_sessions(&[key], change, now);
            assert!(refused.is_err(), "a change of a session that is ending");
        }
        assert!(
            !edge.drop_subscriber(key, edge::End::Disconnected, now),
            "ended twice"
        );
    }
    if meant.is_empty() {
        return Err(Cause::NotFound);
    }
    match &request.order {
        Order::Disconnect { .. } => {
            for key in meant {
                assert!(edge.drop_subscriber(key, edge::End::Disconnected, now));
            }
            Ok(())
        }
        Order::Change(change) => {
            let changed = edge.change_sessions(&meant, change, now);
            changed.map_err(|why| match why {
                ChangeRefusal::Gone | ChangeRefusal::NotAdmitted => Cause::NotFound,
                _ => Cause::InvalidValue,
            })
        }
    }
}

/// An LNS at a station, for a set of tunnels.
pub(crate) fn lns(station: u8, preference: u32) -> Lns {
    let server = (ip(station), 1701).into();
    Lns {
        tunnel: std::sync::Arc::new(aaa::TunnelTo {
            secret: Some(base::Redacted::new(b"tunnel secret".to_vec())),
            ..aaa::TunnelTo::new(server)
        }),
        preference,
        private_group: Box::default(),
    }
}
