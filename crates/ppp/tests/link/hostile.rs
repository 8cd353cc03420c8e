//! Snapshots that nobody wrote: bytes that are read are those that would be written, and a link that came from any bytes
//! is driven without a panic and without a timer that never advances.

use base::snapshot::{Fault, ReadError};
use base::{Duration, Instant};
use ppp::{Authentication, Challenge, Config, Side};
use wire::ppp::protocol;

use crate::harness::{End, NOW, Seeded, frame, grant, network, open_lcp, send};
use crate::simulation::world;
use crate::snapshot::{credentials, live};
use crate::twins::{CLOCK, read, written};

/// Snapshots of links in all kinds of states, and frames that were sent in them.
struct Samples {
    octets: Vec<Vec<u8>>,
    frames: Vec<Vec<u8>>,
}

fn samples() -> Samples {
    let mut octets = eap_exchange();
    let mut frames = Vec::new();
    for seed in 0..60 {
        let mut pair = world(seed).pair;
        pair.ends.iter_mut().for_each(|end| end.renewed = None);
        live(&mut pair, &mut Seeded(seed), |pair| {
            for end in &mut pair.ends {
                octets.push(written(&mut end.link, CLOCK));
            }
        });
        for end in &mut pair.ends {
            end.call(pair.now, |link, ctx| link.up(ctx));
            frames.append(&mut end.sent);
        }
    }
    for (number, code, data) in [
        (protocol::LCP, 9, &[0; 4][..]),
        (protocol::LCP, 1, &[1, 4, 5, 220]),
        (protocol::LCP, 5, &[]),
        (protocol::LCP, 8, &[0x80, 0x21]),
        (protocol::IPCP, 1, &[3, 6, 198, 51, 100, 7]),
        (protocol::IPV6CP, 1, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 7]),
        (protocol::PAP, 1, b"\x05alice\x06sesame"),
        (protocol::CHAP, 1, b"\x10abcdefghijklmnopserver"),
        (protocol::CHAP, 2, b"\x10abcdefghijklmnopalice"),
        (protocol::EAP, 2, b"\x01alice"),
    ] {
        frames.push(frame(number, code, 1, data));
    }
    octets.sort();
    octets.dedup();
    Samples { octets, frames }
}

/// Snapshots of an exchange of EAP, and of a request that came early.
fn eap_exchange() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut end = network(&[Authentication::Eap], 1);
    open_lcp(&mut end, &[]);
    let request = end.packets().pop().expect("an identity request");
    all.push(written(&mut end.link, CLOCK));
    let identity = frame(protocol::EAP, 2, request.2, b"\x01alice");
    send(&mut end, &identity).unwrap();
    all.push(written(&mut end.link, CLOCK));
    let challenge = Challenge {
        request: &[1, 77, 0, 8, 4, 1, 9, 9],
        state: b"state",
        interval: Some(Duration::from_secs(7)),
    };
    assert!(end.call(NOW, |link, ctx| link.challenge(challenge, ctx)));
    all.push(written(&mut end.link, CLOCK));

    let mut end = network(&[], 1);
    open_lcp(&mut end, &[]);
    let early = frame(protocol::IPCP, 1, 1, &[3, 6, 198, 51, 100, 7]);
    send(&mut end, &early).unwrap();
    all.push(written(&mut end.link, CLOCK));
    all
}

fn mutated(octets: &[u8], other: &[u8], random: &mut Seeded) -> Vec<u8> {
    let mut octets = octets.to_vec();
    for _ in 0..=random.next() % 3 {
        let at = random.next() as usize % (octets.len() + 1);
        let octet = match random.percent(50) {
            true => random.next() as u8 % 16,
            false => random.next() as u8,
        };
        match random.next() % 5 {
            0 => octets.insert(at, octet),
            1 => _ = (at < octets.len()).then(|| octets.remove(at)),
            2 => {
                octets.truncate(at);
                octets.extend_from_slice(&other[at.min(other.len())..]);
            }
            _ => {
                if let Some(place) = octets.get_mut(at) {
                    *place = octet;
                }
            }
        }
    }
    octets
}

/// Does something with a link.
fn act(end: &mut End, now: Instant, frames: &[Vec<u8>], random: &mut Seeded) {
    let number = random.next();
    match number % 12 {
        0 => end.call(now, |link, ctx| link.close(ctx)),
        1 => _ = end.call(now, |link, ctx| link.accept(&grant(), b"S=1", ctx)),
        2 => _ = end.call(now, |link, ctx| link.refuse(b"E=691 no", ctx)),
        3 => end.call(now, |link, ctx| link.probe(ctx)),
        4 => end.call(now, |link, ctx| link.retime(ctx)),
        5 => end.call(now, |link, ctx| link.resume(ctx)),
        6 => end.call(now, |link, ctx| link.up(ctx)),
        7 => {
            let challenge = Challenge {
                request: &[1, 9, 0, 6, 4, 0],
                state: b"",
                interval: None,
            };
            _ = end.call(now, |link, ctx| link.challenge(challenge, ctx));
        }
        _ => {
            let mut octets = frames[number as usize / 12 % frames.len()].clone();
            // The identifier that the link waits for is often a small one.
            if let (true, Some(place)) = (random.percent(50), octets.get_mut(3)) {
                *place = random.next() as u8 % 4;
            }
            _ = end.call(now, |link, ctx| link.handle(&octets, ctx));
        }
    }
    let _ = (end.link.early_wish(), end.link.view(), end.link.refusal());
}

/// Drives a link until it has ended or has no timer.
fn drive(end: &mut End, frames: &[Vec<u8>], random: &mut Seeded) {
    // A twin's timers are rounded, and those of hostile bytes were never on a whole millisecond.
    end.renewed = None;
    let mut now = NOW;
    for _ in 0..30 {
        act(end, now, frames, random);
        let due = end.link.timeout();
        if due < Instant::FAR_FUTURE && random.percent(50) {
            now = now.max(due);
            end.call(now, |link, ctx| link.handle_timeout(ctx));
            assert!(end.link.timeout() > now, "what was due is done");
        }
    }
}

#[test]
fn any_bytes_are_refused_or_are_a_link_that_is_written_so_and_can_be_driven() {
    let samples = samples();
    assert!(samples.octets.len() > 500, "{}", samples.octets.len());
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..60_000 {
        let random = &mut Seeded(seed);
        let mut pick = || &samples.octets[random.next() as usize % samples.octets.len()];
        let (first, other) = (pick(), pick());
        let octets = mutated(first, other, random);
        match read(&octets, CLOCK, Some(credentials())) {
            Ok(Some(mut link)) => {
                taken += 1;
                assert_eq!(written(&mut link, CLOCK), octets, "seed {seed}");
                let mut end = End::new(Side::Network, Config::default(), seed);
                end.link = link;
                drive(&mut end, &samples.frames, random);
            }
            Ok(None) | Err(_) => refused += 1,
        }
    }
    assert!(taken > 5_000 && refused > 5_000, "{taken}, {refused}");
}

#[test]
fn every_prefix_is_refused() {
    for octets in eap_exchange() {
        for length in 0..octets.len() {
            let cut = read(&octets[..length], CLOCK, None);
            assert!(cut.is_err(), "{length} of {octets:?}");
        }
    }
}

/// What reading a network's link says, of which these are the fields behind LCP's.
fn refusal(fields: &[u8]) -> ReadError {
    let octets = [&[1, 0][..], fields, &[0]].concat();
    let Err(error) = read(&octets, CLOCK, Some(credentials())) else {
        panic!("{fields:?} was read");
    };
    error
}

fn is_read(fields: &[u8]) -> bool {
    let octets = [&[1, 0][..], fields, &[0]].concat();
    let read = read(&octets, CLOCK, Some(credentials()));
    read.is_ok_and(|link| link.is_some())
}

#[test]
fn unknown_codes_are_refused() {
    let lcp = |number, code| vec![1, number, code, 0, 0];
    let link = |number, code| vec![1, 0, number, code, 0];
    type Make<'a> = &'a dyn Fn(u8, u8) -> Vec<u8>;
    let fields: [(Make<'_>, u8, u8, &str); 8] = [
        (&lcp, 1, 10, "state"),
        (&lcp, 26, 5, "ask"),
        (&lcp, 27, 5, "peer_asks"),
        (&lcp, 28, 4, "offer"),
        (&lcp, 29, 4, "compression"),
        (&link, 15, 14, "closing"),
        (&link, 21, 6, "stage"),
        (&link, 22, 4, "by"),
    ];
    for (make, number, codes, name) in fields {
        for code in 0..128 {
            let read = read(&make(number, code), CLOCK, None);
            // The first code is absent, so it is no code either.
            match (1..codes).contains(&code) {
                true => assert!(read.is_ok_and(|link| link.is_some()), "{name} {code}"),
                false => assert_eq!(read.unwrap_err().fault, Fault::Value(name), "{code}"),
            }
        }
    }
}

#[test]
fn lists_are_bounded() {
    let long = |number: u8, length: u16, octet: u8| {
        let length_field = [length as u8 | 0x80, (length >> 7) as u8];
        let mut field = vec![number];
        match length {
            0..128 => field.push(length as u8),
            128.. => field.extend_from_slice(&length_field),
        }
        field.extend(std::iter::repeat_n(octet, length.into()));
        field
    };
    let within = |number: u8, field: Vec<u8>| [&[number][..], &field, &[0]].concat();
    let applicant = |field| within(4, within(1, field));
    // An MS-CHAP Success, early requests, a response of ours, and a refusal.
    assert!(is_read(&long(27, 255, 7)));
    assert_eq!(refusal(&long(27, 256, 7)).fault, Fault::Value("success"));
    assert!(is_read(&within(5, long(1, 128, 7))));
    let early = refusal(&within(5, long(2, 129, 7)));
    assert_eq!(early.fault, Fault::Value("ipv6cp"));
    assert!(is_read(&applicant(long(6, 49, 7))));
    let response = refusal(&applicant(long(6, 50, 7)));
    assert_eq!(response.fault, Fault::Value("response"));
    assert!(is_read(&applicant(long(8, 771, b'x'))));
    let refused = refusal(&applicant(long(8, 772, b'x')));
    assert_eq!(refused.fault, Fault::Value("refusal"));
    // A control character would reach a log.
    let control = refusal(&applicant(long(8, 1, 0x1b)));
    assert_eq!(control.fault, Fault::Value("refusal"));
}

#[test]
fn an_exchange_of_eap_has_a_request_within_bounds() {
    let request = |length: u16| {
        let [high, low] = length.to_be_bytes();
        let mut octets = vec![0; length.into()];
        octets[..5].copy_from_slice(&[1, 9, high, low, 13]);
        let count = [length as u8 | 0x80, (length >> 7) as u8];
        [&[28, 1][..], &count, &octets, &[0]].concat()
    };
    assert!(is_read(&request(3_000)));
    assert_eq!(refusal(&request(3_001)).fault, Fault::Value("request"));
    let cases: [&[u8]; 4] = [
        // None, a Response, one without a type, and one with octets behind it.
        &[28, 5, 1, 0],
        &[28, 1, 5, 2, 9, 0, 5, 1, 0],
        &[28, 1, 4, 1, 9, 0, 4, 0],
        &[28, 1, 6, 1, 9, 0, 5, 1, 1, 0],
    ];
    for fields in cases {
        assert_eq!(refusal(fields).part, "eap", "{fields:?}");
    }
    let state = |length: u16| {
        let count = [length as u8 | 0x80, (length >> 7) as u8];
        let octets = vec![7; length.into()];
        [&[28, 1, 5, 1, 9, 0, 5, 1, 3][..], &count, &octets, &[0]].concat()
    };
    assert!(is_read(&state(4_096)));
    assert_eq!(refusal(&state(4_097)).fault, Fault::Value("state"));
}

#[test]
fn fields_that_contradict_each_other_are_refused() {
    let cases: [&[u8]; 5] = [
        // A client with early requests, unanswered echoes that were never sent and the reverse, tries and no challenge,
        // packets in a second that has no start.
        &[4, 0, 5, 0],
        &[9, 1],
        &[10, 5],
        &[24, 3],
        &[31, 1],
    ];
    for fields in cases {
        refusal(fields);
    }
    // LCP is missing.
    assert!(read(&[0], CLOCK, None).is_err());
}
