//! The floor for late pings: one thread that sleeps until the next packet is due, sends it to a
//! socket that nobody reads, and reads the clock.

use std::net::UdpSocket;

use anyhow::{Result, anyhow};
use base::{Duration, Instant};
use reactor::clock;
use reactor::urgency::{Urgency, hasten};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use super::super::scheduled::Account;
use super::{INTERVAL, Late, REAL_TIME_RATE_MAX};

/// A packet's data, of the size that `headend ping` uses.
const DATA: [u8; 56] = [0; 56];

/// From the thread's start to its first packet.
const AHEAD: Duration = Duration::from_millis(2);

/// Sends `packets` of each of `streams` streams, spread over the interval. Also returns the
/// scheduling priority that the thread got.
pub(super) fn run(streams: u32, packets: u32) -> Result<(Late, Urgency)> {
    // A thread of its own, so that its priority ends with it.
    let sender = std::thread::spawn(move || send(streams, packets));
    sender
        .join()
        .map_err(|_| anyhow!("the sender has panicked"))?
}

fn send(streams: u32, packets: u32) -> Result<(Late, Urgency)> {
    let sink = UdpSocket::bind("127.0.0.1:0")?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(sink.local_addr()?)?;
    let rate = u64::from(streams) * (1_000_000_000 / INTERVAL.as_nanos());
    let urgency = hasten(rate <= REAL_TIME_RATE_MAX);
    let before = Account::of_this_thread();
    let count = u64::from(streams) * u64::from(packets);
    let start = clock::now() + AHEAD;
    let mut late_ns = Vec::with_capacity(count as usize);
    for number in 0..count {
        let after = INTERVAL.as_nanos() * number / u64::from(streams);
        let due = start + Duration::from_nanos(after);
        wait_until(due);
        socket.send(&DATA)?;
        late_ns.push(clock::now().since(due).as_nanos().cast_signed());
    }
    let mut late = Late::new(late_ns);
    let after = Account::of_this_thread();
    late.waited = after
        .zip(before)
        .map(|(after, before)| after.waited_since(before));
    Ok((late, urgency))
}

fn wait_until(due: Instant) {
    let ns = due.as_nanos();
    let time = Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    };
    while clock::now() < due && clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_of_every_stream_is_sent_and_none_before_it_is_due() {
        let (late, _) = run(3, 4).unwrap();
        assert_eq!(late.sorted_ns.len(), 12);
        assert!(late.sorted_ns.iter().all(|ns| *ns >= 0));
    }
}
