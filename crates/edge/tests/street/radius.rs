//! A RADIUS server of the street: accepts, rejects, challenges by EAP; slow, silent, or repeating itself. It also sends
//! CoA-Requests and Disconnect-Requests.

use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};

use base::{Datagram, Duration, Instant, Machine, Route};
use ppp::Proof;
use sim::Rng;
use wire::ppp::chap::md5_response;
use wire::radius::attribute as a;
use wire::radius::secret::{reveal_password, verify_request};
use wire::radius::{Packet, Writer, code};

use crate::node::{EDGE, REQUESTS_PORT, ip};

/// The secret of the edge and its servers.
pub(crate) const SHARED: &[u8] = b"shared by both";
/// Every subscriber's password.
pub(crate) const PASSWORD: &[u8] = b"sesame";

/// The socket that requests to the edge leave from.
const OUT: u32 = 2;
/// EAP's MD5-Challenge (RFC 3748, section 5.4).
const MD5_CHALLENGE: u8 = 4;

/// How a server behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood {
    /// Probability that there is no reply.
    pub(crate) silent: f64,
    /// Probability that the right secret is rejected.
    pub(crate) rejects: f64,
    /// Probability that a reply is sent twice.
    pub(crate) repeats: f64,
    /// The longest wait before a reply.
    pub(crate) wait: Duration,
}

impl Mood {
    pub(crate) const GOOD: Self = Self {
        silent: 0.0,
        rejects: 0.0,
        repeats: 0.0,
        wait: Duration::ZERO,
    };

    pub(crate) fn any(rng: &mut Rng) -> Self {
        Self {
            silent: [0.0, 0.0, 0.3, 1.0][rng.below(4) as usize],
            rejects: [0.0, 0.0, 0.2][rng.below(3) as usize],
            repeats: [0.0, 0.2][rng.below(2) as usize],
            wait: Duration::from_secs([0, 0, 3, 12][rng.below(4) as usize]),
        }
    }
}

/// A server.
pub(crate) struct Server {
    pub(crate) mood: Mood,
    rng: Rng,
    replies: BTreeMap<(Instant, u64), (Route, Vec<u8>)>,
    number: u64,
    requests: VecDeque<Vec<u8>>,
    /// Accounting records by session and kind, with how often each came.
    pub(crate) records: BTreeMap<(Vec<u8>, u32), u64>,
    /// Replies to requests of ours, by code.
    pub(crate) answers: BTreeMap<u8, u64>,
    /// The latest request to the edge.
    last: Vec<u8>,
    identifier: u8,
}

impl Server {
    pub(crate) fn new(rng: Rng) -> Self {
        Self {
            mood: Mood::GOOD,
            rng,
            replies: BTreeMap::new(),
            number: 0,
            requests: VecDeque::new(),
            records: BTreeMap::new(),
            answers: BTreeMap::new(),
            last: Vec::new(),
            identifier: 0,
        }
    }

    /// Sends a CoA-Request or a Disconnect-Request with these attributes.
    pub(crate) fn request(&mut self, code: u8, wall_s: u64, attributes: &[(u8, &[u8])]) {
        self.identifier = self.identifier.wrapping_add(1);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, code, self.identifier, &[0; 16]);
        writer.attribute(a::NAS_IDENTIFIER, b"street");
        writer.integer(a::EVENT_TIMESTAMP, wall_s as u32);
        for (kind, value) in attributes {
            writer.attribute(*kind, value);
        }
        writer.finish_signed(SHARED).expect("a short request");
        self.last.clone_from(&bytes);
        self.requests.push_back(bytes);
    }

    /// Sends the latest request again.
    pub(crate) fn repeat(&mut self) {
        if !self.last.is_empty() {
            self.requests.push_back(self.last.clone());
        }
    }

    fn reply(&mut self, route: Route, bytes: Vec<u8>, now: Instant) {
        let copies = 1 + u64::from(self.rng.chance(self.mood.repeats));
        for _ in 0..copies {
            self.number += 1;
            let at = now + self.rng.up_to(self.mood.wait);
            let route = Route {
                local: None,
                ..route
            };
            self.replies
                .insert((at, self.number), (route, bytes.clone()));
        }
    }

    fn authenticate(&mut self, packet: &Packet<'_>) -> Vec<u8> {
        let (decided, eap) = match eap_message(packet) {
            Some(eap) => self.judge_eap(packet, &eap),
            None => (Some(self.judge(packet)), Vec::new()),
        };
        let spoiled = self.rng.chance(self.mood.rejects);
        let code = match decided {
            Some(true) if !spoiled => code::ACCESS_ACCEPT,
            Some(_) => code::ACCESS_REJECT,
            None => code::ACCESS_CHALLENGE,
        };
        let mut bytes = Vec::new();
        let authenticator = packet.authenticator();
        let mut writer = Writer::new(&mut bytes, code, packet.identifier(), &authenticator);
        writer.message_authenticator();
        if !eap.is_empty() {
            // What is rejected after all gets a Failure.
            let failure = [4, eap[1], 0, 4];
            let is_success = eap[0] == 3;
            let eap = if is_success && code == code::ACCESS_REJECT {
                &failure[..]
            } else {
                &eap
            };
            writer.attribute(a::EAP_MESSAGE, eap);
        }
        match code {
            code::ACCESS_CHALLENGE => {
                writer.attribute(a::STATE, &eap[6..22]);
            }
            code::ACCESS_ACCEPT => {
                let name = packet
                    .find(a::USER_NAME)
                    .map_or(&b""[..], |name| name.value);
                grant(&mut writer, name);
            }
            _ => {}
        }
        writer.finish_signed(SHARED).expect("a short reply");
        bytes
    }

    /// Whether a password or a response is right.
    fn judge(&self, packet: &Packet<'_>) -> bool {
        if let Some(hidden) = packet.find(a::USER_PASSWORD) {
            let clear = reveal_password(hidden.value, SHARED, &packet.authenticator());
            return clear.as_deref() == Some(PASSWORD);
        }
        let Some(chap) = packet.find(a::CHAP_PASSWORD) else {
            return false;
        };
        let own = packet.authenticator();
        let challenge = packet
            .find(a::CHAP_CHALLENGE)
            .map_or(&own[..], |one| one.value);
        chap.value[1..] == md5_response(chap.value[0], PASSWORD, challenge)
    }

    /// The decision about an EAP Response, if there is one already, and the EAP packet that goes back.
    fn judge_eap(&mut self, packet: &Packet<'_>, eap: &[u8]) -> (Option<bool>, Vec<u8>) {
        let identifier = eap[1];
        match eap.get(4) {
            Some(1) => {
                let mut request = vec![1, identifier.wrapping_add(1), 0, 22, MD5_CHALLENGE, 16];
                let mut challenge = [0; 16];
                self.rng.fill(&mut challenge);
                request.extend_from_slice(&challenge);
                (None, request)
            }
            Some(&MD5_CHALLENGE) => {
                let state = packet.find(a::STATE).map_or(&b""[..], |state| state.value);
                let right = md5_response(identifier, PASSWORD, state);
                let is_right = eap.get(6..22) == Some(&right);
                (
                    Some(is_right),
                    vec![if is_right { 3 } else { 4 }, identifier, 0, 4],
                )
            }
            _ => (Some(false), vec![4, identifier, 0, 4]),
        }
    }
}

/// The EAP packet of a request; `None` if it has none.
fn eap_message(packet: &Packet<'_>) -> Option<Vec<u8>> {
    let parts = packet.attributes().filter(|one| one.kind == a::EAP_MESSAGE);
    let eap: Vec<u8> = parts.flat_map(|one| one.value.iter().copied()).collect();
    (eap.len() >= 4).then_some(eap)
}

/// The number at the end of a user's name, before its realm.
pub(crate) fn number_of(name: &[u8]) -> u8 {
    let text = core::str::from_utf8(name).unwrap_or_default();
    let text = text.split('@').next().unwrap_or_default();
    let digits = text.trim_start_matches(|one: char| !one.is_ascii_digit());
    digits.parse().unwrap_or(0)
}

/// The attributes of a user's Access-Accept, chosen by its number.
fn grant(writer: &mut Writer<'_>, name: &[u8]) {
    let number = number_of(name);
    let tunnel = |writer: &mut Writer<'_>, tag: u8, station: u8| {
        writer.attribute(a::TUNNEL_TYPE, &[tag, 0, 0, 3]);
        writer.attribute(a::TUNNEL_MEDIUM_TYPE, &[tag, 0, 0, 1]);
        let server = [&[tag][..], ip(station).to_string().as_bytes()].concat();
        writer.attribute(a::TUNNEL_SERVER_ENDPOINT, &server);
        writer.attribute(a::TUNNEL_PREFERENCE, &[tag, 0, 0, tag]);
    };
    match number % 16 {
        // An address that another user has too.
        1 | 2 => {
            writer.attribute(a::FRAMED_IP_ADDRESS, &[10, 0, 0, 2]);
        }
        // An address outside every pool.
        3 => {
            writer.attribute(a::FRAMED_IP_ADDRESS, &[172, 16, 0, number]);
        }
        4 | 5 => {
            writer.attribute(a::FRAMED_ROUTE, b"10.77.0.0/16");
        }
        6 => {
            writer.integer(a::SESSION_TIMEOUT, 30);
        }
        7 => {
            writer.integer(a::IDLE_TIMEOUT, 20);
        }
        8 => {
            writer.integer(a::ACCT_INTERIM_INTERVAL, 60);
        }
        9 => {
            writer.attribute(a::FRAMED_POOL, b"none of this name");
        }
        10 => {
            writer.attribute(a::FILTER_ID, b"web");
        }
        // A tunnel that leads to the edge itself, alone or before another.
        11 => tunnel(writer, 1, EDGE),
        15 => {
            tunnel(writer, 1, EDGE);
            tunnel(writer, 2, crate::street::LNS);
        }
        12 => {
            writer.attribute(a::CLASS, b"gold");
        }
        // A prefix that another user has too.
        13 | 14 => {
            let prefix = [0, 48, 0x20, 1, 0xd, 0xb8, 0, 9];
            writer.attribute(a::DELEGATED_IPV6_PREFIX, &prefix);
        }
        _ => {}
    }
}

/// Whether a proof has the password of all subscribers.
pub(crate) fn is_right(proof: &Proof) -> bool {
    match proof {
        Proof::None | Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
        Proof::Pap { password, .. } => **password.reveal() == *PASSWORD,
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => *response == md5_response(*identifier, PASSWORD, challenge),
    }
}

impl Machine for Server {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Infallible;
    type Discard = Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Infallible> {
        let Datagram { route, bytes } = input;
        let packet = Packet::parse(bytes).expect("the edge's packets are right");
        let is_silent = self.rng.chance(self.mood.silent);
        match packet.code() {
            code::ACCESS_REQUEST if !is_silent => {
                let reply = self.authenticate(&packet);
                self.reply(route, reply, now);
            }
            code::ACCOUNTING_REQUEST if !is_silent => {
                assert!(verify_request(&packet, SHARED));
                let session = packet.find(a::ACCT_SESSION_ID).expect("its session");
                let status = packet
                    .find(a::ACCT_STATUS_TYPE)
                    .and_then(|one| one.integer());
                let name = (session.value.to_vec(), status.expect("a kind"));
                *self.records.entry(name).or_default() += 1;
                let mut bytes = Vec::new();
                let authenticator = packet.authenticator();
                let id = packet.identifier();
                let writer = Writer::new(&mut bytes, code::ACCOUNTING_RESPONSE, id, &authenticator);
                writer.finish_signed(SHARED).expect("a short reply");
                self.reply(route, bytes, now);
            }
            code::ACCESS_REQUEST | code::ACCOUNTING_REQUEST => {}
            other => *self.answers.entry(other).or_default() += 1,
        }
        Ok(())
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        if let Some(bytes) = self.requests.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(Route {
                peer: (ip(EDGE), REQUESTS_PORT).into(),
                local: None,
                socket: OUT,
            });
        }
        let first = self
            .replies
            .first_entry()
            .filter(|one| one.key().0 <= now)?;
        let (route, bytes) = first.remove();
        out.extend_from_slice(&bytes);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.replies.keys().next().map(|&(at, _)| (at, "reply"))
    }
}
