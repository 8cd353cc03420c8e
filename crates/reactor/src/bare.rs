//! The floor for benchmarks: the least that a program can do to answer datagrams, to wait for descriptors, or to move
//! packets between a socket and a TUN device.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::poller::BUDGET;
use crate::sys::bare::{Incoming, Outgoing};
use crate::sys::epoll::{Change, EventBuffer, change};
use crate::sys::poll::{PollFd, poll};
use crate::token::Interest;
use crate::tun::Tun;
use crate::waker::Waker;

/// Receives a datagram and sends it back, one system call each, until `stop` is set, which it checks every 50 ms at
/// least. Returns the number of datagrams answered.
///
/// # Errors
/// The kernel's error for the socket.
pub fn echo(socket: &UdpSocket, stop: &AtomicBool) -> io::Result<u64> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut buffer = vec![0; 65_536];
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, peer)) => {
                socket.send_to(&buffer[..length], peer)?;
                answered += 1;
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answered)
}

/// epoll that watches only descriptors that are about to be ready.
pub struct Epoll {
    epoll: OwnedFd,
    events: EventBuffer,
}

impl Epoll {
    /// Watches `wakers` for reading.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(wakers: &[Waker]) -> io::Result<Self> {
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?;
        for (index, waker) in wakers.iter().enumerate() {
            let fd = waker.as_fd().as_raw_fd();
            change(&epoll, Change::Add, fd, Interest::READ.mask(), index as u64)?;
        }
        Ok(Self {
            epoll,
            events: EventBuffer::new(BUDGET),
        })
    }

    /// One system call. Yields the index of each waker that is awake.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = usize> + '_> {
        let ready = self.events.wait(&self.epoll, None)?;
        Ok(ready.map(|(index, _)| index as usize))
    }
}

/// Packets per call, for [`receive_and_write`] and [`read_and_send`].
pub const BATCH: usize = 64;

/// The most bytes of a packet, including the bytes before it.
pub const PACKET_MAX: usize = 2048;

/// The longest wait before they check `stop`.
const REST: base::Duration = base::Duration::from_millis(50);

/// Moves datagrams from a socket into a TUN device without offloads, each without its first `strip` bytes, until
/// `stop` is set. It uses a recvmmsg for up to [`BATCH`], a write for each, and a poll if there is none. Returns the
/// number of packets written. The kernel refuses what is no IP packet.
///
/// # Errors
/// The kernel's error for the socket or the device.
pub fn receive_and_write(
    socket: &UdpSocket,
    tun: &Tun,
    strip: usize,
    stop: &AtomicBool,
) -> io::Result<u64> {
    let socket = OwnedFd::from(socket.try_clone()?);
    let mut slots = Incoming::new(BATCH, PACKET_MAX);
    let mut moved = 0;
    while !stop.load(Ordering::Relaxed) {
        let count = match slots.receive(&socket) {
            Ok(count) => count,
            Err(error) if is_pause(&error) => {
                wait_for(socket.as_fd())?;
                continue;
            }
            Err(error) => return Err(error),
        };
        for index in 0..count {
            let packet = slots.bytes(index).get(strip..).unwrap_or_default();
            match tun.send(packet) {
                Ok(()) => moved += 1,
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(moved)
}

/// Moves packets from a TUN device without offloads to a connected socket, each after the bytes `front`, until `stop`
/// is set. It uses a read for each, a sendmmsg for up to [`BATCH`], and a poll if there is none. Returns the number
/// of packets sent. Packets that do not fit the socket's buffer are lost.
///
/// # Errors
/// The kernel's error for the device or the socket.
pub fn read_and_send(
    tun: &Tun,
    socket: &UdpSocket,
    front: &[u8],
    stop: &AtomicBool,
) -> io::Result<u64> {
    let socket = OwnedFd::from(socket.try_clone()?);
    let mut slots = Outgoing::new(BATCH);
    let front = &front[..front.len().min(PACKET_MAX)];
    let mut buffers = vec![[0; PACKET_MAX]; BATCH];
    for buffer in &mut buffers {
        buffer[..front.len()].copy_from_slice(front);
    }
    let mut lengths = [0; BATCH];
    let mut moved = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut count = 0;
        while count < BATCH {
            let Some(length) = tun.receive(&mut buffers[count][front.len()..])? else {
                break;
            };
            lengths[count] = front.len() + length;
            count += 1;
        }
        if count == 0 {
            wait_for(tun.as_fd())?;
            continue;
        }
        let filled = buffers[..count].iter().zip(lengths);
        let messages = filled.map(|(buffer, length)| &buffer[..length]);
        match slots.send(&socket, messages) {
            Ok(sent) => moved += sent as u64,
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}

/// Waits until there is something to read, or for [`REST`].
fn wait_for(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut set = [PollFd::new(fd.as_raw_fd(), Interest::READ)];
    poll(&mut set, Some(REST)).map(drop)
}

/// Whether it is the read timeout or a signal.
fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_each_datagram_until_told_to_stop() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        let answered = std::thread::scope(|scope| {
            let answering = scope.spawn(|| echo(&server, &stop).unwrap());
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut buffer = [0; 16];
            for n in 0..10_u8 {
                client.send_to(&[n; 3], address).unwrap();
                assert_eq!(client.recv(&mut buffer).unwrap(), 3);
                assert_eq!(buffer[..3], [n; 3]);
            }
            stop.store(true, Ordering::Relaxed);
            answering.join().unwrap()
        });
        assert_eq!(answered, 10);
    }

    #[test]
    fn the_bare_epoll_yields_the_wakers_that_are_awake() {
        let wakers: Vec<_> = (0..3).map(|_| Waker::new().unwrap()).collect();
        let mut epoll = Epoll::new(&wakers).unwrap();
        wakers[2].wake();
        assert_eq!(epoll.wait().unwrap().collect::<Vec<_>>(), [2]);
    }
}
