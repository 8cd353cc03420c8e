//! The floor that benchmarks compare themselves with: the least that a program can
//! do to answer datagrams, or to wait for descriptors.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::poller::BUDGET;
use crate::sys::epoll::{Change, EventBuffer, change};
use crate::token::Interest;
use crate::waker::Waker;

/// Receives a datagram and sends it back, one system call each, until `stop` is set;
/// looks at that at least every 50 ms. Returns the datagrams answered.
///
/// # Errors
/// What the kernel said of the socket.
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

/// epoll on nothing but descriptors that are about to be ready.
pub struct Epoll {
    epoll: OwnedFd,
    events: EventBuffer,
}

impl Epoll {
    /// Watches `wakers` for reading.
    ///
    /// # Errors
    /// What the kernel said.
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
    /// What the kernel said.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = usize> + '_> {
        let ready = self.events.wait(&self.epoll, None)?;
        Ok(ready.map(|(index, _)| index as usize))
    }
}

/// The read timeout, or a signal.
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
