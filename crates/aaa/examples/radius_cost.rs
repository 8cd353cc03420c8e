//! Measures what an authentication and its Start record cost the client alone: request, reply, profile. The
//! replies are prepared beforehand and not measured.
//!
//! `cargo run --release -p headend-aaa --example radius_cost`

use std::time::Instant as Clock;

use aaa::accounting::{Authentic, Record, Report, SessionId, Subscriber};
use aaa::radius::{AccessRequest, Client, Config, Event, Line, Nas, Proof, ServerConfig, Tunnel};
use base::{Datagram, Duration, Instant, Machine, Route};
use wire::radius::{Packet, Writer, attribute, code};

const SECRET: &[u8] = b"a secret of the measurement";
const ROUNDS: u64 = 200_000;

fn main() {
    for outstanding in [1, 100, 1_000, 10_000] {
        let (access_ns, account_ns) = measure(outstanding);
        println!(
            "{outstanding:>6} outstanding: {access_ns:>5} ns an authentication, {account_ns:>5} ns a record"
        );
    }
}

fn line() -> Line<'static> {
    Line {
        port: 4_711,
        port_id: "tunnel 12 session 4711",
        calling: b"442071838750",
        called: b"",
        access: b"",
        kind: aaa::radius::PortType::default(),
        tunnel: Some(Tunnel {
            client: Some([192, 0, 2, 10].into()),
            server: [192, 0, 2, 1].into(),
            client_name: b"lac.example.net",
            server_name: b"lns.example.net",
            assignment: b"",
            call: 4_711,
        }),
    }
}

/// Nanoseconds per authentication, and per record.
fn measure(outstanding: u64) -> (u64, u64) {
    let nas = Nas {
        identifier: Some("lns.example.net".into()),
        address: None,
    };
    let mut config = Config::new(nas.clone());
    config.servers.push(ServerConfig {
        authentication: Some(([127, 0, 0, 1], 1812).into()),
        accounting: Some(([127, 0, 0, 1], 1813).into()),
        ..ServerConfig::new("server", SECRET)
    });
    let mut client = Client::new(config, [7; 32]).expect("a good configuration");
    let mut now = Instant::from_nanos(1);
    let (mut access_ns, mut account_ns) = (0, 0);
    let mut done = 0;
    while done < ROUNDS {
        now += Duration::from_micros(outstanding * 30);
        access_ns += exchange(&mut client, now, outstanding, |client, token| {
            let request = AccessRequest {
                user: b"subscriber-004711@example.net",
                proof: Proof::Chap {
                    identifier: 1,
                    challenge: &[9; 16],
                    response: &[5; 16],
                },
                session: SessionId {
                    boot: 1,
                    number: token,
                },
                line: line(),
                servers: aaa::radius::ANY_SERVER,
            };
            client.authenticate(now, &request, token).is_ok()
        });
        account_ns += exchange(&mut client, now, outstanding, |client, token| {
            let mut record = Vec::with_capacity(512);
            let report = Report::Start(Subscriber {
                user: b"subscriber-004711@example.net",
                line: line(),
                class: &[],
                address: Some([203, 0, 113, 9].into()),
                interface_id: None,
                ipv6: Default::default(),
                authentic: Authentic::Radius,
            });
            let session = SessionId {
                boot: 1,
                number: token,
            };
            let encoded = Record {
                nas: &nas,
                session,
                at_s: 1_700_000_000,
                report,
            }
            .encode(&mut record);
            encoded.is_ok() && client.account(now, 1_700_000_000, &record, token).is_ok()
        });
        done += outstanding;
    }
    (access_ns / done, account_ns / done)
}

/// Exchanges that many requests and replies; returns the nanoseconds spent in the client.
fn exchange(
    client: &mut Client,
    now: Instant,
    outstanding: u64,
    mut ask: impl FnMut(&mut Client, u64) -> bool,
) -> u64 {
    let mut out = Vec::new();
    let mut sent = Vec::new();
    let begin = Clock::now();
    for token in 0..outstanding {
        assert!(ask(client, token), "there is room");
        while let Some(transmit) = client.poll_transmit(now, &mut out) {
            sent.push((transmit, out.len()));
        }
    }
    let mut spent = begin.elapsed();
    let mut start = 0;
    let replies: Vec<_> = sent
        .into_iter()
        .map(|(transmit, end)| {
            let request = Packet::parse(&out[start..end]).expect("a packet");
            start = end;
            (transmit, reply(&request))
        })
        .collect();
    let begin = Clock::now();
    for (transmit, bytes) in &replies {
        let route = Route {
            peer: transmit.peer,
            local: None,
            socket: transmit.socket,
        };
        let taken = client.handle(Datagram { route, bytes }, now);
        taken.expect("a good reply");
        match client.poll_event() {
            Some(Event::Accepted { .. } | Event::Recorded { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    spent += begin.elapsed();
    u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX)
}

fn reply(request: &Packet<'_>) -> Vec<u8> {
    let is_account = request.code() == code::ACCOUNTING_REQUEST;
    let code = if is_account {
        code::ACCOUNTING_RESPONSE
    } else {
        code::ACCESS_ACCEPT
    };
    let mut out = Vec::new();
    let mut writer = Writer::new(
        &mut out,
        code,
        request.identifier(),
        &request.authenticator(),
    );
    if !is_account {
        writer
            .message_authenticator()
            .integer(attribute::SERVICE_TYPE, attribute::service::FRAMED)
            .integer(attribute::FRAMED_PROTOCOL, attribute::framed_protocol::PPP)
            .address(attribute::FRAMED_IP_ADDRESS, [203, 0, 113, 9].into())
            .attribute(attribute::FILTER_ID, b"web")
            .integer(attribute::SESSION_TIMEOUT, 86_400)
            .integer(attribute::ACCT_INTERIM_INTERVAL, 600)
            .attribute(attribute::CLASS, b"gold");
    }
    writer.finish_signed(SECRET).expect("it has room");
    out
}
