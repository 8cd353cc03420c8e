//! Datagrams into a client with two requests outstanding at each of two servers, one for a password and one for
//! a record.
//!
//! An input is datagrams: an octet of `How`, an octet of length, and that many octets of attributes (or of the
//! whole datagram, if its header is not corrected).

use core::net::SocketAddr;

use aaa::accounting::SessionId;
use aaa::radius::{
    ANY_SERVER, AccessRequest, Client, Config, Event, Line, Nas, Proof, ServerConfig, Transmit,
};
use base::{Datagram, Duration, Instant, Machine, Route};
use wire::radius::{Attributes, Packet, Writer, code};

const SECRET: &[u8] = b"secret";
const REQUESTS: u64 = 4;

/// How to build a datagram, from one octet of the input.
struct How(u8);

impl How {
    /// The request that it answers.
    fn request(&self) -> usize {
        usize::from(self.0 & 3)
    }

    /// Whether its octets are the whole datagram.
    fn is_raw(&self) -> bool {
        self.0 & 4 != 0
    }

    fn is_signed(&self) -> bool {
        self.0 & 8 == 0
    }

    /// Whether it has an unknown source.
    fn is_strange(&self) -> bool {
        self.0 & 16 != 0
    }

    fn code(&self) -> u8 {
        match self.0 >> 5 {
            0..=3 => code::ACCESS_ACCEPT,
            4 => code::ACCESS_REJECT,
            5 => code::ACCESS_CHALLENGE,
            6 => code::ACCOUNTING_RESPONSE,
            other => other,
        }
    }
}

/// No bytes cause a panic; each request ends at most once, and once in the end; nothing is held then.
///
/// # Panics
/// If that does not hold.
pub fn target(input: &[u8]) {
    let mut now = Instant::from_nanos(1);
    let mut client = client();
    let requests = ask(&mut client, now);
    let mut ends = Vec::new();
    let mut rest = input;
    while let [how, length, following @ ..] = rest {
        let (octets, next) = following.split_at(following.len().min(usize::from(*length)));
        rest = next;
        let how = How(*how);
        let (transmit, request) = &requests[how.request()];
        let bytes = match how.is_raw() {
            true => octets.to_vec(),
            false => reply(&how, request, octets),
        };
        let mut peer = transmit.peer;
        if how.is_strange() {
            peer = SocketAddr::from(([9, 9, 9, 9], 9));
        }
        let route = Route {
            peer,
            local: None,
            socket: transmit.socket,
        };
        now += Duration::from_millis(1);
        let _ = client.handle(
            Datagram {
                route,
                bytes: &bytes,
            },
            now,
        );
        collect(&mut client, &mut ends);
    }
    let mut out = Vec::new();
    while let Some((at, _)) = client.poll_timeout() {
        now = now.max(at);
        client.handle_timeout(now);
        while client.poll_transmit(now, &mut out).is_some() {
            out.clear();
        }
        collect(&mut client, &mut ends);
    }
    ends.sort_unstable();
    assert_eq!(
        ends,
        (0..REQUESTS).collect::<Vec<_>>(),
        "ends of the requests"
    );
    assert!(client.services().all(|service| service.outstanding == 0));
}

fn client() -> Client {
    let mut config = Config::new(Nas {
        identifier: Some("nas".into()),
        address: None,
    });
    for host in 1..=2 {
        config.servers.push(ServerConfig {
            authentication: Some(([192, 0, 2, host], 1812).into()),
            accounting: Some(([192, 0, 2, host], 1813).into()),
            require_message_authenticator: host == 1,
            ..ServerConfig::new("server", SECRET)
        });
    }
    Client::new(config, [3; 32]).expect("a good configuration")
}

/// The outstanding requests, as sent.
fn ask(client: &mut Client, now: Instant) -> Vec<(Transmit, Vec<u8>)> {
    for token in 0..REQUESTS {
        let proof = match token {
            2 => Proof::Eap {
                packet: &[2, 1, 0, 6, 1, b'a'],
                state: b"",
                mtu: 1_500,
            },
            _ => Proof::Pap {
                password: b"password",
            },
        };
        let request = AccessRequest {
            user: b"alice",
            proof,
            session: SessionId::default(),
            line: Line::default(),
            servers: ANY_SERVER,
        };
        match token % 2 {
            0 => client.authenticate(now, &request, token),
            _ => client.account(now, 0, &[40, 6, 0, 0, 0, 1], token),
        }
        .expect("there is room");
    }
    let mut requests = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = client.poll_transmit(now, &mut out) {
        requests.push((transmit, core::mem::take(&mut out)));
    }
    requests
}

/// A reply by a server that knows the secret.
fn reply(how: &How, request: &[u8], octets: &[u8]) -> Vec<u8> {
    let request = Packet::parse(request).expect("it is ours");
    let mut out = Vec::new();
    let id = request.identifier();
    let mut writer = Writer::new(&mut out, how.code(), id, &request.authenticator());
    if how.is_signed() {
        writer.message_authenticator();
    }
    if let Ok(attributes) = Attributes::parse(octets) {
        writer.list().encoded(attributes);
    }
    writer.finish_signed(SECRET).expect("it has room");
    out
}

fn collect(client: &mut Client, ends: &mut Vec<u64>) {
    while let Some(event) = client.poll_event() {
        match event {
            Event::Accepted { token, profile, .. } => {
                let interval = profile.interim_interval;
                assert!(interval.is_none_or(|span| span >= Duration::from_secs(60)));
                let mut rates = profile.queue.rates_bps.into_iter().flatten();
                assert!(rates.all(|rate| rate <= aaa::queue::RATE_MAX));
                ends.push(token);
            }
            Event::Rejected { token, .. }
            | Event::Challenged { token, .. }
            | Event::Failed { token, .. }
            | Event::Recorded { token }
            | Event::RecordFailed { token, .. } => ends.push(token),
            Event::ServerDead { .. } | Event::ServerUp { .. } => {}
        }
    }
}
