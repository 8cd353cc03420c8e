//! Measures the cost of local users and address pools: `cargo run --release -p headend-aaa --example
//! local_cost`.
//!
//! Measures curves over n, the largest n first: memory freed by one run is reused by the next, so only resident
//! memory is meaningful.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use aaa::pools::{Holder, Pools, Request, Spec};
use aaa::users::{Proof, Users};

fn main() {
    for count in [100_000, 50_000, 25_000] {
        users(count);
    }
    for bits in [20, 16, 10] {
        pools(bits, true);
        pools(bits, false);
    }
}

fn users(count: u32) {
    let text: String = (0..count)
        .map(|n| {
            format!(
                "[[user]]\nname = \"subscriber{n}@example.net\"\npassword = \"secret-{n}-secret\"\npool = \"home\"\nfilter = \"residential\"\nsession_timeout_s = 86400\nsessions = 1\n"
            )
        })
        .collect();
    let before = resident_kb();
    let start = Instant::now();
    let users = Users::parse(&text).expect("faultless");
    let took = start.elapsed();
    println!(
        "{count} users of {:.1} MB text: loaded in {:.0} ms, {} octets each resident",
        text.len() as f64 / 1e6,
        took.as_secs_f64() * 1e3,
        (resident_kb().saturating_sub(before)) * 1024 / u64::from(count)
    );
    for (what, known, chap) in [
        ("PAP, known user", true, false),
        ("PAP, unknown user", false, false),
        ("CHAP, known user", true, true),
        ("CHAP, unknown user", false, true),
    ] {
        let names: Vec<String> = (0..count)
            .map(|n| {
                format!(
                    "subscriber{}@example.{}",
                    n * 7 % count,
                    if known { "net" } else { "org" }
                )
            })
            .collect();
        let proof = match chap {
            true => Proof::Chap {
                identifier: 1,
                challenge: &[2; 16],
                response: &[3; 16],
            },
            false => Proof::Pap(b"another password"),
        };
        let start = Instant::now();
        for name in &names {
            black_box(users.authenticate(name.as_bytes(), &proof));
        }
        let each = start.elapsed().as_nanos() / u128::from(count);
        println!("    {what}, refused: {each} ns");
    }
}

fn pools(bits: u32, sticky: bool) {
    let range = format!("10.0.0.0/{}", 32 - bits);
    let spec = Spec {
        name: "home".into(),
        ranges: vec![range.parse().expect("a range")],
        sticky,
        ..Spec::default()
    };
    let size = 1_u64 << bits;
    let before = resident_kb();
    let start = Instant::now();
    let mut pools = Pools::new(vec![spec], Vec::new(), 1).expect("faultless");
    let made = start.elapsed();
    let take = |pools: &mut Pools, n: u64| {
        let user = (n * 7).to_be_bytes();
        let request = Request {
            pool: None,
            holder: Holder(n),
            user: &user,
            sticky: false,
        };
        pools.take(&request).expect("it is free")
    };
    let mut held: Vec<_> = (0..size).map(|n| take(&mut pools, n)).collect();
    let memory = (resident_kb().saturating_sub(before)) * 1024;
    let rounds = 1_000_000_u64;
    let start = Instant::now();
    for round in 0..rounds {
        let n = round.wrapping_mul(0x9e37_79b9) % size;
        assert!(pools.release(held[n as usize], Holder(n)));
        held[n as usize] = take(&mut pools, n);
    }
    let each = start.elapsed().as_nanos() / u128::from(rounds);
    println!(
        "{size} addresses{}: made in {:.1} ms, at most {} octets each resident; released and taken in {each} ns",
        if sticky { ", sticky" } else { "" },
        made.as_secs_f64() * 1e3,
        memory / size
    );
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
