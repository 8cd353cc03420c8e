//! A sender, a machine that forwards and an interface without a host, each in a network namespace.
//!
//! ```text
//! near eth0 ---- left [ middle ] right ---- far eth0
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use base::{Duration, Instant};
use reactor::clock;
use reactor::namespace::{Namespace, veth};
use reactor::port::{BATCH, Cut, Frames, Io, Port, PortOptions};
use shaper::take_piece;
use wire::checksum;
use wire::segment::{Kind, Segments};

/// Number of flows of the sender.
const FLOWS: u16 = 64;

/// Frames of one flow in a row, if as many are sent as possible.
const RUN: usize = 16;

/// Bytes of the headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// Size of Ethernet's header in bytes, which does not count here.
pub(super) const ETHERNET: u64 = 14;

/// The namespaces, joined by two wires that are up.
pub(super) struct Wires {
    pub(super) near: Namespace,
    pub(super) middle: Namespace,
    pub(super) far: Namespace,
}

impl Wires {
    /// Makes them.
    ///
    /// # Errors
    /// The kernel's error, for example that root is required.
    pub(super) fn new() -> Result<Self> {
        let wires = Self {
            near: Namespace::new()?,
            middle: Namespace::new()?,
            far: Namespace::new()?,
        };
        let Self { near, middle, far } = &wires;
        for namespace in [near, middle, far] {
            // Without IPv6 the kernel sends no packets of its own. A kernel that lacks IPv6 sends
            // none anyway.
            let _ = namespace.set("ipv6/conf/default/disable_ipv6", "1");
        }
        veth((near, "eth0"), (middle, "left"))?;
        veth((far, "eth0"), (middle, "right"))?;
        let ends = [
            (near, "eth0"),
            (middle, "left"),
            (middle, "right"),
            (far, "eth0"),
        ];
        for (namespace, name) in ends {
            namespace.netlink()?.set_up(name, true)?;
        }
        for (namespace, name) in ends {
            let patience = Duration::from_secs(5);
            namespace.netlink()?.wait_until_running(name, patience)?;
        }
        Ok(wires)
    }
}

/// A port of the sender's. The kernel cuts its runs only if they pass the queue discipline.
///
/// # Errors
/// The port's.
pub(super) fn open_sender(wires: &Wires) -> Result<Port> {
    let options = PortOptions::default();
    Ok(wires.near.run(|| Port::open("eth0", &options))??)
}

/// A port with a large buffer, for measurements.
///
/// # Errors
/// The port's.
pub(super) fn open(namespace: &Namespace, name: &str) -> Result<Port> {
    let options = PortOptions {
        recv_buffer_bytes: Some(16 << 20),
        bypass_queue: true,
        io: Io::Rings,
        keep_large: true,
        ..PortOptions::default()
    };
    Ok(namespace.run(|| Port::open(name, &options))??)
}

/// Counters of an interface (proc(5): `net/dev`).
pub(super) struct Count {
    pub(super) at: Instant,
    /// Received IP packets, and their bytes.
    pub(super) packets: u64,
    pub(super) octets: u64,
    /// Packets sent.
    pub(super) sent: u64,
}

impl Count {
    /// Reads them.
    ///
    /// # Errors
    /// There is no such interface.
    pub(super) fn of(namespace: &Namespace, name: &str) -> Result<Self> {
        namespace.run(|| {
            let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
            let at = clock::now();
            let counts = counts_of(name, &text);
            let (packets, octets, sent) =
                counts.with_context(|| format!("no {name} in /proc/net/dev"))?;
            Ok(Self {
                at,
                packets,
                octets,
                sent,
            })
        })?
    }
}

/// Packets received, their bytes without Ethernet's headers, and packets sent.
fn counts_of(name: &str, text: &str) -> Option<(u64, u64, u64)> {
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let (octets, packets) = (*numbers.first()?, *numbers.get(1)?);
    let sent = numbers.get(9).copied().unwrap_or(0);
    Some((packets, octets.checked_sub(packets * ETHERNET)?, sent))
}

/// Sends frames of several flows in turn.
pub(super) struct Sender {
    port: Port,
    frames: Frames,
    handles: Vec<u32>,
    each_second: Option<u64>,
}

impl Sender {
    /// Frames of `length` bytes, so many a second. If `None`, as many as the port takes: in runs of one flow, which
    /// the kernel cuts, because a sender of single frames is slower than what forwards them.
    pub(super) fn new(port: Port, length: usize, each_second: Option<u64>) -> Self {
        let mut frames = Frames::new(u32::from(FLOWS), 1_500);
        let mut handles = Vec::new();
        for flow in 0..FLOWS {
            let handle = if each_second.is_some() {
                let frame = frame(length, flow);
                frames.take().inspect(|&handle| {
                    frames.fill(handle, |room| {
                        room[..length].copy_from_slice(&frame);
                        length
                    });
                })
            } else {
                run_of(&mut frames, length, flow)
            };
            handles.extend(handle);
        }
        Self {
            port,
            frames,
            handles,
            each_second,
        }
    }

    /// Sends until `stop` is set.
    ///
    /// # Errors
    /// The port's.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<()> {
        let begin = clock::now();
        let mut next = 0;
        while !stop.load(Ordering::Relaxed) {
            let batch = self.due(begin).min(self.batch()) as usize;
            if batch == 0 {
                std::thread::sleep(std::time::Duration::from_micros(100));
                continue;
            }
            let end = self.handles.len().min(next + batch);
            let sent = self.port.send(&self.frames, &self.handles[next..end])?;
            next = (next + sent) % self.handles.len();
        }
        Ok(())
    }

    /// Frames, or runs of frames, of one call.
    fn batch(&self) -> u64 {
        if self.each_second.is_some() {
            BATCH as u64
        } else {
            BATCH as u64 / RUN as u64
        }
    }

    /// How many frames should have been sent by now, and have not been.
    fn due(&self, begin: Instant) -> u64 {
        let Some(each_second) = self.each_second else {
            return u64::MAX;
        };
        let span = u128::from(clock::now().since(begin).as_nanos());
        let due = (span * u128::from(each_second) / 1_000_000_000) as u64;
        due.saturating_sub(self.port.stats().sent)
    }
}

/// [`RUN`] datagrams of a flow as one frame that the kernel cuts.
fn run_of(frames: &mut Frames, length: usize, flow: u16) -> Option<u32> {
    let size = length - HEADERS;
    let mut whole = frame(HEADERS + RUN * size, flow);
    // A checksum of 0 would mean that there is none.
    whole[40] = 1;
    let segments = Segments::new(&whole, Kind::Udp, size as u16).ok()?;
    take_piece(frames, &segments, Cut::Udp(size as u16), (0, RUN))
}

/// A UDP datagram of a flow, in a frame of `length` octets. The IP header's checksum is right: bridges may check it.
fn frame(length: usize, flow: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend((4_000 + flow).to_be_bytes());
    frame.extend([0x13, 0x88]);
    frame.extend(((length - 34) as u16).to_be_bytes());
    frame.resize(length, 0);
    let sum = !checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::flow::Keys;

    #[test]
    fn octets_are_counted_without_ethernet_s_headers() {
        let text = "Inter-|   Receive\n face |bytes    packets errs\n    lo:  9 9 0\n  eth0: 3028 2 0 0 0 0 0 0 99 7 0\n";
        assert_eq!(counts_of("eth0", text), Some((2, 3_000, 7)));
        assert_eq!(counts_of("eth", text), None);
        assert_eq!(counts_of("eth0", "eth0: many\n"), None);
    }

    #[test]
    fn each_frame_is_of_a_flow_of_its_own() {
        let keys = |flow| Keys::read_frame(&frame(264, flow));
        assert_ne!(keys(1), keys(2));
        assert_eq!(keys(1).innermost().source_port, 4_001);
        assert_eq!(checksum::sum(&frame(264, 1)[14..34]), 0xffff);
    }

    #[test]
    fn a_run_is_as_long_as_its_frames() {
        let mut frames = Frames::new(1, 1_500);
        let handle = run_of(&mut frames, 114, 3).unwrap();
        assert_eq!(frames.get(handle).len(), HEADERS + RUN * (114 - HEADERS));
        assert_eq!(frames.uncut(handle).unwrap().cut, Cut::Udp(72));
    }
}
