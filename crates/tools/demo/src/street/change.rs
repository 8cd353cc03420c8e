//! The rate of a line before and after the CoA-Request, on the IP packets that reach its host.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::asks::{Detail, Queue};
use super::datagrams::{Received, Stream};
use super::hosts::{DEVICE, Line, lock};
use super::load::{Download, Program};
use super::place::{BNG, Place, RADIUS, any};
use super::{RATE_BPS, Street, WATCHED, coa, configs};

/// Time between two samples.
const SAMPLE: Duration = Duration::from_millis(100);
/// Time after a start or a change in which the rate settles and does not count.
const SETTLED_S: f64 = 1.0;

/// Results of the download with the change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) program: &'static str,
    pub(super) line: String,
    /// Seconds since the start of the download, and bits per second in the 100 ms before.
    pub(super) samples: Vec<(f64, f64)>,
    pub(super) before: Detail,
    pub(super) after: Detail,
    /// Seconds since the start of the download at which the request was sent.
    pub(super) sent_s: f64,
    pub(super) ack_ms: f64,
    pub(super) transmissions: u32,
    /// CoA-ACKs that the daemon counts.
    pub(super) acks: u64,
    /// Mean rates in bits per second, without the settling.
    pub(super) rate_before_bps: f64,
    pub(super) rate_after_bps: f64,
    /// Segments that iperf3 sent again.
    pub(super) resent: Option<u64>,
    /// The streams to the line and to the line at the LNS.
    pub(super) streams: [Received; 2],
}

impl Change {
    /// What the queue of the line did during the download.
    pub(super) fn queue(&self) -> Queue {
        let (before, after) = (&self.before.queue, &self.after.queue);
        Queue {
            passed: after.passed.saturating_sub(before.passed),
            waited: after.waited.saturating_sub(before.waited),
            dropped: after.dropped.saturating_sub(before.dropped),
        }
    }
}

/// Gives the kernel of the street's namespace the addresses of the watched lines.
fn move_in(place: &Place, lines: &[Line]) -> Result<()> {
    let mut netlink = place.street.netlink()?;
    for line in lines {
        let home = line.home().map(IpAddr::V6);
        for address in line.ipv4.map(IpAddr::V4).into_iter().chain(home) {
            let length = if address.is_ipv4() { 32 } else { 128 };
            netlink.add_address(DEVICE, address, length)?;
            netlink.add_route(any(address), 0, None, DEVICE)?;
        }
    }
    Ok(())
}

/// Downloads, and halves the rate in the middle.
pub(super) fn measure(street: &mut Street<'_>, program: Program) -> Result<Change> {
    let lines: Vec<Line> = {
        let all = lock(&street.hosts.shared.lines);
        WATCHED.map(|line| all[usize::from(line)].clone()).into()
    };
    move_in(&street.place, &lines)?;
    street.hosts.watch(WATCHED)?;
    let homes: Option<Vec<_>> = lines.iter().map(Line::home).collect();
    let homes = homes.context("a line has no delegated prefix")?;
    let to = lines[0].ipv4.context("the line has no IPv4 address")?;
    let name = configs::name(WATCHED[0]);
    let socket = street
        .place
        .internet
        .run(|| UdpSocket::bind((RADIUS, 0)))??;
    let before = street.bng.detail(&name)?;
    let seconds = street.args.seconds();
    let streams = [
        Stream::start(&street.place, homes[0])?,
        Stream::start(&street.place, homes[1])?,
    ];
    let download = Download::start(program, &street.place, to, seconds)?;
    let sampled = sample(street, &socket, &name, Duration::from_secs(seconds))?;
    let resent = download.finish().context("the download")?;
    let [first, second] = streams;
    let streams = [first.finish()?, second.finish()?];
    let after = street.bng.detail(&name)?;
    let acks = street.bng.change_acks()?;
    let Sampled {
        samples,
        sent_s,
        acknowledged,
    } = sampled;
    let end_s = samples.last().map_or(0.0, |sample| sample.0);
    Ok(Change {
        program: program.name(),
        line: name,
        rate_before_bps: mean(&samples, SETTLED_S, sent_s),
        rate_after_bps: mean(&samples, sent_s + SETTLED_S, end_s),
        samples,
        before,
        after,
        sent_s,
        ack_ms: acknowledged.took.as_secs_f64() * 1e3,
        transmissions: acknowledged.transmissions,
        acks,
        resent,
        streams,
    })
}

struct Sampled {
    samples: Vec<(f64, f64)>,
    sent_s: f64,
    acknowledged: coa::Acknowledged,
}

/// Takes a sample every 100 ms, and sends the request half-way.
fn sample(street: &Street<'_>, socket: &UdpSocket, name: &str, span: Duration) -> Result<Sampled> {
    let octets = &street.hosts.shared.arrived[0].octets;
    let to = SocketAddr::from((BNG, configs::COA_PORT));
    let started = Instant::now();
    let mut samples = Vec::new();
    let mut last = (0.0, octets.load(Ordering::Relaxed));
    let mut sent = None;
    let mut next = SAMPLE;
    while next <= span {
        std::thread::sleep(next.saturating_sub(started.elapsed()));
        let now_s = started.elapsed().as_secs_f64();
        let count = octets.load(Ordering::Relaxed);
        samples.push((
            now_s,
            (count - last.1) as f64 * 8.0 / (now_s - last.0).max(1e-9),
        ));
        last = (now_s, count);
        next += SAMPLE;
        if sent.is_none() && next > span / 2 {
            let at_s = started.elapsed().as_secs_f64();
            sent = Some((at_s, coa::change_rate(socket, to, name, RATE_BPS / 2)?));
        }
    }
    let (sent_s, acknowledged) = sent.context("the download is too short for a change")?;
    Ok(Sampled {
        samples,
        sent_s,
        acknowledged,
    })
}

/// The mean rate from `from_s` to `to_s`; each sample counts for the time since the one before.
fn mean(samples: &[(f64, f64)], from_s: f64, to_s: f64) -> f64 {
    let (mut bits, mut seconds, mut last_s) = (0.0, 0.0, 0.0);
    for &(at_s, bps) in samples {
        if last_s >= from_s && at_s <= to_s {
            bits += bps * (at_s - last_s);
            seconds += at_s - last_s;
        }
        last_s = at_s;
    }
    if seconds > 0.0 { bits / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_leaves_out_the_settling_and_weighs_by_time() {
        let samples = [(1.0, 900.0), (2.0, 10.0), (4.0, 40.0), (5.0, 700.0)];
        assert_eq!(mean(&samples, 1.0, 4.0), 30.0);
        assert_eq!(mean(&samples, 4.5, 4.6), 0.0);
    }
}
