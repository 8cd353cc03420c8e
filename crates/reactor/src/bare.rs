//! The floor that benchmarks compare themselves with: the least that a program can
//! do to answer datagrams.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
}
