//! Writes the result of an experiment of many packets to a file, reads it again, and says how long both took:
//! `cargo run --release -p headend-ping --example large -- PACKETS FILE`. The packets are made up: a round trip of 20 ms with
//! a queue in front that fills and drains, and one packet in 500 lost.
#![forbid(unsafe_code)]

use std::fs::File;
use std::net::IpAddr;
use std::time::Instant as Clock;

use base::{Duration, Instant};
use ping::{Experiment, Plan, Protocol, Reply, Sequence, StreamPlan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(packets), Some(path)) = (words.next(), words.next()) else {
        return Err("name a number of packets and a file".into());
    };
    let packets: u64 = packets.parse()?;
    let streams = ["a", "b", "c", "d"].map(|name| StreamPlan {
        name: name.into(),
        host: name.into(),
        address: IpAddr::from([192, 0, 2, 1]),
        protocol: Protocol::Icmp,
        tos: 0,
        size: 56,
        interval: Duration::from_millis(10),
        offset: Duration::ZERO,
        count: Some(packets / 4),
    });
    let plan = Plan::spread(streams.to_vec(), Duration::from_secs(1));
    let mut experiment = Experiment::new(plan, Instant::ZERO);
    let begun = Clock::now();
    let mut random = 1_u64;
    while let Some(next) = experiment.next_send() {
        while let Some(due) = experiment.pop_send(next) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let sent = due.due + Duration::from_nanos(20_000 + random % 60_000);
            experiment.sent(due.stream, due.sequence, sent);
            if !random.is_multiple_of(500) {
                let queue = (due.sequence % 3_000) * 20_000 + random % 900_000;
                let reply = Reply {
                    stream: due.stream,
                    sequence: Sequence::Full(due.sequence),
                    at: sent + Duration::from_nanos(20_000_000 + queue),
                    ttl: 64,
                    tos: 0,
                    far: None,
                };
                experiment.received(reply)?;
            }
        }
        experiment.handle_timeout(next);
    }
    println!("account    {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Clock::now();
    let outcome = experiment.finish(1_700_000_000_000_000_000, false);
    println!("summary    {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Clock::now();
    ping::file::write(&outcome, File::create(&path)?)?;
    println!("write      {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Clock::now();
    let again = ping::file::read(File::open(&path)?)?;
    println!("read       {:.2} s", begun.elapsed().as_secs_f64());
    println!("octets     {}", std::fs::metadata(&path)?.len());
    println!("the same   {}", again == outcome);
    Ok(())
}
