//! Small UDP datagrams of all subscribers, as many as arrive: a window limits the number in flight.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use reactor::{RecvBatch, SendBatch, UdpOptions, UdpSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Row, Shared, Traffic, Way, within};
use crate::configs::GATEWAY;

/// Payload of a datagram in bytes; its IP packet has 100.
const PAYLOAD: usize = 72;

/// Number of consecutive datagrams to, or from, one subscriber.
const RUN: usize = 32;

/// Limit of datagrams in flight.
const WINDOW: u64 = 4_096;

/// If nothing arrives for this long, the datagrams in flight are lost.
const LOST_AFTER: Duration = Duration::from_millis(50);

/// Pause between two checks whether the window has room.
const NAP: Duration = Duration::from_micros(50);

/// Size of the receivers' buffers.
const BUFFER_BYTES: usize = 8 << 20;

impl Traffic<'_> {
    pub(super) fn udp(&mut self, way: Way) -> Result<Row> {
        let wild = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let (from, to) = match way {
            Way::Up => (&self.place.lac, &self.place.lns),
            Way::Down => (&self.place.lns, &self.place.lac),
        };
        let open = || UdpSocket::bind((wild, 0).into(), &UdpOptions::default());
        let mut sender = within(from, open).context("sender")?;
        let options = UdpOptions {
            recv_buffer_bytes: Some(BUFFER_BYTES),
            gro: true,
            ..UdpOptions::default()
        };
        let open = || UdpSocket::bind((wild, 0).into(), &options);
        let mut receiver = within(to, open).context("receiver")?;
        let port = receiver.local_addr().port();
        let flow = |&address: &Ipv4Addr| match way {
            Way::Up => (GATEWAY, address),
            Way::Down => (address, GATEWAY),
        };
        let flows: Vec<_> = self.addresses.iter().map(flow).collect();
        let shared = Shared::default();
        std::thread::scope(|scope| {
            scope.spawn(|| send(&mut sender, &flows, port, &shared));
            let receiving = scope.spawn(|| receive(&mut receiver, &shared));
            let row = self.measure("UDP", way, &shared);
            shared.stop.store(true, Ordering::Relaxed);
            let received = receiving.join();
            received.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            row
        })
    }
}

/// Sends runs of datagrams on each flow in turn.
fn send(socket: &mut UdpSocket, flows: &[(Ipv4Addr, Ipv4Addr)], port: u16, shared: &Shared) {
    let mut batch = SendBatch::new(RUN);
    let payload = [0x55; PAYLOAD];
    let mut window = Window::default();
    for (to, from) in flows.iter().cycle() {
        if !window.await_room(shared) {
            return;
        }
        for _ in 0..RUN {
            let from = IpAddr::V4(*from);
            batch.push(&payload, (*to, port).into(), Some(from));
        }
        // Datagrams that the kernel has no room for count as lost.
        socket.send(&mut batch);
        batch.clear();
        window.sent += RUN as u64;
    }
}

/// Datagrams in flight.
#[derive(Default)]
struct Window {
    sent: u64,
    /// The number that had arrived at the last arrival, and its time.
    arrived: u64,
    at: Option<Instant>,
}

impl Window {
    /// Waits until a run fits; `false` if the load ends first.
    fn await_room(&mut self, shared: &Shared) -> bool {
        loop {
            if shared.is_stopped() {
                return false;
            }
            let arrived = shared.datagrams.load(Ordering::Relaxed);
            let lost = shared.lost.load(Ordering::Relaxed);
            let under_way = self.sent.saturating_sub(arrived + lost);
            if under_way + RUN as u64 <= WINDOW {
                return true;
            }
            if arrived != self.arrived || self.at.is_none() {
                (self.arrived, self.at) = (arrived, Some(Instant::now()));
            } else if self.at.is_some_and(|at| at.elapsed() > LOST_AFTER) {
                shared.lost.fetch_add(under_way, Ordering::Relaxed);
                self.at = None;
            }
            std::thread::sleep(NAP);
        }
    }
}

/// Counts arriving datagrams.
fn receive(socket: &mut UdpSocket, shared: &Shared) -> io::Result<()> {
    let mut batch = RecvBatch::new(64);
    // The time-out lets the thread check whether it is to end.
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    while !shared.is_stopped() {
        if socket.recv(&mut batch)? == 0 {
            let mut fds = [PollFd::new(&*socket, PollFlags::IN)];
            match poll(&mut fds, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        let (mut datagrams, mut octets) = (0, 0);
        for datagram in batch.iter() {
            datagrams += 1;
            octets += datagram.bytes.len() as u64;
        }
        shared.datagrams.fetch_add(datagrams, Ordering::Relaxed);
        shared.octets.fetch_add(octets, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_under_way_than_the_window() {
        let shared = Shared::default();
        let mut window = Window::default();
        while window.sent < WINDOW {
            assert!(window.await_room(&shared));
            window.sent += RUN as u64;
        }
        // Nothing arrives, so the datagrams in flight are lost and more may be sent.
        assert!(window.await_room(&shared));
        assert_eq!(shared.lost.load(Ordering::Relaxed), WINDOW);
        shared.stop.store(true, Ordering::Relaxed);
        assert!(!window.await_room(&shared));
    }
}
